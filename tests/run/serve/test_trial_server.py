"""The life of the server, over real HTTP on loopback: what a trial is shown as, when it begins, and how it comes to an end."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import httpx2
import pytest
from outside_system import OutsideSystem
from scripted_model import Line, ScriptedModel
from trials import ROOTS, TINY, Fault, events, matrix_of, with_model

from bench.read.report.trial_calls import call_lines
from bench.record.events import Called, Faulted, Judged, Refused, SetAside
from bench.record.record import TrialRecord
from bench.record.store import RunWriter
from bench.run.experiment.new_manifest import manifest_of
from bench.run.models.base import Reply
from bench.run.serve import session
from bench.run.serve.session import ServingResult, external_matrix, serve
from bench.run.trial.loop import run

FORGOTTEN: Fault = {"point": "output", "effect": "missing_field", "attempts": [1], "subtask": "total"}
NAMES = ["gather", "total", "review"]
Client = Callable[[OutsideSystem], object]


@dataclass(frozen=True)
class Session:
    """A session of `bench serve` that has ended. `told` is what its client came back with."""

    records: list[TrialRecord]
    served: ServingResult
    told: Any


class Server:
    """Serves trials to a client that works in a thread."""

    def __init__(self, folder: Path):
        self._folder = folder

    def __call__(
        self,
        client: Client,
        script: Mapping[str, Sequence[Line]] | None = None,
        faults: Sequence[Fault] = (),
        patience: float = 0.0,
        repetitions: int = 1,
        scenario: str = "tiny",
        live: bool = False,
    ) -> Session:
        matrix = matrix_of(plans={"plan": faults} if faults else None, architectures=["static"], repetitions=repetitions)
        config = matrix.config.model_copy(update={"architectures": ("external",), "scenarios": (scenario,)})
        matrix = external_matrix(config, ROOTS, "code")
        reference = next(iter(matrix.scenarios.values())).reference
        model = ScriptedModel(reference, script, lambda _: 0.0)
        model.timing = "live" if live else "simulated"
        return run(self._serve(with_model(matrix, model), client, patience))

    async def _serve(self, matrix: Any, client: Client, patience: float) -> Session:
        writer = RunWriter(self._folder, manifest_of(matrix, "run"))
        records: list[TrialRecord] = []
        working: list[asyncio.Future[object]] = []

        def work(root: str) -> object:
            with httpx2.Client(trust_env=False, timeout=60) as http:
                return client(OutsideSystem(root, http))

        def opened(root: str) -> None:
            working.append(asyncio.get_running_loop().run_in_executor(None, work, root))

        try:
            served = await serve(matrix, writer, 0, opened, lambda result: records.append(result.record), patience)
        finally:
            writer.close()
        return Session(records, served, await working[0])


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(session, "END_NOTICE_S", 0.2)
    return Server(tmp_path / "run")


def stages(record: TrialRecord) -> list[str]:
    return [event.stage for event in events(record.events, Faulted)]


def shadow_verdicts(record: TrialRecord) -> list[tuple[str, str]]:
    judged = [event for event in events(record.events, Judged) if event.view == "shadow"]
    return [(event.subtask, event.reason or "accepted") for event in judged]


def test_looking_at_a_trial_neither_begins_nor_skips_it_and_tells_how_far_it_is(server: Server) -> None:
    def client(outside: OutsideSystem) -> list[dict[str, Any]]:
        looks = [outside.get("/trial"), outside.get("/trial")]
        outside.reply_to(looks[0]["subtasks"][0])
        looks.append(outside.get("/trial"))
        outside.post("/trial/give-up")
        looks.append(outside.get("/trial"))
        outside.post("/trial/give-up")
        return looks

    first, again, begun, second = server(client, repetitions=2).told
    assert first == again
    assert (first["begun"], first["calls"], first["refused"], first["max_attempts"]) == (False, 0, 0, 3)
    assert first["attempts"] == dict.fromkeys(NAMES, 0)
    assert begun == {**first, "begun": True, "calls": 1, "attempts": {"gather": 1, "total": 0, "review": 0}}
    assert (second["repetition"], second["begun"]) == (2, False)


def test_an_agent_that_is_started_again_goes_on_in_its_trial_and_its_first_calls_stay_booked(server: Server) -> None:
    def client(outside: OutsideSystem) -> Any:
        outside.solve()
        return outside.hand_in(outside.solve())

    account = server(client).told
    assert (account["outcome"], account["calls"], account["retry_tokens"]) == ("solved", 6, 0)
    assert account["causes"] == {"first": 3, "sample": 3}
    assert account["accounts"]["redundant"] > 0 and account["accounts"]["in_answer"] > 0
    assert sum(account["accounts"].values()) == account["tokens"]
    assert account["note"].startswith("the cause of 3 of 6 calls was not told")


def test_the_time_until_an_agents_first_request_is_none_of_its_trial(server: Server) -> None:
    def client(outside: OutsideSystem) -> float:
        outside.get("/trial")
        sleep(0.5)
        began = monotonic()
        outside.hello()
        outside.post("/trial/give-up")
        return monotonic() - began

    served = server(client, live=True)
    [record] = served.records
    assert record.framework_seconds <= served.told
    assert events(record.events, Called)[0].started <= served.told


@pytest.mark.parametrize("asks", [True, False])
def test_who_asks_for_a_trial_after_the_last_is_told_that_all_are_done(
    server: Server, monkeypatch: pytest.MonkeyPatch, asks: bool
) -> None:
    monkeypatch.setattr(session, "END_NOTICE_S", 5.0 if asks else 0.3)

    def client(outside: OutsideSystem) -> Any:
        account = outside.hand_in(outside.solve())
        assert not asks or outside.status_of("/trial") == 410
        return account["trials_left"], perf_counter()

    left, told_at = server(client).told
    assert left == 0
    assert perf_counter() - told_at < 3.0, "the server ends as soon as its client knows"


def test_an_agents_attempts_are_bounded_as_ours_are(server: Server) -> None:
    def client(outside: OutsideSystem) -> Any:
        gather = outside.get("/trial")["subtasks"][0]
        statuses = [outside.ask(gather["base_url"], gather["messages"]).status_code for _ in range(5)]
        return statuses, outside.get("/trial"), outside.post("/trial/give-up", {"reason": "so be it"}).json()

    ended = server(client, {"gather": [{"deliveries": 1}] * 9})
    statuses, shown, account = ended.told
    assert statuses == [200, 200, 200, 403, 403]
    assert (shown["attempts"]["gather"], shown["refused"]) == (3, 2)
    assert (account["outcome"], account["calls"]) == ("gave_up", 3)
    assert account["reason"] == "gather: no accepted output in 3 attempts"
    assert account["causes"] == {"first": 1, "retry": 2}
    assert account["refused"]["count"] == 2 and "no accepted output in 3 attempts" in account["refused"]["last"]


def test_what_an_agent_has_after_its_last_attempt_it_may_hand_in(server: Server) -> None:
    def client(outside: OutsideSystem) -> Any:
        outputs = outside.solve()
        total = outside.get("/trial")["subtasks"][1]
        asked = [outside.ask(total["base_url"], total["messages"]).status_code for _ in range(3)]
        return asked, outside.hand_in({**outputs, "total": TINY.reference["total"]})

    asked, account = server(client, {"total": [{"total": "many"}] * 9}).told
    assert asked == [200, 200, 403]
    assert account["outcome"] == "solved"


def test_a_deserted_trial_is_given_up_before_the_next_begins(server: Server) -> None:
    ended = server(lambda outside: outside.hello(), patience=0.4, repetitions=2)
    [record] = ended.records
    assert (record.outcome, record.reason) == ("gave_up", "gather + total + review: no request came for 0.4 s")
    assert ended.served.deserted


def test_a_server_that_nobody_has_asked_yet_waits_for_ever(server: Server) -> None:
    def client(outside: OutsideSystem) -> Any:
        sleep(0.8)
        return outside.hand_in(outside.solve())

    ended = server(client, patience=0.6)
    assert (ended.told["outcome"], ended.served.deserted) == ("solved", False)


def test_a_struck_reply_that_is_handed_in_unchanged_is_undetected(server: Server) -> None:
    [record] = server(lambda outside: outside.hand_in(outside.solve()), faults=[FORGOTTEN]).records
    assert stages(record) == ["planned", "delivered", "undetected"]
    assert shadow_verdicts(record) == [("gather", "accepted"), ("total", "schema"), ("review", "accepted")]


def test_a_fault_after_which_the_agent_asks_again_is_detected(server: Server) -> None:
    def client(outside: OutsideSystem) -> Any:
        outputs = outside.solve()
        outputs["total"] = outside.reply_to(outside.get("/trial")["subtasks"][1])
        return outside.hand_in(outputs)

    ended = server(client, faults=[FORGOTTEN])
    assert ended.told["outcome"] == "solved"
    assert ended.told["causes"] == {"first": 3, "retry": 1}
    assert stages(ended.records[0]) == ["planned", "delivered", "detected", "recovered"]


def test_a_fault_that_the_agent_mends_by_itself_is_detected(server: Server) -> None:
    def client(outside: OutsideSystem) -> Any:
        return outside.hand_in({**outside.solve(), "total": TINY.reference["total"]})

    ended = server(client, faults=[FORGOTTEN])
    assert ended.told["outcome"] == "solved"
    assert stages(ended.records[0]) == ["planned", "delivered", "detected", "recovered"]
    undamaged = [event.accepted for event in events(ended.records[0].events, Judged) if event.view == "undamaged"]
    assert undamaged == [True], "the fault mattered"


def test_a_fault_that_the_agent_gives_up_over_is_detected(server: Server) -> None:
    def client(outside: OutsideSystem) -> None:
        outside.solve()
        outside.post("/trial/give-up")

    [record] = server(client, faults=[FORGOTTEN]).records
    assert stages(record) == ["planned", "delivered", "detected", "gave_up"]


def test_at_the_end_a_reply_is_held_against_the_outputs_that_it_was_to_be_made_from(server: Server) -> None:
    too_low = {"total": 5, "unit": "apples"}
    [record] = server(lambda outside: outside.hand_in(outside.solve()), {"total": [too_low]}).records
    assert ("total", "check") in shadow_verdicts(record)


def test_of_replies_made_at_the_same_time_each_is_judged_at_the_end(server: Server) -> None:
    def client(outside: OutsideSystem) -> Any:
        everything = outside.get("/trial")
        request = {"messages": [{"role": "user", "content": "all of it"}]}

        async def ask_twice() -> None:
            async with httpx2.AsyncClient(trust_env=False, headers={"X-Bench-Parallel": "2"}) as http:
                address = f"{everything['base_url']}/chat/completions"
                await asyncio.gather(*(http.post(address, json=request) for _ in range(2)))

        asyncio.run(ask_twice())
        return outside.hand_in(dict(TINY.reference))

    ended = server(client)
    assert ended.told["outcome"] == "solved", ended.told["reason"]
    assert Counter(shadow_verdicts(ended.records[0])) == {(name, "accepted"): 2 for name in NAMES}


def test_a_request_that_is_refused_leaves_its_trace_in_the_trial(server: Server) -> None:
    def client(outside: OutsideSystem) -> Any:
        trial = outside.get("/trial")
        hello = [{"role": "user", "content": "hello"}]
        assert outside.ask(trial["base_url"], hello, logprobs=True).status_code == 400
        assert outside.ask(f"{outside.root}/gahter/v1", hello).status_code == 404
        assert outside.ask(outside.root, hello).status_code == 404
        assert outside.status_of("/version") == 404
        return outside.post("/trial/give-up").json()

    ended = server(client)
    assert [event.status for event in events(ended.records[0].events, Refused)] == [400, 404, 404]
    assert ended.told["refused"]["count"] == 3
    assert ended.told["refused"]["last"].startswith("404: nothing is served at POST /chat/completions: a base_url ends in /v1")
    assert ended.served.refusals[0].startswith("400: logprobs: ")
    assert ended.served.requests == 0


def test_settings_that_are_not_passed_on_are_in_the_trial(server: Server) -> None:
    def client(outside: OutsideSystem) -> Any:
        trial = outside.get("/trial")
        hello = [{"role": "user", "content": "hello"}]
        assert outside.ask(trial["base_url"], hello, temperature=0.2).status_code == 200
        assert outside.ask(trial["base_url"], hello, temperature=0.5, verbosity="low").status_code == 200
        return outside.post("/trial/give-up").json()

    ended = server(client)
    assert events(ended.records[0].events, SetAside) == [SetAside({"temperature": "0.5", "verbosity": '"low"'})]
    assert any("of what the agent sent: temperature 0.5, verbosity" in line for line in call_lines(ended.records[0]))


def test_without_a_task_no_call_is_a_retry_and_none_is_refused(server: Server) -> None:
    """Replies that would be no output of any task, and more of them than one attempt may have."""

    def client(outside: OutsideSystem) -> Any:
        for words in ["plan", *map(str, range(111)), "plan"]:
            assert outside.hello(words) == 200
        return outside.post("/trial/answer", {}).json()

    odd: list[Line] = [{"text": 5}, '{"text": ', "", Reply("", "content_filter"), *["words"] * 120]
    account = server(client, {"any": odd}, scenario="free").told
    assert account["outcome"] == "ungraded"
    assert account["causes"] == {"first": 1, "step": 111, "sample": 1}
    assert account["retry_tokens"] == 0
    assert account["refused"] == {"count": 0, "last": ""}


def test_outputs_that_are_handed_in_stand_on_the_calls_that_made_them(server: Server) -> None:
    ended = server(lambda outside: outside.hand_in({n: json.loads(o) for n, o in outside.solve().items()}))
    assert ended.told["accounts"]["in_answer"] == ended.told["tokens"] > 0
    assert len(events(ended.records[0].events, Called)) == 3
