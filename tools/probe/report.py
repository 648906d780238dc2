"""Write what the last sessions found into docs/probe.md: the pairs, the verdicts beside a world's count, whom the probe blames.

python -m probe.report
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from reliability.kept import read

from probe.__main__ import ROOT, Pair
from probe.blame import WEAKNESSES, Scored
from probe.equality import WORLD_POINTS, Equality

PAGE, RECORD = ROOT / "docs" / "probe.md", ROOT / "reports" / "probe"


def of_pairs(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield the lines on agents and servers."""
    yield "| agent | server | cells | with damage | proved | gave up clean | the worst |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for pair in sorted(pairs, key=lambda pair: (pair.server, pair.agent)):
        worst = f"`{pair.worst}`" if pair.worst else "none"
        begins = f"| {pair.agent} | {pair.server} | {pair.cells} of {pair.planned} |"
        yield f"{begins} {pair.damaged} | {pair.proven} | {pair.gave_up} | {worst} |"
    damaged, cells = sum(pair.damaged for pair in pairs), sum(pair.cells for pair in pairs)
    yield ""
    yield f"These are {len(pairs)} pairs and {cells} cells, {damaged} of them with damage. A pair's cells are the gravest for"
    yield "which its share of the session's minutes sufficed; a pair that is not here had none."


def of_equality(rows: Sequence[Equality]) -> Iterator[str]:
    """Yield the lines on the trials that were counted twice."""
    yield "| point of the probe | fault of a world | trials | effects doubled | effects lost | trials that differ |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for point, fault in WORLD_POINTS.items():
        trials, doubled, lost, differ = _sums(
            [row for row in rows if row.point == point], "trials", "doubled", "lost", "differ"
        )
        yield f"| `{point}` | `{fault}` | {trials} | {doubled} | {lost} | {differ} |"
    [clean] = _sums([row for row in rows if not row.point], "trials")
    names = "trials", "damaged", "with_doubled", "with_lost", "differ", "owed_otherwise"
    trials, damaged, doubled, lost, differ, otherwise = _sums(rows, *names)
    yield ""
    yield f"With {clean} clean runs and controls these are {trials} trials, {damaged} of them damaged: {doubled} with a doubled"
    yield f"effect, {lost} with a lost one. The probe and the world differ in {differ}."
    yield ""
    yield f"Both ask what the clean run owes. What is owed can change with what was done: in {otherwise} of these trials the"
    yield "world, as it became, owes other effects. An invoice, say, is owed only to a customer who accepted."


def of_blame(rows: Sequence[Scored]) -> Iterator[str]:
    """Yield the lines on weaknesses that were planted."""
    yield "| planted | has to be blamed | agents | exact | somebody else blamed | no verdict |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in (weakness.name for weakness in WEAKNESSES):
        if here := [row for row in rows if row.weakness == name]:
            exact, accuses = sum(row.is_exact for row in here), sum(row.accuses for row in here)
            undecided = sum(row.blamed == "no verdict" for row in here)
            begins = f"| {name.replace('_', ' ')} | {here[0].must or 'nobody'} | {len(here)}"
            yield f"{begins} | {exact} | {accuses} | {undecided} |"
    planted = [row for row in rows if not row.is_harmless]
    harmless = [row for row in rows if row.is_harmless]
    yield ""
    exact, accuses = sum(row.is_exact for row in planted), sum(row.accuses for row in harmless)
    yield f"Of {len(planted)} weaknesses the probe blames {exact} exactly. After {len(harmless)} harmless edits it blames"
    yield f"somebody wrongly in {accuses}."


def _sums(rows: Sequence[Equality], *names: str) -> list[int]:
    return [sum(getattr(row, name) for row in rows) for name in names]


def page(text: str, record: Path) -> str:
    """Return the page with what the record holds in the places that are marked for it."""
    parts = {
        "blame": of_blame(read(record, Scored)),
        "pairs": of_pairs(read(record, Pair)),
        "equality": of_equality(read(record, Equality)),
    }
    for name, lines in parts.items():
        begin, end = f"<!-- {name}: python -m probe.report -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = before + begin + "\n".join(lines) + f"\n{end}" + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), RECORD), encoding="utf-8")
