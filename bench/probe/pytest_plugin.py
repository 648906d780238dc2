"""The pytest plug-in of the probe: a marker that names a `probe.toml` and cells, and a fixture with the result of a cell.

    @pytest.mark.probe("probe.toml", "bank.pay#1.lost", "bank.pay#1.unacknowledged", tape="pay.json")
    def test_pays_once(probed):
        assert probed.verdict in ("same", "absorbed"), probed.timeline

Each cell is a test of its own. With a tape only the agent is started; without one the cell runs on copies of the stores. The
file is looked for in the test's folder and in its parents; its paths are relative to the folder in which it is found. A
project with its own fixture `probed` is not affected. Each run of pytest imports this module, so slow modules are imported
where they are used.
"""

from __future__ import annotations

import os
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from bench.probe.run.writing import CellRun
    from bench.record.probe_events import CellVerdict, GatewayCall
    from bench.record.probe_rows import RowDifference

MARKER = "probe(file, *cells, tape=None): strike these cells of the agent that a probe.toml names, from a tape beside the test"


class ProbedCell(NamedTuple):
    """The result of a cell.

    cell, verdict, why   its plan, the verdict, and the reason
    calls                the calls at the gateway, in their order
    rows                 the rows that differ from the clean runs
    timeline             what happened, step by step, as text
    """

    cell: str
    verdict: CellVerdict
    why: str
    calls: tuple[GatewayCall, ...]
    rows: tuple[RowDifference, ...]
    timeline: str


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if _uses_probed_fixture(metafunc) and (marker := metafunc.definition.get_closest_marker("probe")):
        if len(marker.args) < 2 or not all(isinstance(word, str) for word in marker.args):
            raise pytest.UsageError(f"{metafunc.definition.nodeid}: the marker names no cell; write probe(FILE, CELL, ...)")
        metafunc.parametrize("probed", marker.args[1:], indirect=True)


def _uses_probed_fixture(metafunc: pytest.Metafunc) -> bool:
    """Return whether a test uses this module's fixture `probed`, and not another fixture of that name. Pytest has no public
    function for this check."""
    definitions = metafunc._arg2fixturedefs.get("probed")
    return definitions is not None and definitions[-1].func.__module__ == __name__


@pytest.fixture
def probed(request: pytest.FixtureRequest) -> ProbedCell:
    """Return the result of a cell that the marker `probe` names. Without a verdict the test fails, since it shows nothing."""
    from bench.common.errors import ConfigError  # noqa: PLC0415

    marker = request.node.get_closest_marker("probe")
    if marker is None:
        pytest.fail("the fixture `probed` needs the marker `probe`: @pytest.mark.probe(FILE, CELL)", pytrace=False)
    file, tape = marker.args[0], marker.kwargs.get("tape")
    tape_path = request.path.parent / tape if tape else None
    try:
        with chdir(_folder_with(file, request.path)):
            run, tape_note = _run(Path(file), request.param, tape_path)
            cell = _probed_cell(run, tape_note)
    except ConfigError as error:
        pytest.fail(f"{request.param}: {error}", pytrace=False)
    if cell.verdict in ("no_verdict", "not_applicable"):
        pytest.fail(f"{cell.cell} has no verdict: {cell.why}\n{cell.timeline}", pytrace=False)
    return cell


def _folder_with(file: str, test: Path) -> Path:
    """Return the nearest parent folder of a test that contains this path; the current folder if none does."""
    return next((folder for folder in test.parents if (folder / file).is_file()), Path.cwd())


def _run(file: Path, plan: str, tape: Path | None) -> tuple[CellRun, str]:
    """Return the run of a cell, in a box if this machine can make a box, and a note about its tape; "" without a tape."""
    from bench.probe.run.box.box import NoBox  # noqa: PLC0415

    try:
        return _run_once(file, plan, tape, boxed=True)
    except NoBox:
        return _run_once(file, plan, tape, boxed=False)


def _run_once(file: Path, plan: str, tape: Path | None, *, boxed: bool) -> tuple[CellRun, str]:
    """Return the run of a cell, played from its tape if there is one, and a note about the tape; "" without a tape."""
    import asyncio  # noqa: PLC0415

    from bench.common.errors import ConfigError  # noqa: PLC0415
    from bench.common.escaping import escape_line  # noqa: PLC0415
    from bench.probe.run.secrets import Secrets  # noqa: PLC0415
    from bench.probe.run.settings import ProbeSettings  # noqa: PLC0415
    from bench.probe.run.tape import play_tape, read_tape, record_tapes  # noqa: PLC0415

    settings = ProbeSettings(file, is_taped=tape is not None, boxed=boxed)
    if tape is None:
        settings.check_unasked()
        hidden = Secrets.of(settings.subject, os.environ, settings.secret_addresses)
        with hidden.removed_from_errors():
            return asyncio.run(record_tapes(settings, hidden, plan))[0][1], ""
    recorded = read_tape(tape)
    if recorded.plan != plan:
        raise ConfigError(f"{tape}: is the tape of {recorded.plan}; record this cell by: bench probe --test '{plan}'")
    date_note = f" of {recorded.recorded}" if recorded.recorded else ""
    note = f"this replays the servers, the model and the rows{date_note}; "
    note += "after a mend outside of the agent's code record them anew: "
    return asyncio.run(play_tape(settings, recorded)), f"{note}bench probe --test '{escape_line(plan)}'"


def _probed_cell(run: CellRun, note: str) -> ProbedCell:
    """Return the result of a cell's run as the fixture gives it to a test; `note` ends its timeline."""
    from bench.common.escaping import escape_line  # noqa: PLC0415
    from bench.probe.read.steps import lines_of  # noqa: PLC0415
    from bench.record.events import of_kind  # noqa: PLC0415
    from bench.record.probe_events import GatewayCall  # noqa: PLC0415

    judged = run.judgement
    assert judged
    rows = tuple(row for finding in judged.findings for row in finding.rows)
    timeline = "\n".join(filter(None, [escape_line(run.plan), *lines_of(run.events, run.texts), note]))
    return ProbedCell(run.plan, judged.verdict, judged.why, tuple(of_kind(run.events, GatewayCall)), rows, timeline)
