"""What happened in a run of others is told from its file: what was made again, after what, its cost, what is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import bench
from written_traces import acting, chat, message, span, spans, trajectory, written

from bench.elsewhere.runs import read_log
from bench.elsewhere.telling import calls_of, repeated_pairs, run_report_lines

REFUND = {"order": 17, "amount": 40}


def asked(id_: str, tool: str, **arguments: object) -> dict[str, object]:
    return {"type": "tool_call", "id": id_, "name": tool, "arguments": arguments}


def incident(first: str = "timeout after 30 s", again: dict[str, object] | None = None, status: int = 2) -> str:
    """A trace in which a refund failed and was made again, with times in seconds and tokens by the provider."""
    second = 10**9
    prompt = [message("user", "Refund order 17.")]
    records = []
    for number, (tool, arguments, result, code, begin, end) in enumerate(
        (
            ("get_order", {"order": 17}, '{"paid": 40}', 1, 2, 3),
            ("refund", REFUND, first, status, 5, 35),
            ("refund", again or REFUND, '{"ok": true}', 1, 38, 39),
        ),
        1,
    ):
        reply = message("assistant", asked(f"{number}", tool, **arguments))
        usage = {"gen_ai.usage.input_tokens": 100 * number, "gen_ai.usage.output_tokens": 20, "gen_ai.usage.cost": 0.5}
        records.append(
            chat((begin - 2) * second, prompt, [reply], usage, endTimeUnixNano=str((begin - 1) * second), spanId=f"c{number}")
        )
        fields = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.call.id": f"{number}"}
        fields |= {"gen_ai.tool.call.arguments": json.dumps(arguments), "gen_ai.tool.call.result": result}
        records.append(
            span(begin * second, fields, endTimeUnixNano=str(end * second), status={"code": code}, spanId=f"t{number}")
        )
        answer = {"type": "tool_call_response", "id": f"{number}", "response": result}
        prompt = [*prompt, reply, message("tool", answer)]
    return spans(*records)


def told(folder: Path, text: str) -> str:
    log, _ = read_log(written(folder, text))
    return "\n".join(run_report_lines(log))


def test_a_refund_that_was_made_again_after_a_timeout_is_told_with_what_it_cost_and_nothing_is_called_harmless(
    tmp_path: Path,
) -> None:
    lines = told(tmp_path, incident())
    assert 'refund({"order": 17, "amount": 40}) was called again with equal arguments: in step 2, then in step 3.' in lines
    assert "The first failed: timeout after 30 s." in lines and 'The second was answered: {"ok": true}.' in lines
    assert "Nothing here shows that the first was not done" in lines
    spent = "1 call of tools, 1 call of a model, 320 tokens, as the provider counted them, 4.0 s, $0.5000"
    assert f"After the error of step 2 (refund): {spent}" in lines
    assert "until refund succeeded in step 3." in lines
    assert (
        "whether a call that failed was done" in lines and "Taken for tools that only read, by their names: get_order." in lines
    )


@pytest.mark.parametrize(
    ("first", "status", "sentence"),
    [
        ('{"ok": true}', 1, "Both were answered as done"),
        ("HTTP 503 from the bank", 2, "Nothing here shows"),
        ("invalid amount", 2, "The first was refused in words"),
        ("payment amount does not add up", 2, "The words of that error do not say"),
    ],
)
def test_what_the_first_answer_shows_decides_what_is_said_of_the_pair(
    tmp_path: Path, first: str, status: int, sentence: str
) -> None:
    assert sentence in told(tmp_path, incident(first, status=status))


def test_a_call_without_an_answer_leaves_open_whether_it_was_done(tmp_path: Path) -> None:
    silent = acting("pay", "x", id_="1", cents=5)
    silent["observation"] = {"results": []}
    lines = told(tmp_path, trajectory(silent, acting("pay", "done", id_="2", cents=5)))
    assert "The first has no answer in the file." in lines and "Nothing here shows" in lines


def test_a_call_that_differs_only_in_its_key_is_the_same_call_made_again_and_other_arguments_are_another(
    tmp_path: Path,
) -> None:
    keyed = told(tmp_path, trajectory(*(acting("pay", "503", id_=each, cents=5, idempotency_key=each) for each in "ab")))
    assert "with equal arguments, but for what differs in two tries" in keyed
    one_key = told(tmp_path, trajectory(*(acting("pay", "503", id_=each, cents=5, idempotency_key="k") for each in "ab")))
    assert "Both carry one key" in one_key
    other = told(tmp_path, trajectory(acting("pay", "503", id_="a", cents=5), acting("pay", "ok", id_="b", cents=6)))
    assert "No call that may write was made again" in other


def test_a_tool_that_reads_by_its_name_or_by_the_users_word_is_no_repeated_effect(tmp_path: Path) -> None:
    text = trajectory(
        *(acting(tool, "ok", id_=f"{tool}{n}", x=1) for n in range(2) for tool in ("get_order", "mcp__s__list_all", "peek"))
    )
    log, _ = read_log(written(tmp_path, text))
    assert [first.call.tool for first, _ in repeated_pairs(calls_of(log))] == ["peek"]
    log, _ = read_log(written(tmp_path, text), ["peek"])
    assert repeated_pairs(calls_of(log)) == []


def test_a_command_that_ran_twice_is_told_only_where_the_first_did_not_answer(tmp_path: Path) -> None:
    fine = told(tmp_path, trajectory(*(acting("Bash", "2 passed", id_=each, command="pytest") for each in "ab")))
    cut = told(tmp_path, trajectory(*(acting("Bash", "Command timed out", id_=each, command="deploy") for each in "ab")))
    assert "was called again" not in fine and "was called again" in cut


def test_the_command_tells_and_asks_about_equal_calls_before_they_are_owed(tmp_path: Path) -> None:
    written(tmp_path, incident())
    code, out, _ = bench(tmp_path, "import", "trace.json")
    assert code == 0 and "recorded elsewhere" in out and "was called again" in out
    code, _, err = bench(tmp_path, "import", "trace.json", "--name", "incident")
    assert code == 2 and "steps 2 and 3 make equal calls that may write" in err and "--same 2=3" in err
    code, _, err = bench(tmp_path, "import", "trace.json", "--name", "incident", "--same", "3=2")
    assert code == 2 and "'3=2' names no two steps" in err
    for name, option, owed in (("one", "--same", 1), ("two", "--both", 2)):
        code, _, err = bench(tmp_path, "import", "trace.json", "--name", name, option, "2=3", "--read", "get_order")
        assert code == 0, err
        steps = json.loads((tmp_path / "scenarios" / name / "trace.json").read_text())["steps"]
        effects = [call["effect"] for step in steps for call in step["calls"] if not call["reads"]]
        assert len(effects) == 2 and len(set(effects)) == owed


def test_an_effect_that_was_made_twice_is_damage_in_the_pack_and_not_a_second_effect(tmp_path: Path) -> None:
    written(tmp_path, incident())
    bench(tmp_path, "import", "trace.json", "--name", "incident", "--same", "2=3", "--read", "get_order")
    code, out, err = bench(tmp_path, "check", "incident")
    assert code == 0 and "FAILED" not in out, out + err
    bench(tmp_path, "run", "configs/incident_effects.toml")
    _, out, _ = bench(tmp_path, "trace", "incident_effects-recorded_replies", "--trial", "bare_agent/none")
    assert "0 of 1 effects stand once" in out and "damage: doubled 1" in out


def test_trials_of_others_are_told_by_how_many_repeat_a_call(tmp_path: Path) -> None:
    def trial(task: int, *results: str) -> dict[str, object]:
        turns: list[dict[str, object]] = [{"role": "user", "content": "Pay."}]
        for number, result in enumerate(results):
            call = {"id": f"{number}", "type": "function", "function": {"name": "pay", "arguments": '{"cents": 5}'}}
            turns.append({"role": "assistant", "content": None, "tool_calls": [call]})
            turns.append({"role": "tool", "tool_call_id": f"{number}", "name": "pay", "content": result})
        return {"task_id": task, "reward": 1.0, "trial": 0, "info": {}, "traj": turns}

    written(tmp_path, json.dumps([trial(1, "Error: 503", "ok"), trial(2, "ok"), trial(3, "ok", "ok")]))
    code, out, err = bench(tmp_path, "import", "trace.json")
    assert code == 0, err
    assert "calls that may write, made again with equal arguments: 2, in 2 of 3 trials; 1 after an answer" in out
    assert out.index("in task 1, trial 0:") < out.index("in task 3, trial 0:"), "what is open comes first"
