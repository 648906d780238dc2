"""A whole probe of a small agent, its server over stdio and its SQLite database."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from till import ROOT, MadeProbe, desk, probed, till, worker_of
from waiting import wait_until

from bench.common.errors import ConfigError, OriginalChanged
from bench.probe.points import selects_cell
from bench.probe.run.cells import require_cells
from bench.probe.run.gateway.subject import OwnersCheck, Subject
from bench.probe.run.probe import Probe, ProbeRequest
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe_events import CellsPlanned, GatewayCall

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probe's processes are watched on Linux")


def damaged(runs: Sequence[CellRun]) -> Mapping[str, int]:
    """Return how many runs of each cell did damage, with nothing mended."""
    return Counter(run.plan for run in runs if run.judgement and run.judgement.is_damage and "+" not in run.plan)


def verdicts(runs: Sequence[CellRun]) -> dict[tuple[str, int], str]:
    return {(run.plan, run.repetition): run.judgement.verdict if run.judgement else run.problem for run in runs}


def test_an_agent_that_asks_again_pays_twice_and_a_key_keeps_it_from_that(tmp_path: Path, asks_again: MadeProbe) -> None:
    bare, plan = asks_again.runs, "till.charge#1.lost"
    keyed = probed(tmp_path, till(tmp_path, "again keyed"), "charge#1.lost")
    assert verdicts(bare)[plan, 0] == verdicts(bare)[plan, 1] == "doubled"
    assert damaged(bare) == {plan: 2}
    assert verdicts(keyed)[plan, 0] == "absorbed"
    assert not damaged(keyed)
    struck = next(run for run in bare if run.plan == plan)
    first, again = (call for call in of_kind(struck.events, GatewayCall) if call.arguments == call_of(struck).arguments)
    assert (first.point, first.given_otherwise, again.repeats, again.cause) == ("lost", True, first.number, "client")
    assert struck.judgement and struck.texts[struck.judgement.on_stdout or ""] == "all done\n"


def call_of(run: CellRun) -> GatewayCall:
    return next(call for call in of_kind(run.events, GatewayCall) if call.point)


def test_a_killed_agent_that_begins_anew_pays_twice_and_one_that_looks_does_not(tmp_path: Path, begins_anew: MadeProbe) -> None:
    plan = "till.charge#1.unacknowledged"
    looks = probed(tmp_path, till(tmp_path, "looks"), "charge#1.unack", until=plan)
    assert verdicts(begins_anew.runs)[plan, 0] == "doubled"
    again = next(call for call in of_kind(begins_anew.runs[3].events, GatewayCall) if call.repeats)
    assert again.cause == "restart"
    assert verdicts(looks)[plan, 0] == "same"


def test_an_agent_whose_model_asks_again_pays_twice_over_http(over_http: MadeProbe) -> None:
    runs = over_http.runs
    planned = next(iter(of_kind(runs[2].events, CellsPlanned)))
    assert {call.name: call.call_class for call in planned.calls} == {
        "model./v1/chat/completions#1": "model",
        "shop.POST /payments#1": "effect",
        "model./v1/chat/completions#2": "model",
    }
    assert {"shop.payments.id", "shop.entries.payment"} <= set(planned.volatile)
    outcomes = verdicts(runs)
    assert outcomes["shop.POST /payments#1.lost", 0] == outcomes["shop.POST /payments#1.unacknowledged", 0] == "doubled"
    assert outcomes["model./v1/chat/completions#1.model_lost", 0] == "same"
    causes = {run.plan.rpartition(".")[2]: [call.cause for call in of_kind(run.events, GatewayCall)] for run in runs}
    assert causes["lost"] == ["", "", "", "model", ""]
    assert "restart" in causes["unacknowledged"]
    assert causes["model_lost"] == ["", "client", "", ""]
    twice = next(run for run in runs if run.plan.endswith("twice"))
    assert twice.judgement and [finding.culprit for finding in twice.judgement.findings] == ["tool"]
    assert all(not run.problem for run in runs) and len(damaged(runs)) == 4


def test_the_clean_runs_tell_effects_reads_and_what_nobody_sees(tmp_path: Path) -> None:
    runs = probed(tmp_path, till(tmp_path, "looks"), "#1.error", most=3)
    planned = next(iter(of_kind(runs[2].events, CellsPlanned)))
    assert {call.name: call.call_class for call in planned.calls} == {
        "till.balance#1": "read",
        "till.charge#1": "effect",
        "till.charge#2": "effect",
        "till.ship#1": "effect",
        "till.ring#1": "unseen",
    }
    assert (planned.volatile, planned.one_by_one) == (("shop.payments.at",), True)


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("quiet", "no call came through the gateway"),
        ("fails", "ended with exit code 3"),
        ("early", r"agent ended with exit code 4\. It printed last: ValueError: no such account$"),
        ("wild", "1 row changed without a call"),
        ("ever", "did not end within its limit"),
    ],
)
def test_a_clean_run_that_does_not_count_is_said_in_one_line(tmp_path: Path, mode: str, says: str) -> None:
    limit = 2.5 if mode == "ever" else 30.0
    with pytest.raises(ConfigError, match=says) as raised:
        probed(tmp_path, till(tmp_path, mode, limit=limit))
    assert "\n" not in str(raised.value)
    assert not list((tmp_path / "worker-0" / "stores").iterdir())


def asking(folder: Path, answers: bytes) -> Subject:
    """A subject whose agent asks a person before it pays."""
    subject = till(folder, "again keyed")
    program, *words = subject.agent.start[1:]
    again = f"sys.argv[0] = {program!r}; runpy.run_path({program!r}, run_name='__main__')"
    asks = f"import runpy, sys; input('sure? ') == 'y' or sys.exit(6); {again}"
    start = (subject.agent.start[0], "-c", asks, *words)
    return replace(subject, agent=replace(subject.agent, start=start, resume=start, answers=answers))


def test_an_agent_that_asks_a_person_gets_the_answers_and_without_any_is_told_that_its_input_is_empty(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"EOFError: .*the end of its standard input: answers = \"y\\n\" in probe.toml says"):
        probed(tmp_path, asking(tmp_path, b""))
    (tmp_path / "answered").mkdir()
    (run,) = probed(tmp_path / "answered", asking(tmp_path / "answered", b"y\n"), most=1)
    assert run.judgement and run.judgement.verdict == "same"


def test_an_agent_that_writes_where_all_is_read_only_is_told_to_name_a_store(tmp_path: Path) -> None:
    subject = till(tmp_path, "again keyed")
    fails = "import sys; sys.exit('OSError: [Errno 30] Read-only file system: /data/x')"
    start = (sys.executable, "-c", fails, *subject.agent.start[2:])
    with pytest.raises(ConfigError, match=r"/data/x\. In the box .* name what it writes elsewhere as a \[\[store\]\]"):
        probed(tmp_path, replace(subject, agent=replace(subject.agent, start=start, resume=start)))


@pytest.mark.parametrize(("word", "near"), [("till.charge#1.lsot", "'till.charge#1.lost'"), ("till.chrage", "'till.charge'")])
def test_a_cell_that_cannot_be_is_refused_with_the_nearest_names_by_the_first_clean_run(
    tmp_path: Path, word: str, near: str
) -> None:
    ended = list[CellRun]()

    subject = till(tmp_path, "again")

    async def first_runs() -> None:
        async for run in Probe(subject, worker_of(subject, tmp_path), ProbeRequest(only=(word,))).runs():
            ended.append(run)

    with pytest.raises(ConfigError, match=f"--only {word}: no cell has this in its name; did you mean {near}"):
        asyncio.run(first_runs())
    assert not ended and (tmp_path / "worker-0").exists() == (word == "till.chrage")


def test_a_point_that_no_call_has_is_passed_over_beside_one_that_has_a_cell() -> None:
    plans = ["shop.POST /tickets/T-7/notes#1.lost", "shop.POST /tickets/T-7/notes#1.lost.error"]
    points = (["lost", "meanwhile"], ["*.lost", "*.meanwhile"], [".lost.error", ".resumed_twice.undone"])
    for only in (*points, ["POST /tickets/*/notes#1.lost"]):
        require_cells(only, plans)
    assert not selects_cell("twice", "shop.pay#1.resumed_twice") and not selects_cell("error", plans[1])
    assert selects_cell("lost", plans[1]) and selects_cell("resumed_twice", "shop.pay#1.resumed_twice.undone")
    for only in (["meanwhile"], ["lost", "lsot"], ["lost", "shop.PUT /tickets#1.meanwhile"]):
        with pytest.raises(ConfigError, match=f"--only {only[-1]}: no cell has this"):
            require_cells(only, plans)


@pytest.mark.parametrize("word", ["*.meanwhile", "meanwhile", ".meanwhile", "meanwhile.*"])
def test_a_point_that_no_call_has_is_refused_with_the_points_that_there_are(word: str) -> None:
    plans = ["shop.pay#1.lost", "shop.pay#1.lost.error", "shop.pay#2.resumed_twice"]
    with pytest.raises(ConfigError) as refused:
        require_cells([word], plans)
    says = (
        f"--only {word}: no cell has this in its name; no call has this point; the points that there are: lost, resumed_twice"
    )
    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("variable", "path", "method", "says"),
    [
        (
            "OPENAI_BASE_URL",
            "/chat/completions",
            "POST",
            r"no call .*made 1 request to its model; for tools in its own process write",
        ),
        (
            "SHOP_URL",
            "/refunds",
            "PUT",
            r"changed nothing that a witness sees; .* The last error: shop\.PUT /refunds answered ",
        ),
    ],
)
def test_an_agent_whose_tools_are_not_seen_or_fail_is_told_why(
    tmp_path: Path, variable: str, path: str, method: str, says: str
) -> None:
    program = f"""
import os, urllib.error, urllib.request
body = b'{{"model": "m", "messages": [{{"role": "user", "content": "pay 30"}}]}}'
asked = urllib.request.Request(os.environ['{variable}'] + '{path}', body, method='{method}')
try:
    urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(asked).read()
except urllib.error.HTTPError:
    pass
"""
    subject, words = desk(tmp_path), (sys.executable, "-c", program)
    with pytest.raises(ConfigError, match=says):
        probed(tmp_path, replace(subject, agent=replace(subject.agent, start=words, resume=words)))


def test_a_server_that_ends_at_its_start_is_named_with_its_code_and_its_last_word(tmp_path: Path) -> None:
    subject = till(tmp_path, "")
    program = "import sys; print('no licence', file=sys.stderr); sys.exit(5)"
    server = {"command": sys.executable, "args": ["-c", program]}
    subject.configs[0].path.write_text(json.dumps({"mcpServers": {"till": server}}))
    with pytest.raises(ConfigError, match="the server till: it ended with exit code 5: no licence; the agent ended with"):
        probed(tmp_path, subject)


def test_an_agent_that_ignores_the_config_is_run_once_and_the_store_that_it_wrote_to_is_named(tmp_path: Path) -> None:
    subject, runs = till(tmp_path, ""), list[CellRun]()
    program = f"import sqlite3; sqlite3.connect({str(tmp_path)!r} + '/' + 'shop.db').executescript('DELETE FROM accounts')"
    words = (sys.executable, "-c", program, str(subject.configs[0].path))
    subject = replace(subject, agent=replace(subject.agent, start=words, resume=words))

    async def all_runs() -> None:
        async for run in Probe(subject, worker_of(subject, tmp_path)).runs():
            runs.append(run)

    with pytest.raises(OriginalChanged, match="store 'shop' itself changed in clean run 1, and not its copy alone") as raised:
        asyncio.run(all_runs())
    assert [run.problem for run in runs] == [str(raised.value)]


def test_what_the_owner_says_only_reads_is_a_read_unless_a_witness_sees_more(tmp_path: Path) -> None:
    subject = replace(till(tmp_path, "looks"), reads=("till.ri*", "till.ship"))
    runs = probed(tmp_path, subject, "#1.error", most=3)
    planned = next(iter(of_kind(runs[2].events, CellsPlanned)))
    kinds = {call.name: (call.call_class, call.contradicts) for call in planned.calls}
    assert kinds["till.ring#1"] == ("read", False) and kinds["till.ship#1"] == ("effect", True)


def test_a_tool_that_claims_to_read_and_pays_twice_is_doubled_and_contradicts_what_it_claims(tmp_path: Path) -> None:
    subject, plan = till(tmp_path, "again"), "till.charge#1.lost"
    config = json.loads(subject.configs[0].path.read_text())
    config["mcpServers"]["till"]["args"].append("lies")
    subject.configs[0].path.write_text(json.dumps(config))
    subject = replace(subject, checks=(OwnersCheck("shop", "SELECT count(*), sum(amount) FROM payments"),))
    runs = probed(tmp_path, subject, "charge#1.lost", until=plan)
    calls = next(iter(of_kind(runs[2].events, CellsPlanned))).calls
    assert [(call.call_class, call.contradicts) for call in calls if call.tool == "charge"] == [("effect", True)] * 2
    assert runs[-1].judgement and runs[-1].judgement.verdict == "doubled"
    assert [runs[-1].texts[check] for check in runs[-1].judgement.checks] == ["[(3, 80)]"]


def test_what_differs_between_clean_runs_is_listed(tmp_path: Path) -> None:
    runs = probed(tmp_path, till(tmp_path, "odd"), "#1.error", most=3)
    planned = next(iter(of_kind(runs[2].events, CellsPlanned)))
    assert "till.charge: amount" in planned.volatile
    assert "shop.payments.amount" in planned.volatile


def test_a_probe_that_is_left_and_taken_up_again_runs_only_what_is_missing(tmp_path: Path) -> None:
    subject = till(tmp_path, "again")
    first = probed(tmp_path, subject, "charge#1.error", "charge#2.error", "ship#1.error", most=4)
    assert not list((tmp_path / "worker-0" / "stores").iterdir())
    rest = probed(tmp_path, subject, "charge#1.error", "charge#2.error", "ship#1.error", kept=first)
    assert [run.plan for run in first] == ["clean", "clean", "clean", "till.charge#1.error"]
    cells = [run.plan for run in rest if run.repetition == 0 and run.plan != "control"]
    assert cells == ["till.charge#2.error", "till.ship#1.error"]
    assert not damaged([*first, *rest])


def test_two_workers_share_the_cells(tmp_path: Path) -> None:
    runs = probed(tmp_path, till(tmp_path, "again keyed"), "error", workers=2)
    cells = [run.plan for run in runs if run.plan not in ("clean", "control") and run.repetition == 0]
    assert sorted(cells) == [f"till.{call}.error" for call in ("charge#1", "charge#2", "ring#1", "ship#1")]
    assert set(verdicts(runs).values()) == {"same"}
    assert not damaged(runs)


def test_a_budget_leaves_cells_out(tmp_path: Path) -> None:
    runs = probed(tmp_path, till(tmp_path, "again"), budget=0.0)
    assert [run.plan for run in runs] == ["clean"] * 3


def test_a_killed_probe_leaves_no_process(tmp_path: Path) -> None:
    subject = till(tmp_path, "ever")
    program = (
        "import asyncio, sys; from pathlib import Path; from till import till, worker_of\n"
        "from bench.probe.run.probe import Probe\nfolder = Path(sys.argv[1]); subject = till(folder, 'ever')\n"
        "async def main():\n    async for run in Probe(subject, worker_of(subject, folder)).runs(): pass\n"
        "asyncio.run(main())"
    )
    (tmp_path / "shop.db").unlink()
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/tests/support"}
    probe = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], env=environment)
    try:
        wait_until(lambda: any("till_server.py" in line and str(tmp_path) in line for line in commands()))
    finally:
        probe.send_signal(signal.SIGKILL)
        probe.wait()
    wait_until(lambda: not any(str(tmp_path) in line for line in commands()))
    assert subject.agent.folder == tmp_path


def commands() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return lines


@pytest.mark.parametrize(("mode", "verdict"), [("again", "doubled"), ("again keyed", "absorbed")])
def test_over_a_pipe_a_call_is_still_in_flight_when_the_agent_makes_it_again(tmp_path: Path, mode: str, verdict: str) -> None:
    runs = probed(tmp_path, till(tmp_path, mode), "charge#1.in_flight", most=4)
    assert verdicts(runs)["till.charge#1.in_flight", 0] == verdict
    held = call_of(runs[3])
    others = [call for call in of_kind(runs[3].events, GatewayCall) if call.given is not None]
    assert held.given is None and held.answered is not None and held.went == "disconnected"
    assert held.passed_on is not None and any(call.given is not None and call.given < held.passed_on for call in others)
