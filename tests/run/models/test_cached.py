"""The same request is sent once; who asks again is given the same reply and the same seconds; a failure is nobody's."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import as_it_happened, config, copied, run, without
from scripted_model import ScriptedModel
from scripted_server import ScriptedServer, Step, completion, hang, status
from trials import ROOTS, TINY

from bench.cli.commands.setup import cache_from, reply_source_lines
from bench.common.errors import ServerFailed
from bench.record.events import Called
from bench.record.files import RESPONSES, TRIALS
from bench.record.messages import Message
from bench.record.reading import read_manifest, read_trials
from bench.record.record import TrialRecord
from bench.run.experiment.matrix import build_matrix
from bench.run.models.base import Model, Reply, Request, RequestContext, Response, Sleep
from bench.run.models.cached import CachedModel, ResponsesBefore

SECONDS = 0.02
"""What the server takes over a reply at least: far more than looking one up."""


class Talkative:
    """Says something else each time it is asked, and fails the third time."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)

    def __call__(self, body: Any) -> Step:
        number = next(self.numbers)
        if number == 3:
            return status(500)
        name = re.findall(r"^# Task: (\w+)", body["messages"][-1]["content"], re.MULTILINE)
        output = TINY.reference[name[0]] if name else {}
        return hang(SECONDS, completion(f"{number}: {json.dumps(output)}", usage=(number, 1)))


def cached(server: ScriptedServer, folder: Path, repetitions: int = 2) -> list[TrialRecord]:
    entry = {"kind": "openai", "base_url": server.base_url, "cache": True}
    return run(config(entry, plans=["none", "early"], repetitions=repetitions), folder)


def calls_of(trials: list[TrialRecord]) -> list[Called]:
    return [event for trial in trials for event in trial.events if isinstance(event, Called)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two repetitions at once, the third in another process's place, which knows only what is on disk."""
    folder = tmp_path_factory.mktemp("once") / "run"
    with ScriptedServer(Talkative()) as server:
        cached(server, folder)
        cached(server, folder, repetitions=3)
    return folder


def test_arms_that_make_the_same_request_are_given_the_same_reply_and_its_seconds(folder: Path) -> None:
    given = defaultdict(list)
    for call in calls_of(list(read_trials(folder))):
        if call.failure is None:
            given[call.messages, call.seed].append(call)
    shared = [calls for calls in given.values() if len(calls) > 1]
    assert len(shared) > 3
    for calls in shared:
        assert len({(call.reply, call.usage_in) for call in calls}) == 1
        assert [call.reused for call in calls] == [False, *[True] * (len(calls) - 1)]
        assert min(call.seconds for call in calls) > 0.9 * SECONDS


def test_only_what_was_never_answered_is_sent(tmp_path: Path) -> None:
    with ScriptedServer(Talkative()) as server:
        trials = cached(server, tmp_path / "run")
        probes = 1
        sent = [call for call in calls_of(trials) if not call.reused and call.asked]
        assert len(server.requests) == probes + len(sent)
        cached(server, tmp_path / "run")
        again = cached(server, tmp_path / "other")
        assert not all(call.reused for call in calls_of(again)), "another run asks anew"


def test_a_reply_that_an_earlier_run_was_given_takes_just_the_seconds_that_it_took_there() -> None:
    hello = (Message("user", "hello"),)
    request = Request(hello, 7, RequestContext("tiny", ("total",), repetition=1, attempt=1))
    model = CachedModel(
        ScriptedModel({}), shared=True, before=ResponsesBefore([Response("small", request, Reply("hi", by="small"), 12.5)])
    )
    given = asyncio.run(model.reply(request, asyncio.sleep))
    assert given == Reply("hi", took=12.5, reused=True)


def test_what_is_reused_counts_in_full_for_every_arm(folder: Path) -> None:
    for trial in read_trials(folder):
        assert trial.tokens == sum(call.tokens_in + call.tokens_out for call in calls_of([trial]))
        assert trial.api_seconds == pytest.approx(sum(call.seconds for call in calls_of([trial])), abs=1e-9)


def test_a_failure_is_not_shared(folder: Path) -> None:
    [failed] = [call for call in calls_of(list(read_trials(folder))) if call.failure == "server_failed"]
    assert not failed.reused


def test_a_run_that_goes_on_knows_what_was_answered_before(tmp_path: Path) -> None:
    with ScriptedServer(Talkative()) as server:
        first = cached(server, tmp_path / "run", repetitions=1)
        without(tmp_path / "run" / TRIALS, lambda line: line.get("id") == first[-1].id)
        answered = len(server.requests)
        again = cached(server, tmp_path / "run", repetitions=1)[-1]
        assert again.id == first[-1].id
        known = [call for call in calls_of([again]) if call.reused]
        assert known and len(server.requests) - answered == 1 + len(calls_of([again])) - len(known)


def served_at(address: str, run: Path, copy: Path) -> Path:
    """A copy of a run, as if its model had been at this address."""
    shutil.copytree(run, copy)
    [model] = read_manifest(run).models.values()
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace(str(model.base_url), address))
    return copy


def followed(server: ScriptedServer, folder: Path, earlier: Path, **settings: Any) -> list[TrialRecord]:
    """A run that need not ask for what the earlier one was answered: the server is taken for the earlier one's."""
    earlier = served_at(server.base_url, earlier, folder.parent / "earlier")
    entry = {"kind": "openai", "base_url": server.base_url, "cache": True, "cache_from": [str(earlier)], **settings}
    return run(config(entry, plans=["none", "early"], repetitions=2), folder)


def test_what_an_earlier_run_was_answered_is_not_asked_for_again(folder: Path, tmp_path: Path) -> None:
    with ScriptedServer(Talkative()) as server:
        again = followed(server, tmp_path / "again", folder)
        calls = [call for call in calls_of(again) if call.asked]
        sent = [call for call in calls if not call.reused]
        assert len(server.requests) == 1 + len(sent) < len(calls) / 2, "a probe, and what had failed"
    first = {(call.messages, call.seed): call for call in reversed(calls_of(list(read_trials(folder)))) if call.failure is None}
    for call in calls:
        if call.reused and (call.messages, call.seed) in first:
            assert call.usage_in == first[call.messages, call.seed].usage_in and call.seconds > 0.9 * SECONDS
    [model] = read_manifest(tmp_path / "again").models.values()
    assert [run.name for run in model.cache_from] == [read_manifest(folder).name]


def test_what_a_model_at_another_address_answered_is_asked_for_again(folder: Path) -> None:
    entry = {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "cache": True, "cache_from": [str(folder)]}
    matrix = build_matrix(config(entry, models=["small"], model={"small": entry}), ROOTS, "code")
    [line] = reply_source_lines(matrix)
    [model] = read_manifest(folder).models.values()
    there = f"none of {read_manifest(folder).name}, where base_url is {model.base_url} and here http://127.0.0.1:1/v1"
    assert line == f"'small' takes over no reply; {there}."


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"temperature": 0.5}, "temperature is not given and here 0.5"),
        ({"project": "other"}, "project is not given and here other"),
        ({"model": "large", "max_tokens": 9}, "model is small and here large and max_tokens is not given and here 9"),
    ],
)
def test_what_a_model_of_other_settings_answered_is_asked_for_again_and_the_line_names_them(
    folder: Path, setting: dict[str, Any], words: str
) -> None:
    [model] = read_manifest(folder).models.values()
    entry = {"kind": "openai", "base_url": model.base_url, "cache": True, "cache_from": [str(folder)], **setting}
    [line] = reply_source_lines(build_matrix(config(entry, models=["small"], model={"small": entry}), ROOTS, "code"))
    assert line == f"'small' takes over no reply; none of {read_manifest(folder).name}, where {words}."


def asked_by(key: str, address: str, folder: Path, earlier: Path | None = None) -> tuple[str, set[bool]]:
    """What a run with the key in `ACCOUNT_KEY` says of the earlier one's replies, and whether its own were reused."""
    entry = {"kind": "openai", "base_url": address, "cache": True, "api_key_env": key}
    asked = config({**entry, "cache_from": [str(earlier)] if earlier else []}, plans=["none"], repetitions=1)
    lines = list(reply_source_lines(build_matrix(asked, ROOTS, "code")))
    return "".join(lines), {call.reused for call in calls_of(run(asked, folder))[:1]}


def test_two_accounts_behind_one_address_share_no_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"FIRST_KEY": "key-of-the-first-account", "SAME_KEY": "key-of-the-first-account", "OTHER_KEY": "another-key"}
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    with ScriptedServer(Talkative()) as server:
        first = tmp_path / "first"
        asked_by("FIRST_KEY", server.base_url, first)
        line, reused = asked_by("OTHER_KEY", server.base_url, tmp_path / "other", first)
        assert re.search(r"where account is FIRST_KEY [0-9a-f]{6} and here OTHER_KEY [0-9a-f]{6}\.$", line) and reused == {
            False
        }
        line, reused = asked_by("SAME_KEY", server.base_url, tmp_path / "same", first)
        assert line.startswith("'small' takes over the replies of ") and reused == {True}
        without(first / TRIALS, lambda line: line["kind"] == "trial")
        assert asked_by("OTHER_KEY", server.base_url, first)[1] == {False}, "nor where one run goes on with another key"
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert not [value for value in keys.values() if value.encode() in written]


def test_a_model_that_runs_itself_and_behind_a_routed_one_is_introduced_once(folder: Path) -> None:
    [model] = read_manifest(folder).models.values()
    entry = {"kind": "openai", "base_url": model.base_url, "cache": True, "cache_from": [str(folder)]}
    models = {"small": entry, "mixed": {"kind": "routed", "default": "small", "subtasks": {"total": "small"}}}
    matrix = build_matrix(config(entry, models=list(models), model=models), ROOTS, "code")
    [line] = reply_source_lines(matrix)
    assert line.startswith("'small' takes over the replies of ")


def test_the_command_line_gives_earlier_runs_to_the_models_that_cache_and_to_no_others(tmp_path: Path) -> None:
    entry = {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "cache": True, "cache_from": ["first"]}
    given = config(entry, plans=["none"], repetitions=1)
    sends_all = given.model["small"].model_copy(update={"cache": False, "cache_from": ()})
    taken = cache_from(given.model_copy(update={"model": {**given.model, "other": sends_all}}), [str(tmp_path)]).model
    assert [str(folder) for folder in taken["small"].model_dump()["cache_from"]] == ["first", str(tmp_path)]
    assert taken["other"] == sends_all


@pytest.mark.parametrize("setting", [{"temperature": 0.9}, {"max_tokens": 7}, {"weights": "sha256:other"}, {"model": "other"}])
def test_what_a_model_of_other_settings_answered_is_asked_for_again(
    folder: Path, tmp_path: Path, setting: dict[str, Any]
) -> None:
    with ScriptedServer(Talkative()) as server:
        again = followed(server, tmp_path / "again", folder, **setting)
        assert len(server.requests) == 1 + sum(not call.reused for call in calls_of(again) if call.asked)
    [model] = read_manifest(tmp_path / "again").models.values()
    assert not model.cache_from


class Failing(ScriptedModel):
    """Fails the first request."""

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        reply = await super().reply(request, sleep)
        if len(self.requests) == 1:
            raise ServerFailed("overloaded")
        return reply


def at_once(model: Model, requests: Iterable[Request]) -> list[Reply | BaseException]:
    async def all_of_them() -> list[Reply | BaseException]:
        replies = [model.reply(request, lambda _: asyncio.sleep(0)) for request in requests]
        return await asyncio.gather(*replies, return_exceptions=True)

    return asyncio.run(all_of_them())


def hello(arm: str, seed: int = 7) -> Request:
    return Request((Message("user", "hello"),), seed, RequestContext("tiny", ("total",), repetition=1, attempt=1, arm=arm))


def test_of_arms_that_ask_the_same_at_once_one_sends_it() -> None:
    asked = ScriptedModel(TINY.reference)
    replies = at_once(CachedModel(asked, shared=True), [*map(hello, "abc"), hello("a", seed=8)])
    assert [request.seed for request in asked.requests] == [7, 8]
    assert [isinstance(reply, Reply) and reply.reused for reply in replies] == [False, True, True, False]


def test_unless_shared_each_of_them_sends_it() -> None:
    asked = ScriptedModel(TINY.reference)
    at_once(CachedModel(asked, shared=False), map(hello, "abc"))
    assert len(asked.requests) == 3


def test_where_the_one_that_sent_it_fails_the_next_sends_it_anew() -> None:
    asked = Failing(TINY.reference)
    failed, *replies = at_once(CachedModel(asked, shared=True), map(hello, "abc"))
    assert isinstance(failed, ServerFailed) and len(asked.requests) == 2
    assert [isinstance(reply, Reply) and reply.reused for reply in replies] == [False, True]


def test_whoever_waits_for_a_reply_can_go_away_and_so_can_the_one_that_asked() -> None:
    asked = ScriptedModel(TINY.reference)
    model = CachedModel(asked, shared=True)

    async def the_first_goes_away() -> Reply:
        first, second, third = (asyncio.create_task(model.reply(hello(arm), lambda _: asyncio.sleep(0.01))) for arm in "abc")
        await asyncio.sleep(0)
        first.cancel()
        second.cancel()
        return await third

    assert not asyncio.run(the_first_goes_away()).reused
    assert len(asked.requests) == 2


def test_a_run_with_several_calls_in_flight_sends_each_request_once(tmp_path: Path) -> None:
    with ScriptedServer(Talkative()) as server:
        entry = {"kind": "openai", "base_url": server.base_url, "cache": True, "concurrency": 8}
        trials = run(config(entry, plans=["none", "early"], repetitions=2), tmp_path / "run")
    sent = [call for call in calls_of(trials) if not call.reused and call.failure is None]
    assert len({(call.messages, call.seed) for call in sent}) == len(sent) > 3


def test_nothing_can_be_taken_over_by_a_model_that_sends_every_request(folder: Path, tmp_path: Path) -> None:
    with ScriptedServer(Talkative()) as server, pytest.raises(ValueError, match="cache_from needs cache = true"):
        followed(server, tmp_path / "again", folder, cache=False)


def test_a_replay_of_such_a_run_is_the_run(folder: Path, tmp_path: Path) -> None:
    entry = {"kind": "recorded", "run": str(folder)}
    again = run(config(entry, plans=["none", "early"]), tmp_path / "again")
    by_id = sorted(read_trials(folder), key=lambda trial: (trial.repetition, trial.arm))
    assert [as_it_happened(trial) for trial in sorted(again, key=lambda trial: (trial.repetition, trial.arm))] == [
        as_it_happened(trial) for trial in by_id
    ]


# -- not shared: a run that goes on gives each trial its own replies ---------------------------------------------------


def unfinished(
    folder: Path, to: Path, entry: dict[str, Any], gone: Callable[[Any], bool], **settings: Any
) -> list[TrialRecord]:
    """A run of which these trials were not recorded, gone on with; all its trials."""
    copied(folder, to)
    without(to / TRIALS, gone)
    return run(config(entry, plans=["none", "early"], repetitions=1, **settings), to)


def replies_of(trial: TrialRecord) -> list[str]:
    return [call.reply for call in calls_of([trial]) if call.reply]


def test_unless_shared_an_arm_is_given_only_its_own_replies_again(tmp_path: Path) -> None:
    with ScriptedServer(Talkative()) as server:
        entry = {"kind": "openai", "base_url": server.base_url}
        first = run(config(entry, plans=["none", "early"], repetitions=1), tmp_path / "first")
        requests = [(call.messages, call.seed) for call in calls_of(first)]
        assert len(set(requests)) < len(requests), "arms ask the same"
        seen = len(server.requests)
        again = unfinished(tmp_path / "first", tmp_path / "second", entry, lambda line: line["kind"] == "trial")
    assert len(server.requests) == seen + 1, "a probe"
    assert {trial.arm: replies_of(trial) for trial in again} == {trial.arm: replies_of(trial) for trial in first}
    assert all(call.reused for call in calls_of(again))


def test_unless_shared_a_trial_that_had_not_begun_is_given_nothing_of_the_others(tmp_path: Path) -> None:
    with ScriptedServer(Talkative()) as server:
        entry = {"kind": "openai", "base_url": server.base_url}
        last = run(config(entry, plans=["none", "early"], repetitions=1), tmp_path / "run")[-1]
        without(tmp_path / "run" / RESPONSES, lambda line: line["arm"] == last.arm)
        again = unfinished(tmp_path / "run", tmp_path / "again", entry, lambda line: line.get("id") == last.id)
    assert not any(call.reused for call in calls_of(again))


@pytest.mark.parametrize("cache", [False, True])
def test_two_models_of_the_same_settings_are_never_given_each_others_replies_when_a_run_goes_on(
    tmp_path: Path, cache: bool
) -> None:
    with ScriptedServer(Talkative()) as server:
        entry = {"kind": "openai", "base_url": server.base_url, "model": "same", "cache": cache}
        both = {"models": ["small", "other"], "model": {"small": entry, "other": entry}}
        first = run(config(entry, plans=["none", "early"], repetitions=1, **both), tmp_path / "run")
        without(tmp_path / "run" / RESPONSES, lambda line: line["model"] == "other")
        again = unfinished(tmp_path / "run", tmp_path / "again", entry, lambda line: line.get("model") == "other", **both)
    others = [trial for trial in again if trial.model == "other"]
    mine = {reply for trial in first if trial.model == "small" for reply in replies_of(trial)}
    assert others and mine.isdisjoint(reply for trial in others for reply in replies_of(trial))


@pytest.mark.parametrize("cache", [False, True])
def test_a_model_and_one_that_passes_requests_on_to_it_share_replies_only_where_that_is_asked_for(
    tmp_path: Path, cache: bool
) -> None:
    with ScriptedServer(Talkative()) as server:
        entry = {"kind": "openai", "base_url": server.base_url, "cache": cache}
        mixed = {"kind": "routed", "default": "small", "subtasks": {"total": "small"}}
        both = {"models": ["small", "mixed"], "model": {"small": entry, "mixed": mixed}}
        run(config(entry, plans=["none", "early"], repetitions=1, **both), tmp_path / "run")
        without(tmp_path / "run" / RESPONSES, lambda line: line["model"] == "mixed")
        again = unfinished(tmp_path / "run", tmp_path / "again", entry, lambda line: line.get("model") == "mixed", **both)
    reused = [call.reused for call in calls_of([trial for trial in again if trial.model == "mixed"])]
    assert any(reused) == cache and reused


def test_two_earlier_runs_are_both_taken_over_and_the_first_reply_to_a_request_stays(tmp_path: Path) -> None:
    with ScriptedServer(Talkative()) as server:
        trials = {name: cached(server, tmp_path / name, repetitions) for name, repetitions in (("one", 1), ("two", 2))}
        seen = len(server.requests)
        entry = {"kind": "openai", "base_url": server.base_url, "cache": True}
        entry["cache_from"] = [str(tmp_path / name) for name in trials]
        again = run(config(entry, plans=["none", "early"], repetitions=2), tmp_path / "again")
    assert len(server.requests) == seen + 1, "a probe"
    calls = calls_of(again)
    assert calls and all(call.reused for call in calls)
    before = [call for name in ("one", "two") for call in calls_of(trials[name]) if call.reply]
    first = {(call.messages, call.seed): call.reply for call in reversed(before)}
    assert [call.reply for call in calls] == [first[call.messages, call.seed] for call in calls]
    [model] = read_manifest(tmp_path / "again").models.values()
    assert [named.name for named in model.cache_from] == ["one", "two"]
