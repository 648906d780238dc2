"""What a user sees: results where all is well, and one clear line and an exit code other than zero where it is not."""

from __future__ import annotations

import json
import re
import resource
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer
from commands import UNDRAWN, bench, bench_anew, sabotaged, start_anew, workplace
from experiment_runs import sessions_of
from scripted_server import ScriptedServer, completion, hang, html, status
from written_traces import acting, trajectory

from bench.cli.authoring.new import new_scenario
from bench.cli.command import COMMAND_METAVAR, add_command
from bench.cli.command_part import COMMANDS, CommandPart
from bench.common.errors import ConfigError
from bench.common.packs import find_packs
from bench.common.paths import PACKS
from bench.record.files import TRIALS
from bench.record.reading import read_manifest, read_trials

ORCHARD = ("--scenarios", str(Path(__file__).parents[1] / "support" / "packs"))
OPENAI_TABLE = '[model.{name}]\nkind = "openai"\nbase_url = "{url}"\ntimeout_seconds = 1\n'


def refused(result: tuple[int, str, str]) -> str:
    """The one line of a command that refused its input."""
    code, _, err = result
    assert code == 2, result
    assert err.startswith("bench: ") and err.count("\n") == 1, err
    return err


def test_a_run_and_its_report_begin_with_nothing_but_a_pack_and_a_config(tmp_path: Path) -> None:
    workplace(tmp_path)
    code, out, err = bench_anew(tmp_path, "run", "configs/small.toml", "--report")
    assert (code, err) == (0, "")
    assert "SIMULATED" in out.splitlines()[0]
    assert len(list(read_trials(tmp_path / "results" / "small-simulated"))) == 8
    assert (tmp_path / "reports" / "small-simulated" / "report.html").stat().st_size > 1000


def test_nothing_is_taken_over_where_every_request_is_sent(tmp_path: Path) -> None:
    workplace(tmp_path)
    code, _, err = bench(tmp_path, "run", "configs/small.toml", "--cache-from", "earlier")
    message = "--cache-from: no model of the config has cache = true, so no reply would be reused"
    assert (code, err) == (2, f"bench: {message}\n")


def test_a_second_run_does_only_what_is_missing(tmp_path: Path) -> None:
    workplace(tmp_path)
    bench(tmp_path, "run", "configs/small.toml")
    code, out, _ = bench(tmp_path, "run", "configs/small.toml", "--repetitions", "3")
    assert code == 0 and "12 trials, 8 of them recorded already" in out
    trials = list(read_trials(tmp_path / "results" / "small-simulated"))
    assert len(trials) == len({trial.id for trial in trials}) == 12


def test_a_sample_of_instances_is_named_in_the_manifest(tmp_path: Path) -> None:
    workplace(tmp_path)
    code, out, _ = bench(tmp_path, "run", "configs/small.toml", "--scenario", "orchard", "--instances", "2", *ORCHARD)
    assert code == 0 and "16 trials" in out
    manifest = json.loads((tmp_path / "results" / "small-simulated" / "manifest.json").read_text())
    assert manifest["config"]["instances"] == len(manifest["scenarios"]["orchard"]["instances"]) == 2


def test_some_architectures_and_plans_of_a_config_are_run_alone(tmp_path: Path) -> None:
    workplace(tmp_path)
    alone = ("--architecture", "static", "--plan", "none")
    code, _, err = bench(tmp_path, "run", "configs/small.toml", *alone)
    assert (code, err) == (0, "")
    trials = list(read_trials(tmp_path / "results" / "small-simulated"))
    assert {(trial.architecture, trial.plan) for trial in trials} == {("static", "none")}
    code, _, err = bench(tmp_path, "run", "configs/small.toml", "--architecture", "statik")
    assert code == 2 and "statik" in err and len(err.splitlines()) == 1


def test_a_recorded_run_is_replayed_and_says_so_in_its_first_line(tmp_path: Path) -> None:
    workplace(tmp_path)
    bench(tmp_path, "run", "configs/small.toml")
    words = ("--model", "recorded:small-simulated", "--report")
    code, out, err = bench(tmp_path, "run", "configs/small.toml", *words, **UNDRAWN)
    assert (code, err) == (0, "")
    assert out.startswith("REPLAY of the run small-simulated, recorded on 20")
    assert "SIMULATED" in out.splitlines()[1]
    assert len(out.splitlines()) <= 12 + len(["it is simulated"]) and max(map(len, out.splitlines())) <= 103
    live, again = (read_trials(tmp_path / "results" / f"small-simulated{end}") for end in ("", "-replay"))
    assert [(trial.outcome, trial.tokens, trial.api_seconds) for trial in again] == [
        (trial.outcome, trial.tokens, trial.api_seconds) for trial in live
    ]
    page = tmp_path / "reports" / "small-simulated-replay" / "report.html"
    assert "recorded:small-simulated (SIMULATED)" in page.read_text()


def test_a_concurrency_is_declared_for_a_replay_alone_whose_first_line_says_so(tmp_path: Path) -> None:
    workplace(tmp_path, repetitions=1)
    code, _, err = bench(tmp_path, "run", "configs/small.toml", "--concurrency", "2")
    line = "is for --model recorded:RUN or PROVIDER/NAME; of a model in the config its table says it"
    assert (code, err) == (2, f"bench: --concurrency: {line}\n")
    bench(tmp_path, "run", "configs/small.toml")
    words = ("--model", "recorded:small-simulated", "--concurrency", "2")
    code, out, err = bench(tmp_path, "run", "configs/small.toml", *words)
    assert (code, err) == (0, "") and "2 calls at a time as declared" in out.splitlines()[0]


def test_what_a_recording_does_not_hold_ends_in_one_line_that_says_how_to_record_it(tmp_path: Path) -> None:
    config = workplace(tmp_path)
    bench(tmp_path, "run", "configs/small.toml")
    config.write_text(config.read_text().replace('effect = "missing_field"', 'effect = "wrong_type"'))
    code, out, err = bench(tmp_path, "run", "configs/small.toml", "--model", "recorded:small-simulated", "--report", **UNDRAWN)
    assert code == 1 and err.count("\n") == 1
    assert "trials ended in an error and are left out of every mean" in " ".join(out.split())
    assert (tmp_path / "reports" / "small-simulated-replay" / "report.html").exists(), "the other trials have their report"
    assert "trials ended in an error, the first: " in err and "holds no reply to attempt 2 at " in err
    assert "to record one, run or serve this config on simulated itself" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["recorded:nothing"], "results/nothing: holds no run"),
        (["recorded:small-simulated", "simulated"], "models: 'simulated' appears twice"),
    ],
)
def test_a_recording_that_cannot_be_used_is_one_line(tmp_path: Path, words: list[str], message: str) -> None:
    workplace(tmp_path)
    bench(tmp_path, "run", "configs/small.toml")
    chosen = [word for name in words for word in ("--model", name)]
    assert message in refused(bench(tmp_path, "run", "configs/small.toml", *chosen))


def test_workers_for_agents_that_are_no_commands_are_refused_before_anything_is_begun(tmp_path: Path) -> None:
    workplace(tmp_path)
    line = refused(bench(tmp_path, "run", "configs/small.toml", "--workers", "2"))
    assert "--workers: no agent of this config is a command" in line
    assert not (tmp_path / "results").exists()


def test_a_budget_that_is_reached_is_one_line_and_the_same_command_without_it_goes_on(tmp_path: Path) -> None:
    workplace(tmp_path)
    code, _, err = bench(tmp_path, "run", "configs/small.toml", "--max-tokens", "4000")
    assert code == 1 and err.count("\n") == 1
    pattern = (
        r"stopped: --max-tokens 4,000 is reached \(4,\d\d\d tokens in this invocation\); [1-7] of 8 missing trials are recorded"
    )
    assert re.match(pattern, err) and "the same command goes on" in err
    code, _, err = bench(tmp_path, "run", "configs/small.toml", "--max-minutes", "9", "--max-tokens", "1000000")
    assert (code, err) == (0, "") and len(list(read_trials(tmp_path / "results" / "small-simulated"))) == 8
    assert "--max-cost: model 'simulated' has no price_in" in refused(
        bench(tmp_path, "run", "configs/small.toml", "--max-cost", "1")
    )


def test_a_run_that_stops_early_says_why_and_goes_on_without_the_option(tmp_path: Path) -> None:
    never = '[plan.never]\nfaults = [{ point = "output", effect = "missing_field", attempts = [1, 2, 3] }]'
    config = workplace(tmp_path, repetitions=40, tables=never)
    config.write_text(re.sub("plans = .*", 'plans = ["never"]', config.read_text()))
    line = ("run", "configs/small.toml", "--architecture", "static")
    code, out, err = bench(tmp_path, *line, "--stop-early")
    assert code == 1
    assert "static on demo, plan never: all 20 trials so far gave up; most often: " in " ".join(out.split())
    assert "stopped: --stop-early: all trials of an arm end alike" in " ".join(err.split())
    assert " ".join(err.split()).endswith("the same command goes on, without --stop-early")
    stopped_at = len(list(read_trials(tmp_path / "results" / "small-simulated")))
    code, _, err = bench(tmp_path, *line, "--stop-early")
    assert (code, "nothing was asked" in " ".join(err.split())) == (1, True), "the trials that were recorded before count"
    assert len(list(read_trials(tmp_path / "results" / "small-simulated"))) == stopped_at
    code, out, _ = bench(tmp_path, *line)
    assert (code, "all 40 trials" in out) == (0, False), "of the trials that were recorded before nothing is said again"
    assert sum(record.outcome == "gave_up" for record in read_trials(tmp_path / "results" / "small-simulated")) == 40


def test_a_dry_run_of_a_replay_says_which_cells_the_recording_cannot_answer(tmp_path: Path) -> None:
    config = workplace(tmp_path)
    bench(tmp_path, "run", "configs/small.toml")
    words = ("run", "configs/small.toml", "--model", "recorded:small-simulated", "--dry-run")
    _, out, _ = bench(tmp_path, *words)
    assert "The recording has each reply that these 8 trials ask for." in out
    config.write_text(config.read_text().replace('effect = "missing_field"', 'effect = "wrong_type"'))
    _, out, _ = bench(tmp_path, *words)
    lacking = [line for line in out.splitlines() if "ask what the recording lacks" in line]
    assert lacking and all(line.startswith("2 of 2 trials") and "plan none" not in line for line in lacking)
    assert not (tmp_path / "results" / "small-simulated-replay").exists()
    code, out, _ = bench(tmp_path, "run", "configs/small.toml", "--model", "recorded:small-simulated")
    assert f"error {2 * len(lacking)}" in out and code == 1


def test_a_run_that_is_stopped_says_that_no_report_is_written(tmp_path: Path) -> None:
    workplace(tmp_path)
    code, _, err = bench(tmp_path, "run", "configs/small.toml", "--max-tokens", "4000", "--report")
    told = "no report is written; of what is recorded it is made by: bench report small-simulated"
    assert code == 1 and told in " ".join(err.split())


def test_a_dry_run_shows_every_arm_and_writes_nothing(tmp_path: Path) -> None:
    workplace(tmp_path)
    code, out, _ = bench(tmp_path, "run", "configs/small.toml", "--dry-run")
    rows = [line.split() for line in out.splitlines() if line.startswith((" demo ", " total "))]
    assert code == 0 and [row[0] for row in rows] == ["demo"] * 4 + ["total"]
    trials, calls, tokens = ([int(row[at].replace(",", "")) for row in rows] for at in (-4, -3, -2))
    assert all(numbers[-1] == sum(numbers[:-1]) > 0 for numbers in (trials, calls, tokens)) and rows[-1][-1] == "unknown"
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("asked", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_run_that_is_asked_to_stop_keeps_what_is_recorded_and_says_how_to_go_on(
    tmp_path: Path, asked: signal.Signals, code: int
) -> None:
    workplace(tmp_path, repetitions=2000)
    folder = tmp_path / "results" / "small-simulated"
    with start_anew(tmp_path, "run", "configs/small.toml") as process:
        while not (folder / TRIALS).exists() or (folder / TRIALS).stat().st_size < 100_000:
            time.sleep(0.02)
        process.send_signal(asked)
        _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "the same command goes on from there" in err and "Traceback" not in err
    assert 10 < len(list(read_trials(folder))) < 8000
    assert [session.detail for session in sessions_of(folder)][-1].startswith("stopped: a signal asked for it (")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["demo"]', '["demmo"]', "unknown scenario 'demmo'; did you mean 'demo'?"),
        ('"static"', '"statics"', "unknown architecture 'statics'; did you mean 'static'?"),
        ('["simulated"]', '["simulatd"]', "unknown model 'simulatd'; did you mean 'simulated'?"),
        ('"missing_field"', '"missing_fields"', "unknown effect 'missing_fields'; did you mean 'missing_field'?"),
        ("repetitions = 2", "repetition = 2", "unknown key 'repetition'; did you mean 'repetitions'?"),
        ("failure_rate", "failure_rat", "did you mean 'failure_rate'?"),
        ('"first_reply"]', '"first_replies"]', "unknown fault plan 'first_replies'; did you mean 'first_reply'?"),
        ('point = "output"', 'point = "call"', "effect 'missing_field' cannot strike at 'call'"),
        ("attempts = [1]", "attempts = [1], probability = 0.5", "a fault has one trigger"),
        ("seed = 1", "seed = ", "is not TOML"),
        ('effect = "missing_field"', 'effect = "empty", subtask = "decid"', "no subtask 'decid'; did you mean 'decide'?"),
    ],
)
def test_a_config_that_cannot_be_run_is_one_line_that_says_why(tmp_path: Path, old: str, new: str, message: str) -> None:
    config = workplace(tmp_path)
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))
    assert message in refused(bench(tmp_path, "run", "configs/small.toml"))
    assert not (tmp_path / "results").exists()


def test_a_config_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert "configs/none.toml: cannot be read" in refused(bench(tmp_path, "run", "configs/none.toml"))


def test_a_config_that_has_moved_is_named_where_it_stands_now(tmp_path: Path) -> None:
    config = workplace(tmp_path)
    for place in ("comparisons/chaos", "depth/config"):
        moved = tmp_path / "studies" / f"{place}.toml"
        moved.parent.mkdir(parents=True)
        moved.write_text(config.read_text())
    for former, present in (("chaos", "comparisons/chaos"), ("depth", "depth/config")):
        line = refused(bench(tmp_path, "run", f"configs/{former}.toml"))
        assert line.endswith(f"there is no such file; did you mean 'studies/{present}.toml'?\n")
    assert refused(bench(tmp_path, "run", "configs/smal.toml")).endswith("did you mean 'configs/small.toml'?\n")


def test_all_commands_say_the_same_of_a_run_that_is_not_there(tmp_path: Path) -> None:
    line = "bench: results/nothing: holds no run (no manifest.json); name a folder that `bench run` wrote\n"
    commands = (
        ["report"],
        ["explain diagnose"],
        ["explain diverge"],
        ["scorecard"],
        ["more regrade"],
        ["trace", "--trial", "t"],
        ["trace", "no.such.claim"],
        ["explain shrink", "--trial", "t"],
    )
    for command, *options in commands:
        assert refused(bench(tmp_path, *command.split(), "nothing", *options)) == line, command
    (tmp_path / "results" / "nothing-simulated").mkdir(parents=True)
    (tmp_path / "results" / "smoke.zip").touch()
    others = (["export"], ["verify"], ["more archive"], ["compare"], ["more merge", "--name", "whole"])
    for command, *options in (*commands, *others):
        words = [*command.split(), "nothing-simulatd", *options, *(["other"] if command == "compare" else [])]
        line = "bench: results/nothing-simulatd: holds no run; did you mean 'nothing-simulated'?\n"
        assert refused(bench(tmp_path, *words)) == line, command
    assert refused(bench(tmp_path, "report", "x")).endswith("holds no run; known: nothing-simulated, smoke\n")


def test_a_missing_key_is_one_line_that_names_the_variable(tmp_path: Path) -> None:
    workplace(tmp_path, model="gpt", tables='[model.gpt]\nkind = "openai"\n')
    assert "OPENAI_API_KEY" in refused(bench(tmp_path, "run", "configs/small.toml"))


def test_a_known_providers_model_is_asked_without_a_table(tmp_path: Path) -> None:
    workplace(tmp_path)
    run = ("run", "configs/small.toml", "--architecture", "static", "--plan", "none", "--model")
    assert "ANTHROPIC_API_KEY" in refused(bench(tmp_path, *run, "anthropic/claude"))
    assert "did you mean 'openai'?" in refused(bench(tmp_path, *run, "opnai/gpt"))
    assert "names no model" in refused(bench(tmp_path, *run, "openai/"))
    with ScriptedServer(lambda _: completion("OK")) as server:
        code, out, _ = bench(tmp_path, *run, "ollama/qwen2.5:7b", OLLAMA_BASE_URL=server.base_url)
        assert code == 0 and "gave up 2" in out
        assert {request.body["model"] for request in server.requests} == {"qwen2.5:7b"}
    assert (tmp_path / "results" / "small-qwen2.5-7b").is_dir()


def test_tags_and_a_note_stay_with_a_run_and_a_tag_can_be_added(tmp_path: Path) -> None:
    workplace(tmp_path)
    run = ("run", "configs/small.toml", "--repetitions", "1")
    assert bench(tmp_path, *run, "--tag", "first", "--note", "before the change")[0] == 0
    assert bench(tmp_path, *run, "--tag", "kept")[0] == 0
    manifest = read_manifest(tmp_path / "results" / "small-simulated")
    assert (manifest.tags, manifest.note) == (("first", "kept"), "before the change")
    assert "--tag a/b" in refused(bench(tmp_path, *run, "--tag", "a/b"))
    assert "one line" in refused(bench(tmp_path, *run, "--note", "two\nlines"))


def test_the_parameters_in_which_two_runs_differ_are_shown(tmp_path: Path) -> None:
    workplace(tmp_path)
    for name, repetitions in (("a", "1"), ("b", "2"), ("c", "2")):
        assert bench(tmp_path, "run", "configs/small.toml", "--name", name, "--repetitions", repetitions)[0] == 0
    code, out, _ = bench(tmp_path, "compare", "a", "b", "--parameters", "--json")
    assert (code, json.loads(out)) == (0, {"config.repetitions": {"a": 1, "b": 2}})
    assert bench(tmp_path, "compare", "b", "c", "--parameters")[:2] == (0, "parameters that differ: 0\n")


def test_a_gate_writes_what_it_found_as_a_junit_file(tmp_path: Path) -> None:
    config = workplace(tmp_path)
    (tmp_path / "configs" / "worse.toml").write_text(config.read_text().replace("seed = 1", "seed = 1\nmax_attempts = 1"))
    for name in ("small", "worse"):
        assert bench(tmp_path, "run", f"configs/{name}.toml", "--name", name, "--repetitions", "8")[0] == 0
    for run_b, is_worse in (("small", False), ("worse", True)):
        code, *_ = bench(tmp_path, "compare", "small", run_b, "--measure", "solved", "--junit", "out/gate.xml")
        suite = ElementTree.parse(tmp_path / "out" / "gate.xml").getroot()[0]
        assert (code, suite.get("failures") != "0", suite[0].get("name")) == (is_worse, is_worse, "solved is no worse")
    assert bench(tmp_path, "check", "demo", "--junit", "checks.xml")[0] == 0
    assert len(ElementTree.parse(tmp_path / "checks.xml").getroot()[0]) > 4


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (html, "/v1"),
        (lambda: hang(30), "time"),
        (lambda: completion("OK", usage=None), 'usage = "optional"'),
        (lambda: status(401), "OPENAI_API_KEY"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_one_line_before_any_trial(
    tmp_path: Path, step: Callable[[], object], message: str
) -> None:
    with ScriptedServer([step()]) as server:  # type: ignore[list-item]
        workplace(tmp_path, model="local", tables=OPENAI_TABLE.format(name="local", url=server.base_url))
        assert message in refused(bench(tmp_path, "run", "configs/small.toml"))
    assert not (tmp_path / "results" / "small-local").exists()


def test_an_endpoint_that_refuses_connections_is_one_line(tmp_path: Path) -> None:
    workplace(tmp_path, model="local", tables=OPENAI_TABLE.format(name="local", url="http://127.0.0.1:9/v1"))
    assert "127.0.0.1:9" in refused(bench(tmp_path, "run", "configs/small.toml"))


def test_a_line_cut_short_is_removed_aloud_and_its_trial_run_again(tmp_path: Path) -> None:
    workplace(tmp_path)
    bench(tmp_path, "run", "configs/small.toml")
    path = tmp_path / "results" / "small-simulated" / TRIALS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]) + lines[-2][:50])
    code, out, _ = bench(tmp_path, "run", "configs/small.toml")
    assert code == 0 and "its last line was cut short and has been removed" in out
    assert len(list(read_trials(path.parent))) == 8


def test_results_of_another_config_are_set_aside_only_when_asked(tmp_path: Path) -> None:
    config = workplace(tmp_path)
    bench(tmp_path, "run", "configs/small.toml")
    config.write_text(config.read_text().replace("seed = 1", "seed = 2"))
    assert "another config: seed was 1 and is 2; give --name" in refused(bench(tmp_path, "run", "configs/small.toml"))
    code, out, _ = bench(tmp_path, "run", "configs/small.toml", "--set-aside")
    assert code == 0 and "small-simulated.1" in out
    assert len(list(read_trials(tmp_path / "results" / "small-simulated.1"))) == 8


def test_new_check_and_list_work_on_a_pack_that_nobody_edited(tmp_path: Path) -> None:
    assert bench(tmp_path, "new", "scenario", "mine")[0] == 0
    code, out, _ = bench(tmp_path, "check", "mine")
    assert code == 0 and "FAILED" not in out
    assert "mine" in bench(tmp_path, "list")[1]


def test_where_there_are_no_packs_the_list_says_how_to_get_some(tmp_path: Path) -> None:
    code, out, _ = bench(tmp_path, "list")
    assert code == 0
    assert "  none in scenarios/; begin one with `bench new scenario NAME`, or name a folder of packs with --scenarios\n" in out


def test_a_check_of_no_pack_is_a_mistake_and_no_success(tmp_path: Path) -> None:
    line = refused(bench(tmp_path, "check", "--scenarios", "elsewhere"))
    assert line.startswith("bench: no pack is checked: none in elsewhere/; begin one with")


@pytest.mark.parametrize("name", ["class", "json", "bench"])
def test_a_package_of_parts_has_no_name_that_python_has_already(tmp_path: Path, name: str) -> None:
    line = refused(bench(tmp_path, "new", "plugin", name))
    assert line == f"bench: '{name}' is a word or a module of Python already; choose another name\n"
    assert not (tmp_path / name).exists()


def test_packs_that_came_with_the_package_are_found_beside_those_of_the_folder_which_count_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_scenario("brought", tmp_path / "package")
    new_scenario("mine", tmp_path / "elsewhere")
    monkeypatch.setattr("bench.common.packs.SHIPPED_PACKS", tmp_path / "package")
    monkeypatch.chdir(tmp_path)
    assert list(find_packs(PACKS)) == ["brought"]
    assert list(find_packs([Path("elsewhere")])) == ["mine"]
    for name in ("mine", "brought"):
        new_scenario(name, tmp_path / "scenarios")
        assert find_packs(PACKS)[name] == Path("scenarios", name)
        assert sorted(find_packs(PACKS)) == ["brought", "mine"]


def test_an_option_that_takes_one_value_is_refused_twice_and_a_flag_is_not(tmp_path: Path) -> None:
    mistake = bench(tmp_path, "trace", "x", "--trial", "a", "--trial", "b")
    assert mistake == (2, "", "bench: --trial is given 2 times; give it once\n")
    config = str(workplace(tmp_path))
    assert bench(tmp_path, "run", config, "--dry-run", "--dry-run", "--plan", "none", "--plan", "first_reply")[0] == 0


def test_a_pack_that_is_not_sound_makes_check_exit_with_one(tmp_path: Path) -> None:
    workplace(tmp_path)
    (tmp_path / "scenarios" / "demo" / "reference" / "truth" / "truth.json").write_text('{"volume": "root", "days_left": 1}')
    code, out, _ = bench_anew(tmp_path, "check", "demo")
    assert code == 1 and "FAILED" in out


def test_what_the_locale_cannot_encode_is_printed_as_its_escape(tmp_path: Path) -> None:
    (tmp_path / "Проверка.json").write_text(trajectory(acting("look", "x")))
    code, out, err = bench_anew(tmp_path, "import", "Проверка.json", PYTHONIOENCODING="latin-1")
    assert (code, err) == (0, "") and out.startswith("\\u041f\\u0440")


def test_a_template_that_the_disk_does_not_hold_is_one_line_that_names_a_file(tmp_path: Path) -> None:
    full = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (300, 300))
    line = refused(sabotaged(tmp_path, full, "new", "scenario", "demo"))
    assert line.endswith("cannot be written: File too large\n") and "/demo/" in line
    assert list((tmp_path / "scenarios").iterdir()) == []


def test_an_archive_is_told_with_its_size_in_a_unit_that_fits(tmp_path: Path) -> None:
    workplace(tmp_path)
    bench(tmp_path, "run", "configs/small.toml")
    code, out, _ = bench(tmp_path, "more", "archive", "small-simulated")
    kept = "the folder results/small-simulated is kept, and you may remove it"
    assert code == 0 and re.fullmatch(rf"results/small-simulated\.zip has \d+\.\d kB; {kept}\n", out)


@pytest.mark.parametrize("part", [part for part in COMMANDS if part.path], ids=lambda part: part.name)
def test_an_empty_value_is_refused_by_its_name_and_never_means_the_default(part: CommandPart) -> None:
    app = typer.Typer()
    add_command(app, part.name.split()[-1], part.load(part.path))
    group = typer.main.get_group(app) if app.registered_groups else None
    commands = [*group.commands.values()] if group else [typer.main.get_command(app)]
    for command in [inner for outer in commands for inner in getattr(outer, "commands", {"": outer}).values()]:
        for parameter in command.params:
            if getattr(parameter, "is_flag", False) or parameter.metavar == COMMAND_METAVAR:
                continue
            option = [parameter.opts[0]] if parameter.param_type_name == "option" else []
            for empty in ("", " "):
                with pytest.raises(ConfigError, match=r"^\S+ is empty; give a value(, or leave it out)?$"):
                    command.make_context(command.name, [*option, *([empty] * abs(parameter.nargs))])


def test_an_empty_value_of_a_command_is_one_line(tmp_path: Path) -> None:
    config = str(workplace(tmp_path))
    message = "bench: --name is empty; give a value, or leave it out\n"
    assert bench(tmp_path, "run", config, "--name", "") == (2, "", message)
    assert bench(tmp_path, "probe", "--name", "", "--", "python", "agent.py") == (2, "", message)
    assert bench(tmp_path, "check", "") == (2, "", "bench: PACK is empty; give a value, or leave it out\n")
    assert bench(tmp_path, "report", "") == (2, "", "bench: RUNS is empty; give a value\n")
