"""A healthy cluster: services, who calls whom, and the way from the one that users reach to the one that will be struck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from .cluster import SHARED, Service
from .dice import Dice

ENTRIES = ("gateway", "storefront", "portal", "website")
NAMES = (
    "accounts", "basket", "billing", "catalog", "coupons", "feedback", "invoices", "ledger", "loyalty", "media",
    "orders", "pricing", "profiles", "quotes", "refunds", "reviews", "shipping", "stock", "tickets", "wallet",
)  # fmt: skip
LARGEST_SHARE = 60
"""Percent of a setting that a healthy service needs."""


@dataclass(frozen=True)
class Topology:
    """`way`: services from the entry to the one at fault, each called by the one before. What is not on it is not struck."""

    services: Mapping[str, Service]
    way: tuple[str, ...]

    @property
    def others(self) -> list[str]:
        return [name for name in self.services if name not in self.way]

    def caller(self, name: str) -> str:
        """The first service that calls this one; the entry is called by users."""
        return next((one.name for one in self.services.values() if name in one.calls), "users")


def topology(services: int, distance: int, dice: Dice) -> Topology:
    """Every service is reached from the entry, and the only way to the one at fault has `distance` calls."""
    entry, names = dice.pick(ENTRIES), dice.shuffled(NAMES)[: services - 1]
    way, others = (entry, *names[:distance]), names[distance:]
    calls: dict[str, list[str]] = {name: [] for name in (entry, *names)}
    for caller, called in pairwise(way):
        calls[caller].append(called)
    for number, other in enumerate(others):
        # Whatever calls another stands before it, so that there is no circle.
        callers = dice.shuffled([*way, *others[:number]])[: dice.between(1, 2)]
        for caller in callers:
            calls[caller].append(other)
    made = {name: _service(name, tuple(sorted(called)), dice) for name, called in sorted(calls.items())}
    return Topology(made, way)


def _service(name: str, calls: tuple[str, ...], dice: Dice) -> Service:
    image = f"v{dice.between(1, 6)}.{dice.between(1, 19)}.{dice.between(0, 5)}"
    settings = {
        "memory_mib": dice.pick((512, 1024, 2048)),
        "cpu_m": dice.pick((400, 800, 1600)),
        "disk_gib": dice.pick((10, 20, 40)),
        "pool": dice.pick((20, 40)),
        "probe_s": dice.pick((5, 10)),
    }
    return _fitted(Service(name, calls, image, dice.between(1, 3), settings, {}, (image,)))


def _fitted(service: Service) -> Service:
    """The same with needs that its settings cover well."""
    needs = {
        setting: (service.total(setting) if setting in SHARED else value) * LARGEST_SHARE // 100
        for setting, value in service.settings.items()
    }
    return replace(service, needs={**needs, "probe_s": 1})
