"""A run replayed is the run; what it does not hold is a clear miss; a recording that cannot serve is refused in one line."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import as_it_happened, config, copied, run, run_matrix_in, sessions_of
from records import config_in, edit_manifest
from scripted_server import ScriptedServer, Step, completion, cut_after, hang, status
from trials import ROOTS, TINY

from bench.cli.commands.setup import reply_source_lines
from bench.common.errors import BenchError, ConfigError, GaveUp, ResultsError
from bench.read.analysis.frames import load_run
from bench.read.render.labels import model_label
from bench.record.chain import seal
from bench.record.events import Called
from bench.record.files import MANIFEST, RESPONSES, TEXTS, TRIALS
from bench.record.reading import read_manifest, read_responses, read_texts, read_trials
from bench.record.record import TrialRecord
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.recording import load_recording, recorded_entries, response_of
from bench.run.models.base import Reply
from bench.run.trial.workbench import Workbench
from bench.scenario import Task


def moody() -> Callable[[Any], Step]:
    """A server that limits, breaks, breaks in mid-answer, ends in its own words, forgets a field and rambles, by the number of
    the request and not by what it says."""
    numbers = itertools.count(1)

    def answer(body: Any) -> Step:
        number = next(numbers)
        name = re.findall(r"^# Task: (\w+)", body["messages"][-1]["content"], re.MULTILINE)
        output = dict(TINY.reference[name[0]]) if name else {}
        if number % 13 == 0:
            return status(429, headers={"Retry-After": "0.02"})
        if number % 17 == 0:
            return status(500)
        if number % 11 == 0:
            return cut_after(20)
        if number % 7 == 0:
            return completion("so far", finish="error", usage=(number, 1))
        if number % 9 == 0:
            return completion("whole", finish="gone_fishing", usage=None)
        if number % 5 == 0:
            output.pop(next(iter(output), ""), None)
        cached = {"cached_tokens": number // 2} if number % 3 else None
        return completion(f"Reply {number}: {json.dumps(output)}", usage=(number, number + 1), details=cached)

    return answer


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live") / "live"
    with ScriptedServer(moody()) as server:
        run(config({"kind": "openai", "base_url": server.base_url, "price_in": 2.0}), folder)
    return folder


def replayed(recorded: Path, folder: Path, **settings: Any) -> list[TrialRecord]:
    return run(config({"kind": "recorded", "run": str(recorded)}, **settings), folder)


def test_a_replay_gives_the_same_records_but_for_what_is_the_machines_own(recorded: Path, tmp_path: Path) -> None:
    live, again = list(read_trials(recorded)), replayed(recorded, tmp_path / "again")
    calls = [event for trial in live for event in trial.events if isinstance(event, Called)]
    assert {call.failure for call in calls} == {None, "rate_limited", "server_failed", "cut_off", "unknown_finish"}
    failures = {(call.failure, call.usage_in is None, call.tokens_out > 0) for call in calls if call.failure}
    assert {("server_failed", False, True), ("server_failed", True, False), ("unknown_finish", True, True)} <= failures
    assert {call.detail for call in calls if "injected" in call.detail} and any(call.usage_in for call in calls)
    assert {call.usage_cached is None for call in calls if call.usage_in} == {True, False}
    assert {trial.timing for trial in again} == {"recorded"}
    assert [as_it_happened(trial) for trial in again] == [as_it_happened(trial) for trial in live]


CALL = '{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}'


@pytest.mark.parametrize("text", ["[" * 2000, "[3]", "{", CALL, f"[{CALL}]".replace('"look"', "3")])
def test_a_text_that_is_no_list_of_tool_calls_is_refused_in_one_line(recorded: Path, text: str) -> None:
    record = replace(next(response for response in read_responses(recorded) if response.reply), tool_calls="calls")
    outcome = response_of(record, {**read_texts(recorded), "calls": f"[{CALL}]"}, recorded).outcome
    assert isinstance(outcome, Reply) and [call.name for call in outcome.tool_calls] == ["look"]
    with pytest.raises(ResultsError, match=r"a text of a response in responses.jsonl is no list of tool calls; restore the"):
        response_of(record, {**read_texts(recorded), "calls": text}, recorded)


def test_a_replay_of_a_replay_is_the_replay(recorded: Path, tmp_path: Path) -> None:
    first = replayed(recorded, tmp_path / "first")
    second = replayed(tmp_path / "first", tmp_path / "second")
    assert [as_it_happened(trial) for trial in second] == [as_it_happened(trial) for trial in first]


async def at_once(task: Task, workbench: Workbench) -> None:
    """An architecture that asks for the same output twice at the same time, and leaves it at that."""
    first = task.subtasks[0]
    await asyncio.gather(workbench.propose(first), workbench.propose(first))
    raise GaveUp([first.name], "it was only to be asked for")


@pytest.mark.parametrize(("concurrency", "together"), [(1, sum), (2, max)])
def test_calls_made_at_the_same_time_wait_for_each_other_as_they_did_in_the_recorded_run(
    tmp_path: Path, concurrency: int, together: Callable[[Iterable[float]], float]
) -> None:
    settings: dict[str, Any] = {"architectures": [f"{__name__}:at_once"], "plans": ["none"], "repetitions": 1}
    with ScriptedServer(default=lambda _: hang(0.1)) as server:
        entry = {"kind": "openai", "base_url": server.base_url, "concurrency": concurrency}
        [live] = run(config(entry, **settings), tmp_path / "live")
    [again] = replayed(tmp_path / "live", tmp_path / "again", **settings)
    seconds = [event.seconds for event in again.events if isinstance(event, Called)]
    assert len(seconds) == 2 and again.api_seconds == pytest.approx(together(seconds))
    if concurrency == 1:
        assert as_it_happened(again) == as_it_happened(live)


def test_calls_overlap_under_a_declared_concurrency_and_every_label_says_so(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"architectures": [f"{__name__}:at_once"], "plans": ["none"], "repetitions": 1}
    with ScriptedServer(default=lambda _: hang(0.1)) as server:
        run(config({"kind": "openai", "base_url": server.base_url, "concurrency": 1}, **settings), tmp_path / "live")
    declared = config({"kind": "recorded", "run": str(tmp_path / "live"), "concurrency": 2}, **settings)
    [again] = run(declared, tmp_path / "again")
    seconds = [event.seconds for event in again.events if isinstance(event, Called)]
    assert again.api_seconds == pytest.approx(max(seconds)) and again.waiting_seconds == 0.0
    [twice] = replayed(tmp_path / "again", tmp_path / "twice", **settings)
    assert twice.api_seconds == again.api_seconds
    [waited] = replayed(tmp_path / "live", tmp_path / "waited", **settings)
    assert waited.api_seconds == pytest.approx(sum(seconds))
    labels = [model_label(load_run(tmp_path / name), "small") for name in ("again", "twice", "waited")]
    two = "small (recorded:live, 2 calls at a time)"
    assert labels == [two, two.replace("live", "again"), "small (recorded:live)"]
    matrix = build_matrix(declared, ROOTS, "code")
    (line,) = reply_source_lines(matrix)
    assert line.startswith("REPLAY of the run live, recorded on ") and line.endswith(", 2 calls at a time as declared")


def test_a_simulated_runs_calls_at_the_same_time_overlap_in_its_replay_as_well(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"architectures": [f"{__name__}:at_once"], "plans": ["none"], "repetitions": 1}
    [simulated] = run(config({"kind": "simulated"}, **settings), tmp_path / "simulated")
    [again] = replayed(tmp_path / "simulated", tmp_path / "again", **settings)
    seconds = [event.seconds for event in simulated.events if isinstance(event, Called)]
    assert again.api_seconds == simulated.api_seconds < sum(seconds)


def test_each_arm_is_given_its_own_trials_reply_where_others_asked_the_same(recorded: Path, tmp_path: Path) -> None:
    first = {(trial.arm, trial.repetition): _first_reply(trial) for trial in read_trials(recorded)}
    assert len(set(first.values())) > len(first) / 2, "the server said something else to each"
    backwards = replayed(recorded, tmp_path / "again", architectures=["runtime_structured", "static"])
    assert {(trial.arm, trial.repetition): _first_reply(trial) for trial in backwards} == first


def _first_reply(trial: TrialRecord) -> str | None:
    return next(call.reply for call in trial.events if isinstance(call, Called) and call.asked and call.failure is None)


def test_another_fault_plan_is_served_up_to_the_first_request_that_was_never_made(recorded: Path, tmp_path: Path) -> None:
    other = {"wrong": {"faults": [{"point": "output", "effect": "wrong_type", "attempts": [1], "subtask": "total"}]}}
    trials = replayed(
        recorded, tmp_path / "again", architectures=["runtime_structured"], plans=["wrong"], plan=other, repetitions=1
    )
    [trial] = trials
    assert [call.failure for call in trial.events if isinstance(call, Called)][-1] == "not_recorded"
    assert trial.outcome == "error" and trial.tokens > 0
    words = "the recording live holds no reply to attempt 2 at total (tiny, runtime_structured/wrong, repetition 1)"
    assert trial.reason.startswith(f"not_recorded: {words}; to record one, run or serve this config on small itself")


def test_a_changed_prompt_is_a_miss(recorded: Path, tmp_path: Path) -> None:
    matrix = build_matrix(config({"kind": "recorded", "run": str(recorded)}, plans=["none"]), ROOTS, "code")
    task = replace(matrix.scenarios["tiny"].task, role="You are someone else.")
    matrix = replace(matrix, scenarios={"tiny": replace(matrix.scenarios["tiny"], task=task)})
    trials = run_matrix_in(matrix, tmp_path / "again")
    assert {trial.outcome for trial in trials} == {"error"}
    assert all("holds no reply to attempt 1 at gather" in trial.reason for trial in trials)


@pytest.mark.parametrize("declared", [{}, {"concurrency": 2}], ids=str)
def test_the_same_command_goes_on_with_a_replay_whether_it_ended_or_not(
    recorded: Path, tmp_path: Path, declared: dict[str, int]
) -> None:
    model = {"model": {"small": {"kind": "recorded", "run": str(recorded), **declared}}}
    first = replayed(recorded, tmp_path / "again", repetitions=1, **model)
    assert replayed(recorded, tmp_path / "again", repetitions=1, **model) == first
    assert replayed(recorded, tmp_path / "again", **model)[: len(first)] == first
    sessions = sessions_of(tmp_path / "again")
    assert [record.detail for record in sessions if record.what == "began"] == [
        "8 of 8 trials to run",
        "0 of 8 trials to run",
        "16 of 24 trials to run",
    ]


def test_a_replays_manifest_names_the_recording_and_keeps_the_models_parameters(recorded: Path, tmp_path: Path) -> None:
    replayed(
        recorded, tmp_path / "again", repetitions=1, model={"small": {"kind": "recorded", "run": recorded, "price_out": 5.0}}
    )
    [of_model] = json.loads((tmp_path / "again" / MANIFEST).read_text())["models"].values()
    live = json.loads((recorded / MANIFEST).read_text())["models"]["small"]
    assert of_model == {**live, "price_out": 5.0, "recording": of_model["recording"]}
    assert (of_model["recording"]["name"], of_model["recording"]["trials"]) == ("live", 24)
    assert str(recorded) not in (tmp_path / "again" / MANIFEST).read_text()


def test_a_replays_manifest_keeps_what_the_recording_went_through(recorded: Path, tmp_path: Path) -> None:
    replayed(recorded, tmp_path / "again", repetitions=1)
    replayed(tmp_path / "again", tmp_path / "twice", repetitions=1)
    again, twice = (read_manifest(tmp_path / name).recordings["small"] for name in ("again", "twice"))
    used = read_manifest(tmp_path / "again").models["small"].recording
    assert used and (again.name, again.digest) == ("live", used.digest)
    assert list(again.sessions) == sessions_of(recorded) and again.machine.shown == read_manifest(recorded).machine.shown
    live = list(read_trials(recorded))
    assert again.calls == sum(isinstance(event, Called) for trial in live for event in trial.events)
    assert sum(arm.framework for arm in again.seconds) == pytest.approx(sum(trial.framework_seconds for trial in live))
    assert (twice.name, twice.seconds, twice.before) == ("again", (), again), "a replay's seconds are nobody's"
    assert twice.live_seconds == again.seconds


def test_a_run_whose_models_are_no_recordings_keeps_no_history(recorded: Path) -> None:
    assert read_manifest(recorded).recordings == {} and '"recordings"' not in (recorded / "manifest.json").read_text()


def test_responses_of_an_earlier_version_tell_of_no_cache(recorded: Path, tmp_path: Path) -> None:
    folder, link, lines = copied(recorded, tmp_path / "earlier"), "", list[bytes]()
    for line in (folder / RESPONSES).read_bytes().splitlines(keepends=True):
        response = json.loads(line)
        without_it = {key: value for key, value in response.items() if key not in ("usage_cached", "chain")}
        again, link = seal(json.dumps(without_it).encode(), link)
        lines.append(again)
    (folder / RESPONSES).write_bytes(b"".join(lines))
    assert {response.usage_cached for response in read_responses(folder)} == {None}
    trials = replayed(folder, tmp_path / "again")
    assert {call.usage_cached for trial in trials for call in trial.events if isinstance(call, Called)} == {None}


def test_a_run_offers_each_of_its_models_as_a_recorded_one(recorded: Path) -> None:
    assert recorded_entries(recorded) == {
        "small": {"kind": "recorded", "run": str(recorded), "model": "small", "answer_format": "json"}
    }


def with_manifest(**parts: Any) -> Callable[[Path], object]:
    return lambda folder: edit_manifest(folder, **parts)


def with_seed(seed: int) -> Callable[[Path], object]:
    return lambda folder: edit_manifest(folder, config={**config_in(folder), "seed": seed})


def cut_lines(name: str, keep: int) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(b"".join((folder / name).read_bytes().splitlines(True)[:keep]))


REFUSED: dict[str, tuple[Callable[[Path], object], type[BenchError], str]] = {
    "no run": (lambda folder: (folder / MANIFEST).unlink(), ResultsError, "holds no run"),
    "another format": (with_manifest(format=1), ResultsError, "is of format 1, this version reads format 4"),
    "another model": (with_manifest(models={"smal": {}}), ConfigError, "holds no model 'small'; did you mean 'smal'?"),
    "another seed": (with_seed(12), ConfigError, "was made with seed 12, this config has 11"),
    "damaged": (lambda folder: (folder / TRIALS).write_text("{}\n"), ResultsError, "trials.jsonl: line 1 is damaged"),
    "no trials": (cut_lines(TRIALS, 1), ResultsError, "holds no trial of 'small' yet"),
    "a repetition too few": (cut_lines(TRIALS, 18), ConfigError, "holds 2 whole repetitions of 'small', this config asks"),
    "damaged responses": (
        lambda folder: (folder / RESPONSES).write_text("{}\n"),
        ResultsError,
        "responses.jsonl: line 1 is damaged",
    ),
    "a lost text": (cut_lines(TEXTS, 3), ResultsError, "texts.jsonl: lacks the text '"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_recording_that_cannot_serve_is_refused_in_one_line(recorded: Path, tmp_path: Path, what: str) -> None:
    corrupt, kind, words = REFUSED[what]
    folder = copied(recorded, tmp_path / "corrupted")
    corrupt(folder)
    with pytest.raises(kind, match=re.escape(words)) as caught:
        load_recording(folder, "small", 11, 3)
    assert "\n" not in str(caught.value)


def test_a_truncated_last_response_is_as_good_as_not_recorded(recorded: Path, tmp_path: Path) -> None:
    folder = copied(recorded, tmp_path / "cut")
    (folder / RESPONSES).write_bytes((folder / RESPONSES).read_bytes()[:-100])
    whole, parameters = load_recording(recorded, "small", 11, 1)
    cut, _ = load_recording(folder, "small", 11, 1)
    assert len(cut) == len(whole) - 1
    assert parameters["price_in"] == 2.0
