"""The documents of a story: all that a model can see of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .causes import SYMPTOMS
from .cluster import Service
from .dice import Dice
from .schemas import Metric
from .story import Story, Struck

ALERT, CLUSTER, LOG, METRICS, EVENTS, CHANGES = (
    "alert.txt", "cluster.txt", "app.log", "metrics.txt", "events.txt", "changes.txt",
)  # fmt: skip
ORDINARY_LOG = (
    "INFO served {n} requests, none failed",
    "INFO configuration read, {n} keys",
    "INFO connection of a client closed after {n} s",
    "INFO memory in use {n} MiB",
    "INFO cleaned {n} files from disk",
    "INFO health check answered in {n} ms",
    "INFO {n} password resets sent to customers",
    "INFO cache warmed with {n} images",
)
NOISE = (
    "connection to a printer lost, tries again in {n} s",
    "cache full, {n} keys written to disk",
    "a partner's certificate ends in {n} days",
    "{n} product images are missing",
    "{n} customers mistyped their password",
    "the address of a customer has no host, {n} skipped",
    "{n} keys of the configuration are deprecated",
    "slow query, {n} ms",
    "retries a mail, {n} in the queue",
)
ORDINARY_EVENTS = (
    "a pod of {s} scheduled on node-{n}",
    "backup of {s} done",
    "certificate of {s} renewed for 90 days",
    "autoscaler: {s} stays as it is",
    "a pod of {s} pulled its image in {n} s",
)
SETTINGS = ("memory_mib", "cpu_m", "disk_gib", "pool", "probe_s")
USUAL: Mapping[Metric, tuple[int, int]] = {
    "error_pct": (0, 1),
    "memory_pct": (50, 70),
    "throttled_pct": (0, 5),
    "disk_pct": (40, 60),
    "pool_pct": (30, 60),
    "restarts": (0, 0),
    "requests_s": (30, 60),
}
"""Between these lies what is usual for a service."""


@dataclass(frozen=True)
class Line:
    """`second`: of the day. `about`: the incident, an old one (by its service), a victim's failed call, or nothing of note."""

    second: int
    text: str
    about: str = ""

    @property
    def timed(self) -> str:
        """As it stands in events.txt."""
        return f"{'Warning' if self.about not in ('', OVER) else 'Normal'} {clock(self.second // 60)} {self.text}"

    @property
    def dated(self) -> str:
        """As it stands in app.log, to the second."""
        service, level, said = self.text.split(" ", 2)
        return f"{level} {clock(self.second // 60)}:{self.second % 60:02} {service}: {said}"


@dataclass(frozen=True)
class Row:
    """`marked`: whether an alarm says which last readings are out of their usual range."""

    service: str
    metric: Metric
    usual: tuple[int, int]
    readings: tuple[int, ...]
    marked: bool

    @property
    def text(self) -> str:
        *before, now = self.readings
        said = f"now {now}, usual {self.usual[0]}-{self.usual[1]}, before {' '.join(map(str, before))}"
        return f"{self._alarm(now) if self.marked else '-'} {self.service} {self.metric} {said}"

    def _alarm(self, now: int) -> str:
        low, high = self.usual
        return "HIGH" if now > high else "LOW" if now < low else "ok"


INCIDENT, VICTIM, OVER = "the incident", "a victim", "over"


def clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def documents(story: Story, seed: Sequence[str]) -> dict[str, str]:
    return {
        ALERT: f"{clock(story.alert)} ALERT: {story.percent}% of the requests to {story.entry} fail. Under 1% is usual.\n",
        CLUSTER: _text(_cluster(story)),
        LOG: _text(line.dated for line in log(story, seed)),
        METRICS: _text(_metrics(story, seed)),
        EVENTS: _text(line.timed for line in events(story, seed)),
        CHANGES: _text(changes(story)),
    }


def _text(lines: Iterator[str] | Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _cluster(story: Story) -> Iterator[str]:
    spare = ", ".join(f"{name} {story.spare[name]}" for name in ("memory_mib", "cpu_m", "disk_gib"))
    yield (
        f"Free on the nodes: {spare}. Each database takes {story.spare['pool']} connections from all replicas of its service."
    )
    for name, one in story.topology.services.items():
        settings = " ".join(_shown(setting, one.settings[setting]) for setting in SETTINGS)
        image = f"image={one.image} image_before={_image_before(one)}"
        yield f"{name} {image} replicas={one.replicas} {settings} calls={','.join(one.calls) or '-'}"


def _image_before(service: Service) -> str:
    major, minor, _ = service.image.split(".")
    return next((one for one in service.images if one != service.image), f"{major}.{int(minor) - 1}.3")


def _shown(setting: str, value: int) -> str:
    """A size with the next one, which is twice as large; a probe's time has no sizes."""
    return f"{setting}={value}" if setting == "probe_s" else f"{setting}={value} {setting}_next={2 * value}"


def log(story: Story, seed: Sequence[str]) -> list[Line]:
    dice, end = Dice("log", *seed), story.alert * 60 + 59
    lines = [*_struck_lines(story, story.incident, INCIDENT, dice)]
    for number, victim in enumerate(story.victims):
        lines += [] if number == 0 and _told_by_caller(story) else _victim_lines(story, victim, number, dice)
    for old in story.old:
        lines += _struck_lines(story, old, old.service, dice)
        if story.level.old_is_told:
            lines.append(Line((old.minute + 9) * 60 + dice.below(60), f"{old.service} INFO back to normal", OVER))
    for service, text in zip(story.noisy, dice.shuffled(NOISE), strict=False):
        said = f"{service} {'WARN' if story.level.victims_shout else 'INFO'} {text.format(n=dice.between(11, 80))}"
        lines += [Line(end - minutes * 60 - dice.below(600), said) for minutes in (37, 21, 3)]
    names = list(story.topology.services)
    for text in dice.shuffled(ORDINARY_LOG)[: story.level.ordinary]:
        said = f"{dice.pick(names)} {text.format(n=dice.between(11, 400))}"
        lines.append(Line(end - dice.below(3000), said))
    return sorted(lines, key=lambda line: (line.second, line.text))


def _told_by_caller(story: Story) -> bool:
    return SYMPTOMS[story.incident.cause].by_caller


def _struck_lines(story: Story, struck: Struck, about: str, dice: Dice) -> Iterator[Line]:
    for number in range(story.level.own_lines):
        yield Line((struck.minute + number) * 60 + dice.below(60), struck.line(story.speaker(struck)), about)


def _victim_lines(story: Story, victim: str, number: int, dice: Dice) -> Iterator[Line]:
    """The service calls the one before it on the way, and that one is at fault or a victim itself."""
    called = story.topology.way[story.topology.way.index(victim) + 1]
    said = dice.pick(("call to {s} failed: HTTP 503", "call to {s} failed: no answer within 2 s"))
    level = "ERROR" if story.level.victims_shout else "WARN"
    for late in range(story.level.caller_lines):
        second = (story.incident.minute + 1 + late) * 60 + 10 * number + dice.below(30)
        yield Line(second, f"{victim} {level} {said.format(s=called)}", VICTIM)


def events(story: Story, seed: Sequence[str]) -> list[Line]:
    """The newest first, as consoles show them."""
    dice = Dice("events", *seed)
    lines = [Line((story.incident.minute + 1) * 60, story.incident.event, INCIDENT)]
    for old in story.old:
        lines.append(Line((old.minute + 1) * 60, old.event, old.service))
        if story.level.old_is_told:
            lines.append(Line((old.minute + 9) * 60, f"{old.service} is well again", OVER))
    names = list(story.topology.services)
    for text in dice.shuffled(ORDINARY_EVENTS)[: story.level.ordinary]:
        said = text.format(s=dice.pick(names), n=dice.between(1, 9))
        lines.append(Line((story.alert - dice.between(1, 300)) * 60, said))
    return sorted(lines, key=lambda line: (-line.second, line.text))


def changes(story: Story) -> list[str]:
    """One a line, under an id each: c1 is the earliest."""
    return [f"c{n} {clock(one.minute)} {one.where}: {one.what}" for n, one in enumerate(story.changes, 1)]


def _metrics(story: Story, seed: Sequence[str]) -> Iterator[str]:
    yield from (row.text for row in rows(story, seed))


def rows(story: Story, seed: Sequence[str]) -> list[Row]:
    dice, symptoms = Dice("metrics", *seed), SYMPTOMS[story.incident.cause]
    made = []
    for name in story.topology.services:
        others: list[Metric] = [metric for metric in dice.shuffled(list(USUAL)) if metric != "error_pct"]
        struck = name == story.incident.service
        if struck and symptoms.metric != "error_pct":
            others = [symptoms.metric, *(metric for metric in others if metric != symptoms.metric)]
        if name not in story.victims or story.level.victims_shout:
            others = ["error_pct", *others]
        for metric in sorted(others[: story.level.rows], key=list(USUAL).index):
            made.append(_row(story, name, metric, dice))
    return made


def _row(story: Story, name: str, metric: Metric, dice: Dice) -> Row:
    usual = _usual(metric, dice)
    return Row(name, metric, usual, _readings(story, name, metric, usual, dice), story.level.marked)


def _readings(story: Story, name: str, metric: Metric, usual: tuple[int, int], dice: Dice) -> tuple[int, ...]:
    normal = tuple(dice.between(*usual) for _ in range(3))
    incident, symptoms = story.incident, SYMPTOMS[story.incident.cause]
    if name == incident.service and metric == symptoms.metric:
        return normal[0], *symptoms.readings
    if name == incident.service and metric == "restarts" and incident.cause == "memory_limit":
        return 0, 1, 3
    if metric != "error_pct":
        return normal
    if name == story.entry:
        return normal[0], story.percent // 2, story.percent
    if name in story.victims or (name == incident.service and not symptoms.by_caller):
        now = dice.between(story.percent, max(story.percent, 97))
        return normal[0], now * 2 // 3, now
    return normal


def _usual(metric: Metric, dice: Dice) -> tuple[int, int]:
    low, high = USUAL[metric]
    if metric in ("error_pct", "throttled_pct", "restarts"):
        return low, high
    middle = dice.between(low, high)
    return middle - 5, middle + 5
