"""The cluster's state, and what an action does to it. Nothing is run: an action is followed in this small model.

A service is well where each of its settings covers what it needs, its image starts, its configuration works, and it has its
certificate, its DNS record and its password. A remedy is good where every service is well after it and everything fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

NUMBERS = {"set_memory": "memory_mib", "set_cpu": "cpu_m", "grow_disk": "disk_gib", "set_pool": "pool", "set_probe": "probe_s"}
"""Action -> the setting that it sets."""
SIZED = frozenset(NUMBERS) - {"set_probe"}
"""The actions that set a size: each size has a next one, twice as large."""
RESTORES = {"renew_cert": "certificate", "restore_dns": "dns", "reset_password": "password"}
"""Action -> what it gives back."""
SHARED = frozenset({"cpu_m", "pool"})
"""What a service needs of these, its replicas need together; of the others each one needs it."""
LONGEST_PROBE = 60
"""Seconds. A probe that waits longer notices nothing any more."""
LONGEST_NUMBER = 18
"""Digits."""


@dataclass(frozen=True)
class Service:
    """A service.

    settings   memory_mib, cpu_m, disk_gib and pool of each replica, and probe_s
    needs      what they must be at least; of what is SHARED, over all replicas
    images     those that start
    bad_keys   keys of its configuration whose present values do not work
    lacks      of `certificate`, `dns` and `password`, what it does not have
    """

    name: str
    calls: tuple[str, ...]
    image: str
    replicas: int
    settings: Mapping[str, int]
    needs: Mapping[str, int]
    images: tuple[str, ...]
    bad_keys: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    def total(self, setting: str) -> int:
        """A setting over all replicas."""
        return self.settings[setting] * self.replicas

    def troubles(self) -> Iterator[str]:
        """What is wrong with it."""
        for setting, need in self.needs.items():
            if (self.total(setting) if setting in SHARED else self.settings[setting]) < need:
                yield f"{self.name} needs more {setting}"
        if self.image not in self.images:
            yield f"{self.name} does not start with {self.image}"
        yield from (f"{self.name} has a wrong {key}" for key in self.bad_keys)
        yield from (f"{self.name} lacks its {what}" for what in self.lacks)


@dataclass(frozen=True)
class Cluster:
    """`spare`: what is left on the nodes, of memory_mib, cpu_m and disk_gib; of `pool`, what each service's database takes."""

    services: Mapping[str, Service]
    spare: Mapping[str, int]


def shortcoming(before: Cluster, action: str, name: str, value: str) -> str:
    """Why an action is no remedy: it cannot be done, the fault stays, or something else breaks. "" where it is one."""
    if name not in before.services:
        return f"there is no service {name}"
    service = _done(before.services[name], action, value)
    if service is None:
        return f"{action} does not take {value}"
    after = replace(before, services={**before.services, name: service})
    return next((trouble for each in after.services.values() for trouble in each.troubles()), "") or _misfit(
        before, after, name
    )


def _done(service: Service, action: str, value: str) -> Service | None:
    """The service after the action; None where it cannot be done."""
    if action in NUMBERS or action == "scale_out":
        is_number = value.isascii() and value.isdigit() and len(value) <= LONGEST_NUMBER
        return _numbered(service, action, int(value)) if is_number else None
    if action == "rollback_image":
        return replace(service, image=value)
    if action == "revert_config":
        return replace(service, bad_keys=tuple(key for key in service.bad_keys if key != value))
    given = RESTORES.get(action)  # a restart gives nothing back
    return replace(service, lacks=tuple(what for what in service.lacks if what != given))


def _numbered(service: Service, action: str, number: int) -> Service | None:
    if number < 1:
        return None
    if action == "scale_out":
        return replace(service, replicas=number)
    setting = NUMBERS[action]
    if setting == "disk_gib" and number < service.settings[setting]:
        return None  # a volume cannot be made smaller
    return replace(service, settings={**service.settings, setting: number})


def _misfit(before: Cluster, after: Cluster, name: str) -> str:
    old, new = before.services[name], after.services[name]
    for setting in ("memory_mib", "cpu_m", "disk_gib"):
        if new.total(setting) - old.total(setting) > before.spare[setting]:
            return f"the nodes have not so much {setting}"
    if new.total("pool") > before.spare["pool"]:
        return f"the database of {name} takes not so many connections"
    return f"the probe of {name} notices nothing" if new.settings["probe_s"] > LONGEST_PROBE else ""
