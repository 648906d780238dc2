"""Write what the last sessions found into reports/probe/README.md, and a summary of it into docs/probe.md.

PYTHONPATH=tools:tools/reports:tests/support python -m probe.report
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean, stdev

from functions.rows import REPORTS, ClientRows, FunctionCell
from reliability.kept import read

from bench.record.probe_events import DAMAGE
from probe.__main__ import ROOT, Pair
from probe.blame import WEAKNESSES, Scored
from probe.boxed import Boxed
from probe.delivered import Delivered
from probe.delivery import DeliveredTo
from probe.equality import WORLD_POINTS, Equality

RECORD = ROOT / "reports" / "probe"
PAGES = (RECORD / "README.md", ROOT / "docs" / "probe.md")


def of_pairs(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield the lines on agents and servers."""
    agents = sorted({pair.agent for pair in pairs})
    yield f"| server | cells planned | {' | '.join(agents)} | the worst |"
    yield f"| --- | --- |{' --- |' * len(agents)} --- |"
    for server in sorted({pair.server for pair in pairs}):
        here = {pair.agent: pair for pair in pairs if pair.server == server}
        fields = (f"{here[name].damaged} of {here[name].cells}" if name in here else "" for name in agents)
        worst = next((f"`{here[name].worst}`" for name in agents if name in here and here[name].worst), "none")
        yield f"| {server} | {max(pair.planned for pair in here.values())} | {' | '.join(fields)} | {worst} |"
    damaged, proven, cells = (sum(getattr(pair, name) for pair in pairs) for name in ("damaged", "proven", "cells"))
    yield ""
    yield f"The {len(pairs)} pairs had {cells} cells; {damaged} cells had damage, {proven} also in a second run."
    yield "Each pair ran its gravest cells first, until its share of the session's minutes ended;"
    yield "the other planned cells did not run."
    yield "[A row for each pair](pair.csv)."


def of_boxed(rows: Sequence[Boxed]) -> Iterator[str]:
    """Yield the lines on pairs that were probed in the box and without it."""
    agents = sorted({row.agent for row in rows})
    yield f"| server | {' | '.join(agents)} |"
    yield f"| --- |{' --- |' * len(agents)}"
    for server in sorted({row.server for row in rows}):
        here = [[row for row in rows if (row.agent, row.server) == (agent, server)] for agent in agents]
        yield f"| {server} | {' | '.join(_boxed_field(each) for each in here)} |"
    pairs = {(row.agent, row.server) for row in rows}
    ratios = [log(row.ratio) for row in rows]
    half = 2 * stdev(ratios) / sqrt(len(ratios))
    low, middle, high = (exp(mean(ratios) + each) for each in (-half, 0, half))
    other = [row for row in rows if not row.is_equal]
    yield ""
    most = max(row.ratio for row in rows)
    yield f"In {len(rows) - len(other)} of {len(rows)} cells, of {len(pairs)} pairs, the verdict with the box is the verdict"
    yield f"without it. A run in the box took {middle:.2f} [{low:.2f}, {high:.2f}] times the processor seconds of a run without"
    yield f"the box (geometric mean over cells, two standard errors), and {most:.2f} times at most."
    yield "[A row for each cell](boxed.csv)."
    for row in other:
        yield f"{row.agent}, `{row.server}.{row.cell}`: the verdict is {row.boxed} in the box, and {row.unboxed} without it."


def _boxed_field(rows: Sequence[Boxed]) -> str:
    """Return the verdicts of a pair's cells, and how often the processor was needed in the box."""
    verdicts = (row.boxed if row.is_equal else f"{row.boxed}, not {row.unboxed}" for row in rows)
    return ", ".join(f"{verdict.replace('_', ' ')} {row.ratio:.2f}" for verdict, row in zip(verdicts, rows, strict=True))


def of_equality(rows: Sequence[Equality]) -> Iterator[str]:
    """Yield the lines on the trials that were counted twice."""
    [clean] = _sums([row for row in rows if not row.point], "trials")
    names = "trials", "damaged", "with_doubled", "with_lost", "differ", "owed_otherwise"
    trials, damaged, doubled, lost, differ, otherwise = _sums(rows, *names)
    points = ", ".join(
        f"`{point}` ({_sums([row for row in rows if row.point == point], 'trials')[0]})" for point in WORLD_POINTS
    )
    yield f"Of {trials} trials, at {points}"
    yield f"and without a fault ({clean}), {damaged} are damaged: {doubled} have a doubled effect, {lost} a lost effect."
    yield f"The verdicts of the probe and of the world differ in {differ} trials. Both count the clean run's effects as right:"
    yield f"in {otherwise} trials other effects would be right, since the world had changed."
    boxed = [row for row in rows if row.boxed]
    trials, damaged, doubled, lost, differ = _sums(boxed, "trials", "damaged", "with_doubled", "with_lost", "differ")
    yield f"In the box ran {trials} of these trials. {damaged} boxed trials are damaged, {doubled} with a doubled effect,"
    yield f"{lost} with a lost effect; the verdicts of the probe and of the world differ in {differ} boxed trials."


def of_delivered(rows: Sequence[Delivered]) -> Iterator[str]:
    """Yield the lines on when a call is delivered."""
    yield "| point | agents | harm by our own queries | found | missed | false alarms |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for point in dict.fromkeys(row.point for row in rows):
        here = [row for row in rows if row.point == point]
        harmed, missed = sum(row.harmed for row in here), sum(row.is_missed for row in here)
        alarms = sum(row.is_wrong and not row.harmed for row in here)
        yield f"| `{point}` | {len(here)} | {harmed} | {harmed - missed} | {missed} | {alarms} |"
    wrong = [f"`{row.point}` of `{row.agent}` ({row.verdict.replace('_', ' ')})" for row in rows if row.is_wrong]
    yield ""
    yield f"Wrong verdicts: {', '.join(wrong) or 'none'}."


def of_blame(rows: Sequence[Scored]) -> Iterator[str]:
    """Yield the lines on weaknesses that were planted."""
    planted = [row for row in rows if not row.is_harmless]
    harmless = [row for row in rows if row.is_harmless]
    agents = len({row.agent for row in rows})
    kinds = ", ".join(weakness.name for weakness in WEAKNESSES if any(row.weakness == weakness.name for row in planted))
    exact, accuses = sum(row.is_exact for row in planted), sum(row.accuses for row in harmless)
    yield f"Of {len(planted)} weaknesses ({kinds}, each in {agents} agents) the probe blames {exact} exactly."
    yield f"After {len(harmless)} harmless edits the probe blames a part wrongly in {accuses} cases."


LIMBO = {"lost": "0.5%", "in_flight": "56%", "redelivered": "74%"}
"""In how many episodes nine strong models doubled an effect (arXiv 2609.29095)."""


def of_deliveries(rows: Sequence[DeliveredTo]) -> Iterator[str]:
    """Yield the lines on agents of others, beside a paper's."""
    agents = list(dict.fromkeys(row.agent for row in rows))
    yield f"| point | {' | '.join(agents)} | together | Limbo |"
    yield f"| --- |{' --- |' * len(agents)} --- | --- |"
    for point, paper in LIMBO.items():
        here = {row.agent: row for row in rows if row.point == point}
        each = [f"{here[name].doubled} of {here[name].cells}" for name in agents]
        doubled, cells = (sum(getattr(row, name) for row in here.values()) for name in ("doubled", "cells"))
        yield f"| `{point}` | {' | '.join(each)} | {doubled} of {cells} | {paper} |"
    doubled, told = (sum(getattr(row, name) for row in rows) for name in ("doubled", "told"))
    yield ""
    yield f"In {told} of the {doubled} doubled cells the agent said that the task was done; the models of *Limbo* did in 90%."
    yield "[A row for each agent and point](deliveredto.csv)."


def of_resumed(rows: Sequence[FunctionCell]) -> Iterator[str]:
    """Yield the lines on two processes that resume, beside a paper's."""
    resumed = [row for row in rows if row.cell.endswith(".resumed_twice")]
    frameworks = {row.framework for row in resumed}
    doubled = len(frameworks - {row.framework for row in resumed if row.verdict != "doubled"})
    fired = sorted({max(row.refunds, row.mails) for row in resumed})
    yield f"In {doubled} of {len(frameworks)} frameworks of [the table above](#agents-of-frameworks) two processes that resume"
    yield f"at the same time repeat the refund (`resumed_twice`): {' or '.join(map(str, fired))} refunds are in the database."
    yield "*Resume Means Resume* ([arXiv 2608.03836](https://arxiv.org/abs/2608.03836)) found that an effect"
    yield "fires twice in 36 of 40 cells."


def of_functions(rows: Sequence[FunctionCell]) -> Iterator[str]:
    """Yield the lines on agents whose tools are functions."""
    own = [row for row in rows if row.framework not in REPORTS]
    of_sqlite, of_postgres = ([row for row in own if row.store == store] for store in ("SQLite", "PostgreSQL"))
    cells = list(dict.fromkeys(row.cell for row in of_sqlite))
    yield f"| tried | {' | '.join(f'`{cell}`' for cell in cells)} |"
    yield f"| --- |{' --- |' * len(cells)}"
    for version in dict.fromkeys(row.version for row in of_sqlite):
        verdicts = {row.cell: row.verdict.replace("_", " ") for row in of_sqlite if row.version == version}
        yield f"| {version} | {' | '.join(verdicts.get(cell, '') for cell in cells)} |"
    damaged, differ = (sum(row.verdict in DAMAGE for row in rows), sum(row.differs for row in rows))
    yield ""
    yield f"Of all {len(rows)} cells of this section {damaged} have damage. Our own SQL counts refunds and mails at the end of"
    yield f"each run; in {differ} cells the verdict contradicts this count. The cell of an empty field was not run."
    yield "[A row for each cell](functioncell.csv)."
    if of_postgres:
        at = {(row.framework, row.cell): row.verdict for row in of_sqlite}
        same = sum(at.get((row.framework, row.cell)) == row.verdict for row in of_postgres)
        names = sorted({row.version.rpartition(" ")[0] for row in of_postgres})
        yield ""
        yield f"Over PostgreSQL {len(names)} of these agents were tried ({', '.join(names)})"
        yield f"in {len(of_postgres)} cells: in {same} cells the verdict is the same as over SQLite."
    yield ""
    yield "We rebuilt six bug reports of other projects, each in at most 60 lines:"
    yield ""
    yield "| report | tried | cell | verdict | mended |"
    yield "| --- | --- | --- | --- | --- |"
    for row in (row for row in rows if row.framework in REPORTS):
        report = REPORTS[row.framework]
        files = f"[{report.name}]({report.url}), [rebuilt](../../tools/reports/functions/agents/with_{row.framework}.py)"
        yield f"| {files} | {row.version} | `{row.cell}` | {row.verdict} | {report.mended} |"


def of_clients(rows: Sequence[ClientRows]) -> Iterator[str]:
    """Yield the lines on clients of PostgreSQL through the door of the database."""
    equal, names = sum(row.equal for row in rows), list(dict.fromkeys(row.client for row in rows))
    yield f"We tried the clients {', '.join(names)}, without and with TLS. In {equal} of {len(rows)} sessions"
    yield f"a client read the same rows through the gateway as from the copy, in {sum(row.calls for row in rows):,} calls."
    yield "The table shows the gateway's processor milliseconds for a call, in one session each, on a machine with other work:"
    yield ""
    yield "| client | without TLS | `sslmode=require` | `sslmode=verify-full` |"
    yield "| --- | --- | --- | --- |"
    for name in names:
        taken = {row.mode: row.milliseconds for row in rows if row.client == name}
        yield f"| {name} | {taken.get('disable', '')} | {taken.get('require', '')} | {taken.get('verify-full', '')} |"
    yield ""
    yield "[A row for each](clientrows.csv)."


def summary(record: Path) -> Iterator[str]:
    """Yield the main counts of all tests, a list."""
    functions, pairs, boxed = read(record, FunctionCell), read(record, Pair), read(record, Boxed)
    frameworks = len({row.framework for row in functions} - set(REPORTS))
    damaged, differ = sum(row.verdict in DAMAGE for row in functions), sum(row.differs for row in functions)
    yield f"- **Frameworks**: {damaged} of {len(functions)} cells have damage, with agents of {frameworks} frameworks and"
    yield f"  rebuilt bug reports. In {differ} cells the verdict contradicts our own SQL, which counts refunds and mails."
    harm, proven, cells = (sum(getattr(pair, name) for pair in pairs) for name in ("damaged", "proven", "cells"))
    yield f"- **Servers of others**: {harm} of {cells} cells have damage, {proven} also in a second run. These are {len(pairs)}"
    same = sum(row.is_equal for row in boxed)
    yield "  pairs of an agent and a server, each with its gravest cells; the other planned cells did not run. In"
    yield f"  {same} of {len(boxed)} cells the verdict is the same with the box and without."
    trials, otherwise = _sums(read(record, Equality), "trials", "differ")
    yield f"- **Worlds**: in {otherwise} of {trials} trials in a [world](worlds.md) the verdict is not the world's own count."
    delivered, scored = read(record, Delivered), read(record, Scored)
    harmed, missed = sum(row.harmed for row in delivered), sum(row.is_missed for row in delivered)
    alarms = sum(row.is_wrong and not row.harmed for row in delivered)
    yield f"- **Deliveries**: small agents did harm in {harmed} of {len(delivered)} cells; the probe missed {missed} of these"
    yield f"  harms, and raised {alarms} false alarms."
    planted, harmless = ([row for row in scored if row.is_harmless == kind] for kind in (False, True))
    exact, accuses = sum(row.is_exact for row in planted), sum(row.accuses for row in harmless)
    yield f"- **Blame**: the probe blames {exact} of {len(planted)} planted weaknesses exactly. It blames a part after"
    yield f"  {accuses} of {len(harmless)} harmless edits."


def _sums(rows: Sequence[Equality], *names: str) -> list[int]:
    return [sum(getattr(row, name) for row in rows) for name in names]


def page(text: str, record: Path) -> str:
    """Return the page with what the record holds in the places that are marked for it."""
    parts = {
        "blame": of_blame(read(record, Scored)),
        "boxed": of_boxed(read(record, Boxed)),
        "pairs": of_pairs(read(record, Pair)),
        "delivered": of_delivered(read(record, Delivered)),
        "delivery": of_deliveries(read(record, DeliveredTo)),
        "equality": of_equality(read(record, Equality)),
        "resumed": of_resumed(read(record, FunctionCell)),
        "functions": of_functions(read(record, FunctionCell)),
        "clients": of_clients(read(record, ClientRows)),
        "tested": summary(record),
    }
    for name, lines in parts.items():
        begin, end = f"<!-- {name}: python -m probe.report -->\n", f"<!-- end of {name} -->"
        before, found, rest = text.partition(begin)
        if found:
            text = before + begin + "\n".join(lines) + f"\n{end}" + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path.read_text(encoding="utf-8"), RECORD), encoding="utf-8")
