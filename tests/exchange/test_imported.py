"""A run that another program recorded is read as its steps, and run again under faults; what is none is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import bench

import bench as package
from bench.errors import ResultsError
from bench.exchange.imported import ImportedCall, read_trace, tool_names


def trajectory(*steps: dict[str, Any]) -> str:
    return json.dumps({"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": list(steps)})


def acting(tool: str, result: str, message: str = "", **arguments: Any) -> dict[str, Any]:
    call = {"tool_call_id": "1", "function_name": tool, "arguments": arguments}
    return {
        "source": "agent",
        "message": message,
        "tool_calls": [call],
        "observation": {"results": [{"source_call_id": "1", "content": result}]},
    }


SETTLED = trajectory(
    {"source": "user", "message": "Order 17 arrived broken."},
    acting("get_order", "40 euros", "I look it up.", order=17),
    acting("refund", "refunded", order=17),
    acting("send_letter", "sent", "Now I write.", order=17),
    {"source": "agent", "message": "Done."},
)


def attributes(**values: str) -> list[dict[str, Any]]:
    return [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in values.items()]


def span(start: int, trace: str = "a1", **values: str) -> dict[str, Any]:
    return {"traceId": trace, "startTimeUnixNano": str(start), "attributes": attributes(**values)}


def chat(start: int, sent: list[tuple[str, str]], reply: str, trace: str = "a1") -> dict[str, Any]:
    messages = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in sent]
    reply_messages = [{"role": "assistant", "parts": [{"type": "text", "content": reply}]}]
    words = {"gen_ai__input__messages": json.dumps(messages), "gen_ai__output__messages": json.dumps(reply_messages)}
    return span(start, trace, gen_ai__operation__name="chat", **words)


def spans(*given: dict[str, Any]) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(given)}]}]})


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_trajectory_is_its_agents_steps_with_what_each_was_shown_and_what_it_called(tmp_path: Path) -> None:
    run = read_trace(written(tmp_path, SETTLED), ["get_order"])
    steps = run.steps
    assert [step.reply for step in steps] == [
        'I look it up.\nget_order({"order": 17})',
        'refund({"order": 17})',
        'Now I write.\nsend_letter({"order": 17})',
        "Done.",
    ]
    assert [step.shown for step in steps] == [
        "[user]\nOrder 17 arrived broken.",
        "[tool]\n40 euros",
        "[tool]\nrefunded",
        "[tool]\nsent",
    ]
    assert run.prompt(2) == f"[user]\nOrder 17 arrived broken.\n\n[assistant]\n{steps[0].reply}\n\n[tool]\n40 euros"
    assert steps[1].calls == (ImportedCall("refund", '{"order": 17}', "refunded", reads=False),)
    assert [name for *_, name in tool_names(steps)] == ["step_01_get_order", "step_02_refund", "step_03_send_letter"]
    assert [call.reads for _, call, _ in tool_names(steps)] == [True, False, False]


def test_spans_are_read_in_the_order_of_their_times_and_a_tool_belongs_to_the_call_before_it(tmp_path: Path) -> None:
    tool = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "refund", "gen_ai__tool__call__result": "ok"}
    first, second = [("user", "Refund 17.")], [("user", "Refund 17."), ("assistant", "I will."), ("tool", "ok")]
    text = spans(chat(30, second, "Done."), span(20, **tool), chat(10, first, "I will."))
    steps = read_trace(written(tmp_path, text)).steps
    assert [(step.reply, [call.tool for call in step.calls]) for step in steps] == [("I will.", ["refund"]), ("Done.", [])]
    assert steps[1].shown == "[tool]\nok"


def test_of_several_traces_one_is_named(tmp_path: Path) -> None:
    asked = [("user", "Hello.")]
    path = written(tmp_path, f"{spans(chat(1, asked, 'One.'))}\n{spans(chat(1, asked, 'Two.', trace='b2'))}\n")
    with pytest.raises(ResultsError, match=r"holds 2 traces; name one with --trace, such as a1, b2$"):
        read_trace(path)
    assert [step.reply for step in read_trace(path, trace="b").steps] == ["Two."]


NO_TRACES = {
    "no JSON": ("hello", "is not JSON in the form of ATIF or OTLP"),
    "another form": ('{"spans": []}', r"is not a trace: it has neither steps \(ATIF\) nor spans \(OTLP\), but spans"),
    "no words": (spans(span(1, gen_ai__operation__name="chat")), "has no call of a model whose words were recorded"),
    "a wrong step": (trajectory({"message": "x"}), "is not a trace: steps.0.source: is missing"),
    "too deep": ("[" * 100_000, "is not JSON in the form of ATIF or OTLP"),
    "too many": (trajectory(*[{"source": "agent", "message": "x"}] * 501), "has 501 steps, and at most 500 are read"),
}


@pytest.mark.parametrize("what", NO_TRACES)
def test_what_is_no_trace_is_one_line(what: str, tmp_path: Path) -> None:
    text, message = NO_TRACES[what]
    with pytest.raises(ResultsError, match=message) as refused:
        read_trace(written(tmp_path, text))
    assert "\n" not in str(refused.value)


def test_a_tool_that_is_not_called_and_a_file_that_is_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"calls no tool 'get_orders'; did you mean 'get_order'"):
        read_trace(written(tmp_path, SETTLED), ["get_orders"])
    with pytest.raises(ResultsError, match="cannot be read: No such file"):
        read_trace(tmp_path / "none.json")


def test_the_documents_example_says_what_an_imported_run_costs_under_faults(tmp_path: Path) -> None:
    """Without keys a crash repeats effects and pays for the steps again; with them it costs nothing."""
    page = (Path(__file__).parents[2] / "docs" / "running.md").read_text(encoding="utf-8")
    (tmp_path / "yesterday.json").write_text(page.partition("```json\n")[2].partition("```")[0], encoding="utf-8")
    code, out, err = bench(tmp_path, "import", "yesterday.json", "--name", "yesterday", "--step", "4", "--read", "get_order")
    assert (code, err) == (0, "") and "5 steps, 4 calls of tools; step 4 fails in the configs" in out
    code, out, err = bench(tmp_path, "check", "yesterday", "yesterday:effects")
    assert (code, err) == (0, ""), out
    more: dict[str, int] = {}
    for config, plan in (("yesterday", "unusable_reply"), ("yesterday_effects", "crash")):
        assert bench(tmp_path, "run", f"configs/{config}.toml")[::2] == (0, "")
        loaded = package.load_run(tmp_path / "results" / f"{config}-recorded_replies")
        trials = loaded.trials.set_index(["architecture", "plan"])
        more |= {
            name: int(trials["tokens"][name, plan] - trials["tokens"][name, "none"]) for name in loaded.names("architecture")
        }
    for name, cells in {
        "static": f"| {more['static']} | |",
        "runtime_structured": f"| {more['runtime_structured']} | |",
        "bare_agent": f"| {more['bare_agent']} | {trials['damage_doubled']['bare_agent', 'crash']} |",
        "keys": f"| {more['keys']} | {trials['damage_doubled']['keys', 'crash']} |",
    }.items():
        [row] = [line for line in page.splitlines() if f" `{name}`" in line and line.startswith("|") and line.count("|") == 5]
        assert row.endswith(cells)
    assert more["static"] > more["runtime_structured"] > more["keys"] == 0 and trials["outcome"]["keys", "crash"] == "solved"


def test_a_step_that_changes_nothing_has_no_config_of_effects_and_a_pack_is_not_written_over(tmp_path: Path) -> None:
    written(tmp_path, SETTLED)
    words = ("import", "trace.json", "--name", "yesterday", "--step", "1", "--read", "get_order")
    code, out, _ = bench(tmp_path, *words)
    assert code == 0 and "step 1 calls no tool that changes something, so no crash doubles it; steps that do: 2, 3" in out
    assert [path.name for path in (tmp_path / "configs").iterdir()] == ["yesterday.toml"]
    code, _, err = bench(tmp_path, *words)
    assert (code, err.strip()) == (2, "bench: configs/yesterday.toml exists already; choose another name, or remove it")
    code, _, err = bench(tmp_path, "import", "trace.json", "--name", "other", "--step", "9")
    assert (code, err.strip()) == (2, "bench: --step 9: trace.json has 4 steps")
