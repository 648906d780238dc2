"""`bench serve` as a user of another language meets it: a process, a port, HTTP and nothing else."""

from __future__ import annotations

import json
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
import scripted_server
from commands import UNDRAWN, Ended, Started, bench, free_port, start, workplace
from outside_system import OutsideSystem
from scripted_server import ScriptedServer, Step, completion

from bench.common.errors import ConfigError
from bench.read.analysis.arms import Condition, arms_of
from bench.read.analysis.frames import load_run
from bench.read.analysis.merge import merge
from bench.record.events import Called
from bench.record.reading import read_trials
from bench.run.experiment.recording import recorded_entries
from bench.run.serve.session import external_config, external_matrix, with_one_more_repetition
from bench.wire.access_guard import MAX_BODY_BYTES

TABLES = """
[plan.storm]
faults = [{ point = "call", effect = "rate_limit", attempts = [1], seconds = 0.0 }]

[plan.inputs]
faults = [{ point = "input", effect = "empty", attempts = [1] }]
"""

PACKS = Path(__file__).parents[3] / "scenarios"
TOKEN = "the-token-of-these-tests"
PATIENT = 5.0
"""Seconds. It takes a fifth of one on a machine that does nothing else; without bounds on what is read it was over a minute."""
Serve = Callable[..., tuple[OutsideSystem, Started]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts `bench serve` in a folder of its own and waits until it says that it serves."""
    running: list[Started] = []
    config = workplace(tmp_path, tables=TABLES)

    def begin(*words: str) -> tuple[OutsideSystem, Started]:
        port = free_port()
        name = () if "--name" in words else ("--name", "outside")
        words = ("serve", str(config), "--port", str(port), *name, *words)
        running.append(start(tmp_path, *words, BENCH_SERVE_TOKEN=TOKEN))
        running[-1].wait_until_said("Ctrl-C stops")
        return OutsideSystem(f"http://127.0.0.1:{port}", client), running[-1]

    with httpx2.Client(trust_env=False, timeout=60, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        yield begin
    for process in running:
        process.kill()
        process.ended()


def ended_when_done(outside: OutsideSystem, process: Started) -> Ended:
    """The system asks for one more trial, and is told that there is none: the server waits for nobody else."""
    assert outside.status_of("/trial") == 410
    return process.ended()


def records(tmp_path: Path, name: str = "outside") -> list[Any]:
    return list(read_trials(tmp_path / "results" / name))


def happened(record: Any) -> list[tuple[object, ...]]:
    """What each call asked and what came of it, without the times."""
    calls = [event for event in record.events if isinstance(event, Called)]
    return [(call.messages, call.seed, call.reply, call.usage_in, call.usage_out, call.failure) for call in calls]


def refused(base_url: str) -> openai.APIStatusError:
    """What OpenAI's own client, with its retries, makes of a request that nobody ever made."""
    with openai.OpenAI(base_url=base_url, api_key=TOKEN) as client, pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="any", messages=[{"role": "user", "content": "something else"}])
    return caught.value


def test_a_system_works_through_its_trials_and_they_are_reported_like_any_others(serve: Serve, tmp_path: Path) -> None:
    outside, process = serve("--scenario", "demo", "--plan", "storm", "--repetitions", "2")
    first = outside.post("/trial/answer", outside.solve()).json()
    assert (first["outcome"], first["trials_left"]) == ("solved", 1)
    assert first["grade"]["correct"]
    assert sum(first["accounts"].values()) == first["tokens"] == first["accounts"]["in_answer"] > 0
    assert outside.get("/trial")["repetition"] == 2
    second = outside.post("/trial/give-up", {"reason": "too hard \ud800"}).json()
    assert (second["outcome"], second["calls"], second["trials_left"]) == ("gave_up", 0, 0)
    assert "too hard" in second["reason"]
    assert outside.status_of("/trial") == 410
    code, out, err = process.ended()
    assert (code, err) == (0, "")
    assert f"{first['calls']} requests taken, {first['calls']} calls recorded" in out
    assert [record.outcome for record in records(tmp_path)] == ["solved", "gave_up"]
    run = load_run(tmp_path / "results" / "outside")
    assert run.calls["failure"].tolist().count("rate_limited") == run.faults["delivered"].sum() > 0
    assert bench(tmp_path, "report", "outside", **UNDRAWN)[0] == 0


def whole(value: Any, schema: Any, definitions: Any) -> bool:
    """Whether no required field is missing, at any depth."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "items" in schema:
        return all(whole(item, schema["items"], definitions) for item in value)
    fields = schema.get("properties", {})
    return (
        set(fields) <= set(value) and all(whole(value[name], fields[name], definitions) for name in fields) if fields else True
    )


def repaired(outside: OutsideSystem) -> dict[str, Any]:
    """An agent's outputs: it asks again for what lacks a field."""
    outputs = {}
    for subtask in outside.get("/trial")["subtasks"]:
        output: dict[str, Any] = {}
        messages = subtask["messages"]
        while not whole(output, subtask["schema"], subtask["schema"].get("$defs", {})):
            reply = outside.reply_to({**subtask, "messages": messages})
            output = json.JSONDecoder().raw_decode(reply, reply.index("{"))[0]
            messages = [*messages, {"role": "user", "content": "A field is missing. Give it again, whole."}]
        outputs[subtask["name"]] = output
    return outputs


def test_a_served_agent_stands_in_one_table_with_ours_and_a_framework_under_the_same_faults(
    serve: Serve, tmp_path: Path
) -> None:
    config = tmp_path / "configs" / "small.toml"
    outside, process = serve("--scenario", "demo", "--architecture", "my_agent", "--repetitions", "2")
    while outside.status_of("/trial") != 410:
        assert outside.hand_in(repaired(outside))["outcome"] == "solved"
    assert process.ended()[0] == 0
    config.write_text(config.read_text().replace('["static",', '["monolithic", "reflexion", "static",'))
    assert bench(tmp_path, "run", str(config), "--name", "ours")[0] == 0
    code, out, err = bench(tmp_path, "report", "outside", "ours", **UNDRAWN)
    assert (code, err) == (0, "") and "Left out" not in out
    table = (tmp_path / "reports" / "outside+ours" / "tables" / "differences.md").read_text()
    assert "static − my_agent" in table and "monolithic − my_agent" in table and "reflexion − my_agent" in table
    both = merge([load_run(tmp_path / "results" / name) for name in ("outside", "ours")])
    assert both.notes == ()
    under = both.faults[both.faults["delivered"]]
    struck = {
        name: set(faults[["plan", "repetition", "subtask", "attempt", "effect"]].itertuples(index=False, name=None))
        for name, faults in under.groupby("architecture")
    }
    assert set(struck) == {"my_agent", "monolithic", "reflexion", "static", "runtime_structured"}
    assert struck["my_agent"] == struck["static"] == struck["runtime_structured"] and len(struck["my_agent"]) > 2
    pairs = arms_of(both)[Condition("demo", "simulated", "first_reply")]
    assert pairs["my_agent"].minus(pairs["static"], "first_round_tokens").pairs == 2
    words = ("compare", "ours", "outside", "--architectures", "static", "my_agent")
    assert bench(tmp_path, *words, "--whole")[0] in (0, 1, 3)


def test_asked_for_code_in_blocks_a_system_hands_the_replies_in_as_they_came(serve: Serve, tmp_path: Path) -> None:
    config = tmp_path / "configs" / "small.toml"
    config.write_text('answer_format = "fenced"\n' + config.read_text())
    outside, _ = serve("--scenario", "functions", "--scenarios", str(PACKS), "--repetitions", "1", "--plan", "none")
    asked = {subtask["name"]: subtask["messages"][-1]["content"] for subtask in outside.get("/trial")["subtasks"]}
    replies = outside.solve()
    assert ["```" in text for text in (asked["code"], replies["code"], replies["plan"])] == [True, True, False]
    assert outside.hand_in(replies)["outcome"] == "solved"


def test_time_before_a_systems_first_request_is_not_its_own(serve: Serve, tmp_path: Path) -> None:
    outside, process = serve("--scenario", "demo", "--repetitions", "1", "--plan", "none")
    time.sleep(0.5)
    began = time.monotonic()
    outside.post("/trial/give-up")
    took = time.monotonic() - began
    ended_when_done(outside, process)
    assert records(tmp_path)[0].framework_seconds <= took


@pytest.mark.parametrize(("asked", "exits"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_in_mid_trial_it_keeps_what_was_counted_and_the_trial_is_run_again(
    serve: Serve, tmp_path: Path, asked: signal.Signals, exits: int
) -> None:
    outside, process = serve("--scenario", "demo", "--plan", "none", "--repetitions", "1")
    outside.solve()
    process.send_signal(asked)
    code, out, err = process.ended()
    assert (code, err) == (exits, "")
    assert "stopped: error 1" in out
    [record] = records(tmp_path)
    assert record.tokens > 0
    outside, process = serve("--scenario", "demo", "--plan", "none", "--repetitions", "1")
    assert outside.post("/trial/answer", outside.solve()).json()["outcome"] == "solved"
    assert ended_when_done(outside, process)[0] == 0
    assert [record.outcome for record in records(tmp_path)] == ["error", "solved"]


def test_an_interrupt_before_the_first_request_records_nothing(serve: Serve, tmp_path: Path) -> None:
    _, process = serve("--scenario", "demo", "--plan", "none")
    process.send_signal(signal.SIGINT)
    code, out, err = process.ended()
    assert (code, err) == (130, "")
    assert "no trial was begun" in out
    assert records(tmp_path) == []


def test_without_a_scenario_calls_are_counted_and_enter_no_rate(serve: Serve, tmp_path: Path) -> None:
    for session in (1, 2):
        outside, process = serve("--plan", "storm")
        assert [outside.hello() for _ in range(3)] == [429, 200, 200]
        process.send_signal(signal.SIGINT)
        code, out, err = process.ended()
        assert (code, err) == (0, "")
        assert "3 requests taken, 3 calls recorded" in out
        assert [record.repetition for record in records(tmp_path)] == list(range(1, session + 1))
    run = load_run(tmp_path / "results" / "outside")
    assert run.trials["outcome"].tolist() == ["ungraded"] * 2
    assert run.trials["correct"].isna().all()
    assert run.calls["try"].tolist() == [1, 2, 1] * 2
    assert bench(tmp_path, "report", "outside", **UNDRAWN)[0] == 0
    [arm] = [arm for arms in arms_of(run).values() for arm in arms.values()]
    assert (arm.solved().k, arm.solved().n) == (0, 0)


@pytest.fixture
def live(tmp_path: Path, serve: Serve) -> Iterator[ScriptedServer]:  # noqa: ARG001  # it makes the config
    """A model behind an endpoint, named `live` in the config: it is limited once, after the first
    request of all, which only proves that it can be used, and numbers its replies."""
    reference = json.dumps(json.loads((tmp_path / "scenarios" / "demo" / "reference" / "answer.json").read_text()))
    numbers = iter(range(1, 1000))

    def answer(_: Any) -> Step:
        number = next(numbers)
        limited = scripted_server.status(429, headers={"Retry-After": "0.01"})
        return limited if number == 2 else completion(f"{number} {reference}", usage=(number, 7))

    with ScriptedServer(answer) as server:
        config = tmp_path / "configs" / "small.toml"
        config.write_text(config.read_text() + f'[model.live]\nkind = "openai"\nbase_url = "{server.base_url}"\n')
        yield server


def test_a_recorded_run_is_served_again_and_what_it_lacks_is_refused_for_good(
    serve: Serve, live: ScriptedServer, tmp_path: Path
) -> None:
    words = ("--scenario", "demo", "--plan", "none", "--repetitions", "2")
    outside, process = serve(*words, "--model", "live")
    for _ in range(2):
        outside.post("/trial/answer", outside.solve())
    assert ended_when_done(outside, process)[0] == 0
    asked = len(live.requests)
    outside, process = serve(*words, "--model", "recorded:outside", "--name", "again")
    first = outside.post("/trial/answer", outside.solve()).json()
    outputs, trial = outside.solve(), outside.get("/trial")
    missed = refused(trial["subtasks"][0]["base_url"])
    second = outside.post("/trial/answer", outputs).json()
    code, out, err = ended_when_done(outside, process)
    assert len(live.requests) == asked, "the model itself is left alone"
    served, other = records(tmp_path)
    again, broken = records(tmp_path, "again")
    assert happened(again) == happened(served)
    assert {call[5] for call in happened(again)} == {None, "rate_limited"} and {call[4] for call in happened(again)} == {
        None,
        7,
    }
    assert (again.timing, first["outcome"], first["tokens"]) == ("recorded", served.outcome, served.tokens)
    assert (missed.status_code, missed.code, missed.type) == (404, "not_recorded", "invalid_request_error")
    assert "holds no reply to attempt 1 at measure (demo, external/none, repetition 2)" in missed.message
    assert "to record one, run or serve this config on live itself" in missed.message
    assert happened(broken)[:-1] == happened(other) and happened(broken)[-1][5] == "not_recorded", "asked once, not again"
    assert second["outcome"] == "error" and second["reason"].startswith("not_recorded: the recording outside holds no reply")
    assert code == 1 and "error 1" in out
    assert err.startswith("1 trials ended in an error, the first: not_recorded") and err.count("\n") == 1
    entries = recorded_entries(tmp_path / "results" / "outside")
    config = external_config(tmp_path / "configs" / "small.toml", "external", {"models": ["live"]}, entries)
    with pytest.raises(ConfigError, match="outside: holds no calls without a task; give --scenario"):
        with_one_more_repetition(config, tmp_path / "results" / "free")


def test_calls_without_a_task_are_replayed_trial_by_trial_until_there_are_no_more(serve: Serve, tmp_path: Path) -> None:
    for name, model in (("outside", "simulated"), ("again", "recorded:outside")):
        outside, process = serve("--model", model, "--plan", "none", "--name", name)
        assert [outside.hello() for _ in range(2)] == [200, 200]
        process.send_signal(signal.SIGINT)
        code, out, err = process.ended()
        assert (code, err) == (0, "") and "not graded 1" in out
    assert [happened(record) for record in records(tmp_path, "again")] == [happened(record) for record in records(tmp_path)]
    results = tmp_path / "results"
    config = external_config(tmp_path / "configs" / "small.toml", "external", {}, recorded_entries(results / "outside"))
    assert with_one_more_repetition(config, results / "third").repetitions == 1
    with pytest.raises(ConfigError, match="all it holds without a task, 1 trials, has been replayed"):
        with_one_more_repetition(config, results / "again")


def test_what_cannot_be_taken_is_refused_and_the_trial_goes_on(serve: Serve) -> None:
    outside, _ = serve("--scenario", "demo", "--plan", "none", "--repetitions", "1")
    names = [subtask["name"] for subtask in outside.get("/trial")["subtasks"]]
    cases: list[tuple[str, object, int, str]] = [
        ("/trial/answer", {}, 400, "one output for each"),
        ("/trial/answer", ["no object"], 400, "no JSON object"),
        ("/trial/answer", dict.fromkeys(names, "{}"), 409, "no reply was ever given"),
        ("/v1/chat/completions", {"messages": []}, 400, "messages"),
        ("/trial/nothing", {}, 404, "/trial/nothing"),
    ]
    for path, body, status, words in cases:
        refused = outside.post(path, body)
        assert refused.status_code == status
        assert words in refused.json()["error"]["message"]
    assert outside.post("/trial/answer", outside.solve()).json()["outcome"] == "solved"


def full(opening: str, unit: str, end: str = "0]}") -> bytes:
    """As much of the unit as a body may hold."""
    return (opening + unit * ((MAX_BODY_BYTES - len(opening) - len(end)) // len(unit)) + end).encode()


BAD_BODIES = {
    "lists": full('{"messages":[', "[],"),
    "messages": full('{"messages":[', '{"role":"x"},'),
    "numbers": full('{"messages":[{"role":"user","content":[', "0,", "0]}]}"),
    "marks in a text": full('{"messages":[{"role":"user","content":"', '\\",', '"}],"n":0}'),
    "depth": full('{"messages":', "[", ""),
}


def test_while_eight_bad_megabytes_come_in_everybody_else_is_answered_within_a_second(
    serve: Serve, record_property: Callable[[str, object], None]
) -> None:
    outside, _ = serve("--scenario", "demo", "--repetitions", "1")
    longest, headers = 0.0, {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with httpx2.Client(trust_env=False, timeout=60, headers=headers) as other, ThreadPoolExecutor(1) as aside:
        for path in ("chat/completions", "responses"):
            for body in BAD_BODIES.values():
                refused = aside.submit(other.post, f"{outside.root}/v1/{path}", content=body)
                while not refused.done():
                    began = time.monotonic()
                    assert outside.status_of("/v1/models") == 200
                    longest = max(longest, time.monotonic() - began)
                assert refused.result().status_code == 400
    for name, value in (("place", "`bench serve`, asked meanwhile"), ("tries", 2 * len(BAD_BODIES)), ("wait", longest)):
        record_property(name, value)
    assert longest < PATIENT


@pytest.mark.parametrize(
    ("plan", "architecture", "words"),
    [
        ("inputs", "external", "an outside system holds itself"),
        ("none", "static", "is one of ours"),
        ("strom", "external", "did you mean 'storm'?"),
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, plan: str, architecture: str, words: str) -> None:
    path = workplace(tmp_path, tables=TABLES)
    with pytest.raises(ConfigError, match=re.escape(words)):
        external_matrix(external_config(path, architecture, {"plans": [plan]}), [tmp_path / "scenarios"], "code")


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    config = workplace(tmp_path)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        code, _, err = bench(tmp_path, "serve", str(config), "--port", str(port))
    assert (code, err) == (2, f"bench: port {port} at 127.0.0.1 is in use; give another with --port\n")


@pytest.mark.parametrize("asks", [True, False])
def test_a_token_is_printed_and_asked_for_unless_the_user_says_otherwise(tmp_path: Path, asks: bool) -> None:
    words = ("serve", str(workplace(tmp_path)), "--port", str(port := free_port()), *(() if asks else ("--no-token",)))
    with start(tmp_path, *words, BENCH_SERVE_TOKEN="") as process:
        screen = process.wait_until_said("Ctrl-C stops")
        [token] = re.findall(r"^api_key = (\S+) ", screen, re.MULTILINE)
        with httpx2.Client(trust_env=False) as stranger:
            assert OutsideSystem(f"http://127.0.0.1:{port}", stranger).hello() == (401 if asks else 200)
        with httpx2.Client(trust_env=False, headers={"Authorization": f"Bearer {token}"}) as agent:
            assert OutsideSystem(f"http://127.0.0.1:{port}", agent).hello() == 200
        process.send_signal(signal.SIGINT)
        _, out, _ = process.ended()
    assert ("1 requests turned away, the last: 401: Incorrect API key provided: send the one" in out) is asks
    assert ("every program on this machine may ask" in out) is not asks
    assert all(token.encode() not in file.read_bytes() for file in (tmp_path / "results").rglob("*") if asks and file.is_file())


def test_a_deserted_server_says_so_and_what_was_refused_and_ends(serve: Serve, tmp_path: Path) -> None:
    outside, process = serve("--scenario", "demo", "--plan", "none", "--repetitions", "2", "--patience", "0.7")
    assert outside.ask(f"{outside.root}/v1", [{"role": "user", "content": "hello"}], logprobs=True).status_code == 400
    code, out, err = process.ended()
    assert code == 1
    assert "1 requests refused, the last: 400: logprobs: no probabilities are given" in out
    assert err == "nobody asked for the next trial for 0.7 s; the same command goes on\n"
    assert [record.outcome for record in records(tmp_path)] == ["gave_up"]
