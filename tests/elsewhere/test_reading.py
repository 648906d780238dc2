"""Trials that others recorded are read strictly, in each of the known formats, and what is none is refused in one line."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from commands import bench
from hypothesis import given
from hypothesis import strategies as st

from bench.common.errors import ResultsError
from bench.elsewhere.counting import repairs
from bench.elsewhere.reading import read_recorded, recorded_run
from bench.elsewhere.summary import recorded_lines
from bench.elsewhere.trials import AskedCall, RecordedCall, RecordedRun, RecordedTrial, RecordedTurn, trial_of
from bench.record.archive import unpack


def tau_call(id_: str, tool: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "type": "function", "function": function}]}


def tau_answer(id_: str, tool: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "name": tool, "content": text}


def tau_trial(task: int, *turns: dict[str, Any], trial: int = 0, reward: float = 1.0) -> dict[str, Any]:
    info = {"task": {"actions": [{"name": "pay", "kwargs": {"order": 7}}]}, "reward_info": {"info": {"r_actions": reward}}}
    return {
        "task_id": task,
        "trial": trial,
        "reward": reward,
        "info": info,
        "traj": [{"role": "user", "content": "Pay 7."}, *turns],
    }


PAID = (
    tau_call("a", "pay", order=7),
    tau_answer("a", "pay", "Error: 503"),
    tau_call("b", "pay", order=7),
    tau_answer("b", "pay", "ok"),
)
TAU2: dict[str, Any] = {
    "info": {"agent_info": {"llm": "m-1"}, "environment_info": {"domain_name": "shop"}},
    "tasks": [{"id": "t", "evaluation_criteria": {"actions": [{"name": "pay", "arguments": {"order": 7}}]}}],
    "simulations": [
        {
            "id": "s",
            "task_id": "t",
            "trial": 0,
            "termination_reason": "user_stop",
            "reward_info": {"reward": 0.0, "db_check": {"db_match": False}},
            "messages": [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "1", "name": "pay", "arguments": {"order": 8}, "requestor": "assistant"}],
                    "usage": {"prompt_tokens": 50, "completion_tokens": 9},
                },
                {"id": "1", "role": "tool", "content": "no order 8", "requestor": "assistant", "error": True},
                {"role": "user", "content": "Bye."},
            ],
        }
    ],
}
SWE = {
    "trajectory": [{"action": "ls", "observation": "a.py", "response": "I look.", "thought": "", "state": {}}],
    "history": [],
    "info": {"exit_status": "submitted", "model_stats": {"tokens_sent": 90, "tokens_received": 8, "api_calls": 1}},
}
MINI = {
    "trajectory_format": "mini-swe-agent-1",
    "instance_id": "x-1",
    "info": {"exit_status": "Submitted"},
    "messages": [
        {"role": "system", "content": "You can use a shell."},
        {"role": "assistant", "content": "I look.\n```bash\nls /none\n```"},
        {"role": "user", "content": "<returncode>2</returncode>\n<output>no such file</output>"},
    ],
}
SAMPLE = {
    "id": 1,
    "epoch": 1,
    "messages": [
        {"role": "user", "content": "Add."},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "I add."}],
            "tool_calls": [{"id": "c", "function": "add", "arguments": {}}],
        },
        {
            "role": "tool",
            "content": "bad",
            "tool_call_id": "c",
            "function": "add",
            "error": {"type": "parsing", "message": "bad"},
        },
    ],
    "scores": {"match": {"value": "C"}},
    "model_usage": {"m": {"input_tokens": 5, "output_tokens": 6}},
}


def written(folder: Path, value: Any, name: str = "run.json") -> Path:
    path = folder / name
    lines = "\n".join(json.dumps(line) for line in value) if name.endswith(".jsonl") else json.dumps(value)
    path.write_text(lines, encoding="utf-8")
    return path


def logged(folder: Path, *samples: dict[str, Any]) -> Path:
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"model": "m", "task": "sums"}}))
        for number, sample in enumerate(samples):
            archive.writestr(f"samples/{number}.json", json.dumps(sample))
    return path


def read(folder: Path, value: Any, name: str = "run.json") -> RecordedRun:
    return recorded_run(written(folder, value, name))


def test_a_list_of_tau_bench_is_its_trials_with_calls_answers_and_outcomes(tmp_path: Path) -> None:
    run = read(tmp_path, [tau_trial(0, *PAID), tau_trial(0, trial=1, reward=0.0)])
    first, second = run.trials
    assert (run.form, first.solved, second.solved, first.state) == ("tau-bench", True, False, True)
    assert [(call.tool, call.arguments, call.by, call.answer, call.failed) for call in first.calls] == [
        ("pay", {"order": 7}, "assistant", "Error: 503", True),
        ("pay", {"order": 7}, "assistant", "ok", False),
    ]
    assert first.expected == (("pay", {"order": 7}),)
    assert first.tokens > 10


def test_a_composed_reward_gives_way_to_the_success_that_it_is_made_of(tmp_path: Path) -> None:
    trial = tau_trial(0, *PAID, reward=0.93)
    trial["info"]["reward_info"]["components"] = {"base_success": 1.0, "efficiency_penalty": -0.07}
    assert read(tmp_path, [trial]).trials[0].solved


def test_an_object_of_tau2_bench_has_its_model_who_called_and_the_providers_tokens(tmp_path: Path) -> None:
    run = read(tmp_path, TAU2)
    (trial,) = run.trials
    assert (run.model, trial.solved, trial.state) == ("m-1", False, False)
    assert [(call.tool, call.by, call.failed) for call in trial.calls] == [("pay", "assistant", True)]
    assert trial.provider_tokens == 59


def test_a_bare_list_of_simulations_is_read_as_tau2_bench(tmp_path: Path) -> None:
    assert read(tmp_path, TAU2["simulations"]).trials[0].task == "t"


def test_a_trajectory_of_swe_agent_has_commands_and_no_verdict(tmp_path: Path) -> None:
    (trial,) = read(tmp_path, SWE, "astropy-1.traj").trials
    assert (trial.task, trial.solved, trial.provider_tokens) == ("astropy-1", None, 98)
    assert [(call.arguments, call.answer, call.failed) for call in trial.calls] == [({"command": "ls"}, "a.py", None)]


def test_a_trajectory_of_mini_swe_agent_has_return_codes_as_errors(tmp_path: Path) -> None:
    (trial,) = read(tmp_path, MINI).trials
    assert [(call.arguments, call.failed) for call in trial.calls] == [({"command": "ls /none"}, True)]


def test_the_message_that_ends_a_trial_of_mini_swe_agent_answers_its_last_call(tmp_path: Path) -> None:
    done, model = tau_call("z", "bash", command="submit"), {"config": {"model": {"model_name": "m-2"}}}
    answered = {"role": "tool", "tool_call_id": "y", "content": "<returncode>0</returncode>"}
    turns = [tau_call("y", "bash", command="ls"), answered, done, {"role": "exit", "content": "a patch"}]
    run = read(tmp_path, MINI | {"messages": turns, "info": model})
    assert [(call.arguments["command"], call.failed) for call in run.trials[0].calls] == [("ls", False), ("submit", None)]
    assert run.model == "m-2"


def test_a_log_of_inspect_is_its_samples(tmp_path: Path) -> None:
    run = recorded_run(logged(tmp_path, SAMPLE, SAMPLE | {"epoch": 2, "scores": {"match": {"value": "I"}}}))
    assert [trial.solved for trial in run.trials] == [True, False]
    assert [(call.tool, call.failed) for call in run.trials[0].calls] == [("add", True)]
    assert (run.model, run.trials[0].provider_tokens) == ("m", 11)


def test_a_log_of_inspect_in_json_is_the_same_samples(tmp_path: Path) -> None:
    samples = [SAMPLE, SAMPLE | {"epoch": 2, "scores": {"match": {"value": "I"}}}]
    log = {"version": 2, "status": "success", "eval": {"model": "m", "task": "sums"}, "results": {}, "samples": samples}
    packed, plain = recorded_run(logged(tmp_path, *samples)), read(tmp_path, log)
    assert (plain.trials, plain.model, plain.form) == (packed.trials, packed.model, packed.form)


def test_counts_of_zero_are_no_counts(tmp_path: Path) -> None:
    stats = {"tokens_sent": 0, "tokens_received": 0, "api_calls": 0}
    run = read(tmp_path, {**SWE, "info": {"exit_status": "submitted", "model_stats": stats}})
    assert run.trials[0].provider_tokens is None
    assert "as the provider counted" not in " ".join(recorded_lines(tmp_path / "run.json", run))


def edited(change: Callable[[list[dict[str, Any]]], object], *turns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a list of tau-bench whose only trial's messages are changed."""
    trial: dict[str, Any] = json.loads(json.dumps(tau_trial(0, *(turns or PAID))))
    change(trial["traj"])
    return [trial]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (edited(lambda turns: turns.pop(1)), "message 1: a tool's message without its call"),
        (edited(lambda turns: turns.pop(2)), "comes before the answer of pay (message 1)"),
        (edited(lambda turns: turns.insert(2, turns[1])), "comes before the answer of pay"),
        (edited(lambda turns: turns[2].update(name="refund")), "answers refund by assistant, but pay was called by assistant"),
        (edited(lambda turns: turns[1]["tool_calls"].append(turns[1]["tool_calls"][0])), "stands twice before it is answered"),
        ([tau_trial(3), tau_trial(3)], "task 3, trial 0 stands twice"),
        ({**TAU2, "simulations": [*TAU2["simulations"], *TAU2["simulations"]]}, "the simulation s stands 2 times"),
        ([tau_trial(0) | {"reward": "high"}], "is not read: "),
    ],
)  # fmt: skip
def test_a_file_that_contradicts_itself_is_refused_in_one_line(tmp_path: Path, value: Any, words: str) -> None:
    with pytest.raises(ResultsError) as error:
        read(tmp_path, value)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_another_asker_than_the_answers_is_refused(tmp_path: Path) -> None:
    value = json.loads(json.dumps(TAU2))
    value["simulations"][0]["messages"][1]["requestor"] = "user"
    with pytest.raises(ResultsError, match="answers pay by user, but pay was called by assistant"):
        read(tmp_path, value)


def test_json_of_another_kind_is_none_of_these(tmp_path: Path) -> None:
    assert read_recorded(written(tmp_path, {"steps": []})) is None
    assert read_recorded(written(tmp_path, [1, 2])) is None


def test_a_file_of_too_many_values_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b'[{"traj":[' + b"[]," * 2_000_000 + b"[]]}]")
    with pytest.raises(ResultsError, match="more than"):
        recorded_run(path)


@given(cut=st.floats(0, 1, exclude_max=True), which=st.sampled_from([[tau_trial(0, *PAID)], TAU2, SWE, MINI]))
def test_a_cut_file_is_refused_in_one_line(cut: float, which: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), which)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(cut * len(whole))])
        with pytest.raises(ResultsError, match=r"is cut|is no JSON"):
            recorded_run(path)


@given(data=st.data())
def test_a_cut_archive_is_refused_in_one_line(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = logged(Path(folder), SAMPLE)
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(4, len(whole) - 1))])
        with pytest.raises(ResultsError, match="the archive is cut"):
            recorded_run(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
MEMBERS = (
    "traj", "reward", "task_id", "simulations", "messages", "mistake_step", "history", "failures", "root_cause", "kind",
    "detail", "trajectory", "info", "trajectory_format", "id", "role", "content", "tool_calls", "termination_reason",
    "question_ID",
)  # fmt: skip


@given(
    value=st.dictionaries(st.sampled_from(MEMBERS), JSON | st.lists(st.dictionaries(st.sampled_from(MEMBERS), JSON))),
    alone=st.booleans(),
)
def test_whatever_stands_in_a_file_is_read_or_refused_in_one_line(value: dict[str, Any], *, alone: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), value if alone else [value])
        try:
            read_recorded(path)
        except ResultsError as error:
            assert "\n" not in str(error)


@given(turns=st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=8))
def test_every_call_has_its_own_answer_or_the_file_is_refused(turns: list[tuple[str, bool]]) -> None:
    messages = [tau_call(id_, "pay", id=id_) if asks else tau_answer(id_, "pay", id_) for id_, asks in turns]
    with tempfile.TemporaryDirectory() as folder:
        try:
            (trial,) = read(Path(folder), [tau_trial(0, *messages)]).trials
        except ResultsError:
            assert any(this[1] == that[1] or this[0] != that[0] for this, that in pairwise(turns)) or not turns[0][1]
        else:
            assert all(call.arguments["id"] == call.answer for call in trial.calls if call.answered is not None)
            assert [call.answered is None for call in trial.calls[:-1]] == [False] * len(trial.calls[:-1])


def test_a_repair_is_counted_in_calls_and_tokens_up_to_the_tools_success(tmp_path: Path) -> None:
    between = (tau_call("c", "look"), tau_answer("c", "look", "seven"))
    (trial,) = read(tmp_path, [tau_trial(0, *PAID[:2], *between, *PAID[2:])]).trials
    (repair,) = repairs(trial)
    assert (repair.kind, repair.calls, repair.same, repair.again) == ("unavailable", 2, 2, False)
    assert repair.tokens == sum(turn.tokens for turn in trial.turns[2:6])


def test_an_error_that_no_success_of_the_tool_follows_is_never_repaired(tmp_path: Path) -> None:
    (trial,) = read(tmp_path, [tau_trial(0, *PAID[:2])]).trials
    (repair,) = repairs(trial)
    assert (repair.calls, repair.tokens, repair.again) == (None, None, False)


def definition(trial: RecordedTrial) -> list[tuple[Any, ...]]:
    """Return what followed each error, as `ErrorRepair` says it, by looking at all later calls."""
    followed = []
    for place, call in enumerate(trial.calls):
        if call.failed and call.answered is not None:
            later = list(enumerate(trial.calls[place + 1 :], 1))
            good = [(n, other) for n, other in later if other.tool == call.tool and other.failed is False]
            same = [n for n, other in good if (other.tool, other.arguments) == (call.tool, call.arguments)]
            messages = None if not good else trial.turns[call.answered : good[0][1].answered]
            whole = None if not good else trial.turns[call.answered + 1 : (good[0][1].answered or 0) + 1]
            counts = [None if some is None else sum(turn.tokens for turn in some) for some in (messages, whole)]
            again = bool(later) and (later[0][1].tool, later[0][1].arguments) == (call.tool, call.arguments)
            followed.append((good[0][0] if good else None, same[0] if same else None, *counts, again))
    return followed


@given(calls=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.booleans()), max_size=12), parallel=st.booleans())
def test_what_followed_each_error_is_what_its_definition_says(calls: list[tuple[str, int, bool]], *, parallel: bool) -> None:
    asked = [RecordedTurn("assistant", "hm", (AskedCall(str(n), tool, {"n": k}),)) for n, (tool, k, _) in enumerate(calls)]
    answers = [RecordedTurn("tool", "yes " * n, answers=str(n), failed=failed) for n, (_, _, failed) in enumerate(calls)]
    if parallel:
        every = [RecordedTurn("assistant", "hm", tuple(turn.asked[0] for turn in asked)), *reversed(answers)]
    else:
        every = [turn for pair in zip(asked, answers, strict=True) for turn in pair]
    trial = trial_of("here", every, "t", "0")
    followed = [(each.calls, each.same, each.tokens, each.whole, each.again) for each in repairs(trial)]
    assert followed == definition(trial)


@pytest.mark.parametrize("ends_well", [False, True])
def test_twice_as_many_errors_take_about_twice_as_long(*, ends_well: bool) -> None:
    def seconds(count: int) -> float:
        calls = [
            RecordedCall("pay", {"n": n}, "assistant", 2 * n, 2 * n + 1, "503", failed=n < count - ends_well)
            for n in range(count)
        ]
        trial = RecordedTrial("t", "0", (RecordedTurn("tool", "503"),) * (2 * count), tuple(calls))
        began = process_time()
        assert len(list(repairs(trial))) == count - ends_well
        return process_time() - began

    assert min(seconds(4_000) for _ in range(3)) < 8 * min(seconds(1_000) for _ in range(3))  # the square takes 16 times


def test_a_log_whose_list_lies_about_its_size_is_unpacked_no_further(tmp_path: Path) -> None:
    path, size = tmp_path / "bomb.eval", 2**23
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("header.json", b" " * size)
    path.write_bytes(path.read_bytes().replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little")))
    with pytest.raises(ResultsError, match="its sum is another"):
        recorded_run(path)
    with zipfile.ZipFile(path) as archive:
        tracemalloc.start()
        with closing(unpack(archive, archive.getinfo("header.json"))) as file, pytest.raises(zipfile.BadZipFile):
            file.read1(size)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < size / 8


def test_a_log_packed_in_a_way_that_is_unpacked_in_one_piece_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("header.json", "{}")
    with pytest.raises(ResultsError, match="packing of the kind 12 is not read"):
        recorded_run(path)


def test_a_log_packed_by_lzma_is_read(tmp_path: Path) -> None:
    path = logged(tmp_path, SAMPLE)
    packed = tmp_path / "packed.eval"
    with zipfile.ZipFile(path) as read_from, zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as archive:
        for name in read_from.namelist():
            archive.writestr(name, read_from.read(name))
    assert recorded_run(packed).trials == recorded_run(path).trials


def test_a_number_of_many_digits_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps([tau_trial(0)]).replace('"trial": 0', '"trial": ' + "9" * 6_000))
    with pytest.raises(ResultsError, match="has more than 4,300 digits"):
        recorded_run(path)


def test_import_counts_trials_and_says_that_they_were_recorded_elsewhere(tmp_path: Path) -> None:
    written(tmp_path, [tau_trial(0, *PAID)])
    code, out, _ = bench(tmp_path, "import", "run.json")
    assert code == 0
    assert "recorded elsewhere" in out
    assert "1 trials of 1 tasks, 1 of 1 solved" in out
    assert "2 calls of tools, 1 answered by an error (50.0%)" in out


def test_import_of_a_run_without_a_call_of_a_tool_says_that_there_is_nothing_to_tell(tmp_path: Path) -> None:
    written(tmp_path, {"steps": []})
    code, _, err = bench(tmp_path, "import", "run.json")
    assert (code, err.count("\n")) == (2, 1)
    assert "holds no call of a tool" in err
