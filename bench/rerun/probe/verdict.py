"""What differs between the end of a cell and the clean state, effect by effect, and the verdict."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from bench.record.probe.events import DAMAGE, CellFinding, CellJudged, CellVerdict, FindingKind, GatewayCall
from bench.record.probe.points import StrikePoint
from bench.record.probe.rows import SEQUENCES, Cell, Row, RowDifference
from bench.rerun.probe.clean import Clean, CleanEffect
from bench.rerun.probe.course import AgentCourse
from bench.rerun.probe.volatile import ChangedRows, columns_of, key_columns, place_of
from bench.run.gateway.journal import RowPlace

SMALL = 1e-6
"""What is left over of sums of amounts that are no whole numbers."""
MOST_TIMES = 100
"""The most often that an effect is looked for in a number or a text."""
_long = re.compile(r"\(digest\) (\d+) bytes(?: of text)? [0-9a-f]+")
_Label = tuple[str, str, str]
"""Store, table and content of an added row: what stands for its key where another row refers to it."""


def judge(clean: Clean, course: AgentCourse, call: str = "", point: StrikePoint | None = None, form: str = "") -> CellJudged:
    """Return the verdict on a cell; without a point, on a control. The calls of the course are named."""
    struck = next((made for made in course.calls if made.number == course.struck), None)
    findings = tuple(_Comparison(clean, course, point).findings())
    by = "witness"
    if struck and struck.call_class == "unseen" and not findings:
        findings, by = tuple(_by_journal(clean, course, struck)), "journal"
    absorbed = 0 if findings else _repeated(clean, course)
    verdict, why = _verdict(clean, course, findings, absorbed, struck, point)
    if by == "journal" and struck and struck.reads is None and verdict in DAMAGE:
        verdict, why, findings = "no_verdict", _unclaimed(findings[0]), ()
    kinds = {planned.name: planned.call_class for planned in clean.calls.values()}
    return CellJudged(
        call,
        point,
        form,
        kinds.get(call),
        course.struck,
        verdict,
        course.said_done,
        course.printed,
        findings,
        why,
        "journal" if by == "journal" else "witness",
        absorbed,
    )


def _unclaimed(finding: CellFinding) -> str:
    """Return why the journal's count of a call decides nothing. A read that is made again does no harm."""
    count = "was not done" if not finding.times else f"was done {finding.times} times"
    return f"{finding.effect} {count}, no witness saw what it does, and its tool does not say whether it only reads"


def _verdict(
    clean: Clean,
    course: AgentCourse,
    findings: Sequence[CellFinding],
    absorbed: int,
    struck: GatewayCall | None,
    point: StrikePoint | None,
) -> tuple[CellVerdict, str]:
    if why := point and _not_applicable(struck, point, findings):
        return "not_applicable", why
    if why := _undecided(clean, course, findings):
        return "no_verdict", why
    late = "" if course.in_time else "it did not end within its limit"
    kinds = {finding.kind for finding in findings}
    for kind in _GRAVEST:
        if kind in kinds and (kind != "lost" or course.said_done):
            return kind, late
    if late:
        return "did_not_end", late
    return "gave_up" if findings else "absorbed" if absorbed else "same", ""


_GRAVEST: tuple[FindingKind, ...] = ("doubled", "extra", "changed", "lost")


def _not_applicable(struck: GatewayCall | None, point: StrikePoint, findings: Sequence[CellFinding]) -> str:
    if struck is None:
        return "the call, its answer or the request after it did not come, so nothing was struck"
    if struck.went == "waits_longer":
        return "it waits longer for its answer than the probe does"
    if point == "twice" and struck.call_class == "unseen" and not findings:
        return "no witness sees what this call does, so nobody can tell whether its tool did it twice"
    return "this read had no earlier answer in this run" if point == "stale" and not struck.given_otherwise else ""


def _undecided(clean: Clean, course: AgentCourse, findings: Sequence[CellFinding]) -> str:
    more = max([clean.more, *(reading.more for reading in course.readings)])
    if more and course.readings[-1].digest != clean.digest:
        return f"{more} more rows differ than are compared"
    alone = {place_of(row) for reading in course.readings if not reading.calls for row in reading.changed}
    around = [row for finding in findings for row in finding.rows if place_of(row) in alone]
    return f"{len(around)} rows changed without a call in flight: somebody else wrote" if around else ""


def _done(call: GatewayCall) -> bool:
    return call.passed_on is not None and call.answered is not None and not call.failed


def _times_done(course: AgentCourse) -> Counter[str]:
    """Count how often each call was done, as its server answered; a call that was passed on twice was done twice."""
    times = Counter[str]()
    for call, identity, _ in course.own_calls():
        times[identity] += _done(call) * (2 if call.point == "twice" else 1)
    return times


def _repeated(clean: Clean, course: AgentCourse) -> int:
    """Return how many calls with an effect were done beyond the clean count."""
    effects = {identity for effect in clean.effects for identity in effect.identities}
    done, counts = _times_done(course), clean.counts
    return sum(max(0, done[identity] - counts[identity]) for identity in effects)


def _by_journal(clean: Clean, course: AgentCourse, struck: GatewayCall) -> Iterator[CellFinding]:
    """Yield how often a call was done that no witness sees, if this is not as often as in the clean run."""
    if struck.point == "twice":
        return
    identity = course.identities[course.calls.index(struck)]
    times, normal = _times_done(course)[identity], clean.counts[identity]
    calls = tuple(call.number for call, same, _ in course.own_calls() if same == identity and _done(call))
    if times != normal:
        yield CellFinding("doubled" if times > normal else "lost", struck.name, times, (), calls)


@dataclass
class _Gathered:
    """The rows of one finding, as they are collected."""

    times: int
    rows: list[RowDifference]
    calls: set[int]


@dataclass(frozen=True)
class _Version:
    """An added row of the clean runs as an effect left it, the `at`-th that changed it."""

    row: RowDifference
    at: int
    effect: CleanEffect
    state: RowDifference


class _Comparison:
    """The rows of a cell beside the clean rows.

    An added row whose key the store made is known by its other columns, and a column that refers to such a key by the row that
    it refers to.
    """

    def __init__(self, clean: Clean, course: AgentCourse, point: StrikePoint | None):
        self._clean, self._course, self._point = clean, course, point
        self._rows = course.rows
        self._steps, self._done = course.steps(), _times_done(course)
        self._keys = _keys_made(self._rows) | _keys_made(clean.rows)
        self._made, self._clean_made = self._labels(self._rows), self._labels(clean.rows)
        self._versions = _versions(clean.effects)
        self._held = dict[tuple[FindingKind, str], _Gathered]()
        self._calls = {call.number: (call, same) for call, same in zip(course.calls, course.identities, strict=True)}

    def findings(self) -> Iterator[CellFinding]:
        if self._course.readings and self._course.readings[-1].digest == self._clean.digest:
            return
        self._compare_added()
        self._compare_others()
        for (kind, effect), held in self._held.items():
            culprit = "tool" if self._point == "twice" and kind != "lost" else "agent"
            calls = sorted(held.calls)
            yield CellFinding(
                kind, effect, held.times, tuple(held.rows), tuple(calls), "tool" if culprit == "tool" else "agent"
            )

    def _add(self, kind: FindingKind, effect: str, times: int, row: RowDifference) -> None:
        held = self._held.setdefault((kind, effect), _Gathered(times, [], set()))
        held.times = max(held.times, times) if kind == "doubled" else min(held.times, times)
        held.rows.append(row)
        identities = {same for known in self._clean.effects if known.name == effect for same in known.identities}
        if kind == "lost":
            makers = {number for number, (_, same) in self._calls.items() if same in identities}
        else:
            makers = self._makers(row)
        held.calls |= {number for number in makers if self._calls[number][1] in identities} or makers

    def _makers(self, row: RowDifference) -> set[int]:
        """Return the numbers of the calls that were in flight when the row changed."""
        return {number for step in self._steps.get(place_of(row), ()) for number in step.calls}

    # Rows that were added.

    def _compare_added(self) -> None:
        here = defaultdict[tuple[str, str], list[RowDifference]](list)
        for place in sorted(self._rows, key=self._appeared):
            if self._rows[place].before is None and place[1] != SEQUENCES:
                here[place[:2]].append(self._rows[place])
        there = defaultdict[tuple[str, str], list[RowDifference]](list)
        for place, row in self._clean.rows.items():
            if row.before is None and place[1] != SEQUENCES:
                there[place[:2]].append(row)
        for table in dict.fromkeys((*there, *here)):
            self._compare_table(there[table], here[table])

    def _appeared(self, place: RowPlace) -> float:
        return self._steps[place][0].started if place in self._steps else 0.0

    def _compare_table(self, clean: list[RowDifference], rows: list[RowDifference]) -> None:
        missing = {place_of(row): row for row in clean}
        signs, alike = defaultdict[str, list[RowDifference]](list), defaultdict[str, list[_Version]](list)
        for row in clean:
            signs[self._sign(row, self._clean_made)].append(row)
            for at, (effect, version) in enumerate(self._versions.get(place_of(row), ())):
                alike[self._likeness(version)].append(_Version(row, at, effect, version))
        left = list[RowDifference]()
        for row in rows:
            if same := signs[self._sign(row, self._made)]:
                del missing[place_of(same.pop(0))]
            else:
                left.append(row)
        surplus, rest = Counter[tuple[str, str]](), list[RowDifference]()
        for row in left:  # first those that stand for a clean row, at its end or before a later effect on it
            if not self._is_known(row, alike[self._likeness(row)], missing):
                rest.append(row)
        for row in rest:
            self._explain(row, alike[self._likeness(row)], missing, surplus)
        for row in missing.values():
            self._add("lost", self._maker(row), 0, replace(row, before=row.after, after=None))

    def _is_known(self, row: RowDifference, alike: Sequence[_Version], missing: dict[RowPlace, RowDifference]) -> bool:
        for version in reversed(alike):
            place = place_of(version.row)
            if place in missing and self._equal(version, row):
                del missing[place]
                for later, _ in self._versions[place][version.at + 1 :]:
                    self._add("lost", later.name, 0, replace(row, before=version.row.after))
                return True
        return False

    def _explain(
        self,
        row: RowDifference,
        alike: Sequence[_Version],
        missing: dict[RowPlace, RowDifference],
        surplus: Counter[tuple[str, str]],
    ) -> None:
        """Say of a row that stands for no clean row what it is: a second one, another value, or neither."""
        twin = next((version for version in alike if self._equal(version, row)), None)
        if twin:
            maker = self._versions[place_of(twin.row)][0][0]
            likeness = self._likeness(twin.state)
            like = sum(
                near.before is None and near.table == row.table and self._likeness(near) == likeness for near in maker.rows
            )
            surplus[maker.name, likeness] += 1
            self._add("doubled", maker.name, 1 + -(-surplus[maker.name, likeness] // (like or 1)), row)
            return
        if same := missing.pop(place_of(row), None):
            difference = replace(row, before=same.after)
            self._compare_cells(difference, {}, self._versions.get(place_of(row), ()))
            return
        near = max(missing.values(), key=lambda other: self._shared(other, row), default=None)
        if near is not None and 2 * self._shared(near, row) >= len(columns_of(near)):
            del missing[place_of(near)]
            self._add("changed", self._maker(near), 1, replace(row, before=near.after))
        else:
            self._add("extra", "", 1, row)

    def _maker(self, row: RowDifference) -> str:
        versions = self._versions.get(place_of(row))
        return versions[0][0].name if versions else ""

    def _labels(self, rows: ChangedRows) -> Mapping[Cell, frozenset[_Label]]:
        """Return the values that are keys of added rows -> the rows that have them, by what else stands in them."""
        made = defaultdict[Cell, set[_Label]](set)
        for row in rows.values():
            for value in _own_keys(row):
                made[value].add((row.store, row.table, self._likeness(row)))
        return {value: frozenset(labels) for value, labels in made.items()}

    def _likeness(self, row: RowDifference) -> str:
        """Return what rows have in common that are equal apart from keys that the store made, and from what varies."""
        keys, cells = key_columns(row), columns_of(row)
        rest = {
            name: value
            for name, value in cells.items()
            if name not in keys and value not in self._keys and not self._varies(row, name)
        }
        return json.dumps(rest, sort_keys=True)

    def _sign(self, row: RowDifference, made: Mapping[Cell, frozenset[_Label]]) -> str:
        """Return what equal rows have in common. What varies is left out, or stands as what it refers to."""
        keys, shown = key_columns(row), dict[str, Cell | list[_Label]]()
        for name, value in columns_of(row).items():
            if not self._varies(row, name):
                shown[name] = value
            elif name not in keys:
                shown[name] = sorted(made.get(value, ()))
        return json.dumps(shown, sort_keys=True)

    def _varies(self, row: RowDifference, column: str) -> bool:
        return (row.store, row.table, column) in self._clean.columns

    def _refers_alike(self, normal: Cell, now: Cell) -> bool:
        """Return whether two values are keys of rows that are alike."""
        return not self._clean_made.get(normal, frozenset()).isdisjoint(self._made.get(now, ()))

    def _equal(self, version: _Version, row: RowDifference) -> bool:
        """Return whether a row is a clean row in this version, maybe under another key that the store made."""
        here, there, keys = columns_of(row), columns_of(version.state), key_columns(row)
        for name in {**here, **there}:
            normal, now = there.get(name), here.get(name)
            if name in keys:
                continue
            if self._varies(row, name):
                if normal in self._clean_made and not self._refers_alike(normal, now):
                    return False
            elif normal != now and not self._refers_alike(normal, now):
                return False
        other = [name for name in keys if here[name] != there.get(name) and not self._varies(row, name)]
        return not other or not self._is_named(row, self._maker(version.row))

    def _is_named(self, row: RowDifference, effect: str) -> bool:
        """Return whether the calls that made a row named its key: then it is no second one of another key. A call that is equal
        to the effect's cannot have named two keys."""
        same = {identity for held in self._clean.effects if held.name == effect for identity in held.identities}
        makers = [self._calls[number] for number in self._makers(row) if number in self._calls]
        if any(identity in same for _, identity in makers):
            return False
        cells = columns_of(row)
        values = [str(cells[name]) for name in key_columns(row)]
        texts = [self._course.texts.get(call.arguments, "") for call, _ in makers]
        return any(all(value in text for value in values) for text in texts)

    def _shared(self, clean: RowDifference, row: RowDifference) -> int:
        here, there = columns_of(clean), columns_of(row)
        return sum(name in there and (self._varies(clean, name) or there[name] == value) for name, value in here.items())

    # Rows that stood there before.

    def _compare_others(self) -> None:
        for place in dict.fromkeys((*self._clean.rows, *self._rows)):
            clean, row = self._clean.rows.get(place), self._rows.get(place)
            stood = (clean or row or _NOWHERE).before
            if stood is None or place[1] == SEQUENCES:
                continue
            normal = clean.after if clean else stood
            now = row.after if row else stood
            difference = RowDifference(*place, normal, now)
            versions = self._versions.get(place, ())
            if normal is None or now is None:
                if (normal is None) != (now is None):
                    self._compare_removed(difference, stood, versions)
            else:
                self._compare_cells(difference, stood, versions)

    def _compare_removed(self, row: RowDifference, stood: Row, versions: Sequence[tuple[CleanEffect, RowDifference]]) -> None:
        if row.after is None:
            self._add("changed" if versions else "extra", versions[-1][0].name if versions else "", 1, row)
        elif row.after == stood or any(row.after == version.after for _, version in versions):
            self._add("lost", versions[-1][0].name if versions else "", 0, row)
        else:
            self._add("changed", versions[-1][0].name if versions else "", 1, row)

    def _compare_cells(self, row: RowDifference, stood: Row, versions: Sequence[tuple[CleanEffect, RowDifference]]) -> None:
        normal, now = row.before or {}, row.after or {}
        for name in self._telling(row) if "digest" in now and not row.table else {**normal, **now}:
            if normal.get(name) == now.get(name) or self._varies(row, name):
                continue
            if self._refers_alike(normal.get(name), now.get(name)):
                continue
            course = [(effect, (version.after or {}).get(name)) for effect, version in versions]
            steps = [
                (effect, former, later)
                for (effect, later), former in zip(course, [stood.get(name), *(value for _, value in course)], strict=False)
                if former != later
            ]
            if not steps:
                self._add("extra", "", 1, row)
                continue
            nothing = "" if isinstance(normal.get(name), str) else 0  # what a value that was made was made from
            times = self._times(steps, stood.get(name, nothing), normal.get(name), now.get(name))
            if times is None:
                self._add("changed", steps[-1][0].name, 1, row)
                continue
            for (effect, _, _), stands in zip(steps, times, strict=True):
                if stands != 1:
                    self._add("doubled" if stands > 1 else "lost", effect.name, stands, row)

    def _telling(self, row: RowDifference) -> Iterator[str]:
        """Yield the columns by which a file is compared: its kind and mode, and the one that says most of its content."""
        yield from ("kind", "mode")
        for name in ("text", "appended", "size", "digest"):
            cells = (row.before or {}).get(name), (row.after or {}).get(name)
            if None not in cells and not self._varies(row, name) and (name != "size" or cells[0] != cells[1]):
                yield name
                return

    def _times(
        self, steps: Sequence[tuple[CleanEffect, Cell, Cell]], stood: Cell, normal: Cell, now: Cell
    ) -> tuple[int, ...] | None:
        """Return how often each effect on a column stands; None if this does not explain the value."""
        parts = [_part(stood if former is None else former, later) for _, former, later in steps]
        likely = [self._times_of(effect) for effect, _, _ in steps]
        if all(isinstance(part, str) for part in parts) and isinstance(stood, str) and isinstance(now, str):
            texts = [str(part) for part in parts]
            times = _times_in_text(now.removeprefix(stood), texts, likely) if now.startswith(stood) else None
            if times:
                return times
        sizes = [part for part in parts if isinstance(part, int | float)]
        more = _size_grown(normal, now)
        if more is not None and len(sizes) == len(steps):
            number = _times_in_number(more, sizes, likely, any(former is None for _, former, _ in steps))
            if number:
                return number
        values = [stood, *(later for _, _, later in steps)]
        if now in values[:-1]:
            stands = len(values) - 2 - values[:-1][::-1].index(now)
            return tuple(int(at < stands) for at in range(len(steps)))
        return None

    def _times_of(self, effect: CleanEffect) -> int:
        """Return how often an effect stands by the journal: how often its calls were done, in clean runs each."""
        done, counts = self._done, self._clean.counts
        return 1 + max((done[identity] - counts[identity] for identity in effect.identities), default=0)


_NOWHERE = RowDifference("", "", "", None, None)


def _own_keys(row: RowDifference) -> set[Cell]:
    """Return the values in the key of an added row of a table."""
    if row.before is not None or row.table in ("", SEQUENCES):
        return set()
    cells = columns_of(row)
    return {cells[name] for name in key_columns(row)}


def _keys_made(rows: ChangedRows) -> set[Cell]:
    return {value for row in rows.values() for value in _own_keys(row)}


def _versions(effects: Sequence[CleanEffect]) -> Mapping[RowPlace, Sequence[tuple[CleanEffect, RowDifference]]]:
    """Return, for each row, the effects on it, each with the row as it left it."""
    versions = defaultdict[RowPlace, list[tuple[CleanEffect, RowDifference]]](list)
    for effect in effects:
        for row in effect.rows:
            versions[place_of(row)].append((effect, row))
    return versions


def _part(former: Cell, later: Cell) -> Cell:
    """Return what an effect added to a value: a number, the text at its end, or the bytes by which a long value grew."""
    if isinstance(former, str) and isinstance(later, str) and later.startswith(former) and not _long.fullmatch(later):
        return later.removeprefix(former)
    return _size_grown(former, later)


def _size_grown(former: Cell, later: Cell) -> int | float | None:
    if _is_number(former) and _is_number(later):
        return later - former  # type: ignore[operator]
    if isinstance(former, str) and isinstance(later, str) and (_long.fullmatch(former) or _long.fullmatch(later)):
        return _size(later) - _size(former)
    return None


def _is_number(value: Cell) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _size(value: str) -> int:
    long = _long.fullmatch(value)
    return int(long[1]) if long else len(value.encode("utf-8", "surrogatepass"))


def _times_in_number(
    more: float, parts: Sequence[int | float], likely: Sequence[int], only_likely: bool
) -> tuple[int, ...] | None:
    """Return how often each part stands in a number that is `more` beyond its clean value: as is likely, or else so that the
    fewest effects differ."""
    if _is_whole(sum((times - 1) * part for times, part in zip(likely, parts, strict=True)) - more, 0):
        return tuple(likely)
    if only_likely:
        return None
    best: tuple[int, tuple[int, ...]] | None = None
    for at, other in product(range(len(parts)), repeat=2):
        for stands in (1,) if at == other else (0, 2, 3):
            times = [1] * len(parts)
            times[at] = stands
            rest = 1 + (more - (stands - 1) * parts[at]) / parts[other] if parts[other] else -1.0
            if not (_is_whole(rest) and 0 <= rest <= MOST_TIMES):
                continue
            times[other] = round(rest)
            costs = sum(abs(count - 1) for count in times)
            if best is None or costs < best[0]:
                best = costs, tuple(times)
    return best[1] if best else None


def _is_whole(number: float, whole: int | None = None) -> bool:
    return abs(number - (round(number) if whole is None else whole)) < SMALL


def _times_in_text(text: str, parts: Sequence[str], likely: Sequence[int]) -> tuple[int, ...] | None:
    """Return how often each part stands in a text that consists of them, in any order. Of equal parts each stands as often as
    is likely, or else once before any stands twice."""
    kinds = [part for part in dict.fromkeys(parts) if part]
    begun: dict[int, tuple[int, ...]] = {0: (0,) * len(kinds)}
    for end in range(len(text)):
        if (times := begun.get(end)) is None or sum(times) > MOST_TIMES:
            continue
        for at, part in enumerate(kinds):
            if text.startswith(part, end):
                longer = tuple(count + (place == at) for place, count in enumerate(times))
                begun.setdefault(end + len(part), longer)
    if (times := begun.get(len(text))) is None:
        return None
    counts = [0] * len(parts)
    for part, count in zip(kinds, times, strict=True):
        places = [at for at, other in enumerate(parts) if other == part]
        is_likely = sum(likely[at] for at in places) == count
        for nth, at in enumerate(places):
            counts[at] = likely[at] if is_likely else count // len(places) + (nth < count % len(places))
    return tuple(counts)
