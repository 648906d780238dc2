"""Read the responses of a run as a recording: its models' replies to requests."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.common.digests import Texts
from bench.common.errors import CallFailed, ConfigError, ResultsError, failures_by_kind, nearest, one_line
from bench.record.extra_fields import extra_in, extra_text
from bench.record.files import RESPONSES, TEXTS, opened
from bench.record.history import History
from bench.record.messages import Message, StoredMessage, stored
from bench.record.reading import read_manifest, read_records, read_responses, read_texts
from bench.record.record import ResponseRecord, SessionRecord, TrialRecord, latest
from bench.record.tool_calls import calls_in, text_of
from bench.run.models.base import Reply, Request, RequestContext, Response, Usage
from bench.run.models.cached import ResponsesBefore
from bench.run.models.recording import Recording

RECORDED_PREFIX = "recorded:"
"""The prefix of a run's name on the command line, if its recorded models are to answer."""
REPLY_KEYS = ("kind", "model", "temperature", "max_tokens", "top_p", "response_format", "weights", "extra_body", "omit")
"""The parameters of a model that determine its replies."""
ADDRESS_KEYS = ("base_url", "api_version", "organization", "project")
"""The parameters of a model that determine which endpoint and account answer."""
READING_KEYS = ("answer_format", "draft_tags")
"""Keys of a manifest's model that are no parameters of the model: how answers are asked for, and how replies are read. The
config that uses the recording has these keys itself."""


def recorded_entries(folder: Path) -> dict[str, dict[str, Any]]:
    """Return a config's table for each model that the run in `folder` recorded, by name, with the same answer format and tags.
    Raises ResultsError."""
    manifest = read_manifest(folder)
    return {
        name: {"kind": "recorded", "run": str(folder), "model": name, "answer_format": parameters.answer_format}
        | {key: value for key, value in parameters.shown.items() if key in READING_KEYS}
        for name, parameters in manifest.models.items()
    }


def load_recording(
    folder: Path, model: str, seed: int, repetitions: int, concurrency: int | None = None
) -> tuple[Recording, dict[str, object]]:
    """Return the recorded replies of a model in a run.

    The requests of this config can differ from the run's: a request that was never made fails with `NotRecorded`.

    Args:
        folder: The run.
        model: The model's name in it.
        seed: The seed of the config that asks.
        repetitions: The number of that config's repetitions.
        concurrency: The number of calls that were made at the same time; None takes the number that the run recorded, which can
            have been declared itself.

    Returns:
        The recording, and the model's parameters in the run, with the recording's name and digest.

    Raises:
        ResultsError: The folder holds no whole run of this format, or no trial of the model.
        ConfigError: The run cannot answer: it lacks the model or a repetition, or has another seed.
    """
    manifest = read_manifest(folder)
    parameters_in_run = manifest.models.get(model)
    if parameters_in_run is None:
        raise ConfigError(f"recording {folder}: holds no model '{model}'; {nearest(model, manifest.models)}")
    if manifest.config.seed != seed:
        problem = f"recording {folder}: was made with seed {manifest.config.seed}, this config has {seed}"
        raise ConfigError(f"{problem}: no request would be the same; use that seed, or record again")
    records = [record for record in read_records(folder) if isinstance(record, SessionRecord) or record.model == model]
    trials = latest(record for record in records if isinstance(record, TrialRecord))
    if not trials:
        raise ResultsError(f"recording {folder}: holds no trial of '{model}' yet; let its run end, or go on with it")
    available = _whole_repetitions(trials)
    if available < repetitions:
        problem = f"recording {folder}: holds {available} whole repetitions of '{model}', this config asks for {repetitions}"
        raise ConfigError(f"{problem}; give --repetitions {max(available, 1)}, or record the rest first")
    declared = concurrency or (parameters_in_run.recording and parameters_in_run.recording.concurrency)
    digest = _digest(folder)
    fields_of_run: dict[str, object] = {"name": manifest.name, "digest": digest, "started": manifest.started}
    fields_of_run |= {"trials": len(trials), **({"concurrency": declared} if declared else {})}
    recording = Recording(
        manifest.name,
        manifest.started[:10],
        responses_of(folder, lambda response: response.model == model),
        declared or manifest.concurrency.get(model, 1),
        History.of(manifest.name, digest, manifest.machine, manifest.recordings.get(model), records),
        declared is not None,
    )
    parameters = {key: value for key, value in parameters_in_run.shown.items() if key not in READING_KEYS}
    return recording, {**parameters, "recording": fields_of_run}


def responses_of(folder: Path, is_wanted: Callable[[ResponseRecord], bool]) -> Iterator[Response]:
    """Yield the responses of a run for which `is_wanted` is True, with their texts."""
    texts = read_texts(folder)
    for record in read_responses(folder):
        if is_wanted(record):
            yield response_of(record, texts, folder)


def responses_before(folders: Sequence[Path], parameters: Mapping[str, object], account: str, name: str) -> ResponsesBefore:
    """Return the recorded replies, in the runs in `folders`, of models with these parameters and this address to this account.

    For a run without replies that fit, the result says which parameter or account differs. Raises ResultsError if a folder
    holds no run.
    """
    settings = settings_digest(parameters)
    before = ResponsesBefore()
    for folder in folders:
        manifest = read_manifest(folder)
        models = {**dict(pair for model in manifest.models.values() for pair in model.models.items()), **manifest.models}
        parameters_of = {other: model.shown for other, model in models.items()}
        at_other_address = {
            other for other, theirs in parameters_of.items() if any(_differing(theirs, parameters, ADDRESS_KEYS))
        }
        responses = (record for record in read_responses(folder) if record.model not in at_other_address)
        same_settings = [record for record in responses if record.settings == settings]
        others = [record.account for record in same_settings if not same_account(record.account, account)]
        if len(others) < len(same_settings):
            texts = read_texts(folder)
            usable = (record for record in same_settings if same_account(record.account, account))
            before.responses.extend(response_of(record, texts, folder) for record in usable)
            before.runs.append({"name": manifest.name, "digest": _digest(folder)})
        elif others:
            before.others.append(f"{manifest.name}, where {_difference('account', others[0], account)}")
        else:
            theirs = parameters_of.get(name) or next(iter(parameters_of.values()))
            if differing := list(_differing(theirs, parameters, (*ADDRESS_KEYS, *REPLY_KEYS))):
                before.others.append(f"{manifest.name}, where {' and '.join(differing)}")
    return before


def _differing(their_parameters: Mapping[str, Any], our_parameters: Mapping[str, object], keys: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each of these parameters in which another run's model differs from this one, with both values."""
    for key in keys:
        their_value, our_value = their_parameters.get(key), our_parameters.get(key)
        if (their_value or None) != (our_value or None):
            yield _difference(key, their_value, our_value)


def _difference(key: str, their_value: object, our_value: object) -> str:
    """Return the words for a parameter that differs, such as `temperature is 0.7 and here not given`."""
    values = ("not given" if value in (None, "") else one_line(str(value), 80) for value in (their_value, our_value))
    return f"{key} is {' and here '.join(values)}"


def same_account(there: str, here: str) -> bool:
    """Return whether two texts of `account_of` name the same account. The variables that held the keys can differ."""
    return there.rpartition(" ")[2] == here.rpartition(" ")[2]


def settings_digest(parameters: Mapping[str, object]) -> str:
    """Return the digest of the parameters that determine a model's replies. Models with equal digests are the same model,
    whatever their names."""
    relevant = {key: parameters[key] for key in REPLY_KEYS if parameters.get(key) is not None}
    return hashlib.blake2b(json.dumps(relevant, sort_keys=True, default=str).encode(), digest_size=10).hexdigest()


def record_of(response: Response, settings: str, texts: Texts, account: str = "") -> ResponseRecord:
    """Return a response as a record for the run's file, and add its texts to `texts`."""
    request, outcome = response.request, response.outcome
    context = request.context
    common_fields: dict[str, Any] = {
        "model": response.model,
        "settings": settings,
        "messages": stored(request.messages, texts),
        "seed": request.seed,
        "occurrence": request.occurrence,
        "answers": request.answers,
        "scenario": context.scenario,
        "instance": context.instance,
        "repetition": context.repetition,
        "arm": context.arm,
        "seconds": response.seconds,
        "by": outcome.by,
        "options": texts.keep(request.options) if request.options else None,
        "account": account,
    }
    if isinstance(outcome, CallFailed):
        counted = outcome.counted or (None, None)
        return ResponseRecord(
            **common_fields,
            usage_in=counted[0],
            usage_out=counted[1],
            failure=outcome.kind,
            detail=outcome.detail,
            retry_after=outcome.retry_after,
            partial=texts.keep(outcome.partial) if outcome.partial else None,
        )
    usage = outcome.usage
    return ResponseRecord(
        **common_fields,
        reply=texts.keep(outcome.text),
        finish=outcome.finish,
        usage_in=usage.tokens_in if usage else None,
        usage_out=usage.tokens_out if usage else None,
        usage_cached=usage.cached if usage else None,
        reused=outcome.reused,
        tool_calls=texts.keep(text_of(outcome.tool_calls)) if outcome.tool_calls else None,
        extra=texts.keep(outcome.extra) if outcome.extra else None,
    )


def response_of(record: ResponseRecord, texts: Mapping[str, str], folder: Path) -> Response:
    """Return the response that `record_of` turned into this record. Raises ResultsError, which names `folder`, if a text is
    missing."""
    try:
        messages = tuple(_message(message, texts) for message in record.messages)
        options = texts[record.options] if record.options else ""
        outcome = _outcome(record, texts)
    except KeyError as missing:
        problem = f"{folder / TEXTS}: lacks the text {missing} of a response in {RESPONSES}"
        raise ResultsError(f"{problem}; restore the file from a copy, or record again") from missing
    except ValueError as error:
        problem = f"{folder / TEXTS}: a text of a response in {RESPONSES} {error}"
        raise ResultsError(f"{problem}; restore the file from a copy, or record again") from error
    context = RequestContext(
        record.scenario, (), record.repetition, attempt=0, arm=record.arm, instance=record.instance, model=record.model
    )
    request = Request(messages, record.seed, context, record.occurrence, record.answers, options=options)
    return Response(record.model, request, outcome, record.seconds)


def _message(message: StoredMessage, texts: Mapping[str, str]) -> Message:
    """Return a stored message with its texts. Raises KeyError if a text is missing."""
    calls = calls_in(texts[message.tool_calls]) if message.tool_calls else ()
    return Message(message.role, texts[message.content], calls, message.tool_call_id, _extra(message.extra, texts))


def _extra(digest: str | None, texts: Mapping[str, str]) -> str:
    """Return the further fields whose text has this digest, checked; "" if there are none. Raises ValueError if they are no
    object."""
    return extra_text(extra_in(texts[digest])) if digest else ""


def _outcome(record: ResponseRecord, texts: Mapping[str, str]) -> Reply | CallFailed:
    """Return the reply or the failure in a recorded response."""
    counted = None
    if record.usage_in is not None and record.usage_out is not None:
        counted = record.usage_in, record.usage_out
    if record.reply is None:
        partial = texts[record.partial] if record.partial else ""
        kind = failures_by_kind()[record.failure]
        failure = kind(record.detail, retry_after=record.retry_after, partial=partial, counted=counted)
        failure.by = record.by
        return failure
    usage = Usage(*counted, record.usage_cached) if counted else None
    calls = calls_in(texts[record.tool_calls]) if record.tool_calls else ()
    reply = Reply(texts[record.reply], record.finish, usage, record.by, record.reused, tool_calls=calls)
    return replace(reply, extra=_extra(record.extra, texts))


def _whole_repetitions(trials: Sequence[TrialRecord]) -> int:
    """Return the number of repetitions, from the first on, that contain a trial of every arm and instance of the run."""
    arms: dict[int, set[tuple[str, str, str]]] = {}
    for trial in trials:
        arms.setdefault(trial.repetition, set()).add((trial.scenario, trial.instance, trial.arm))
    all_arms = set().union(*arms.values())
    return next(number for number in itertools.count() if arms.get(number + 1) != all_arms)


def _digest(folder: Path) -> str:
    """Return a digest of the responses of a run and of its texts."""
    digest = hashlib.sha256()
    for name in (RESPONSES, TEXTS):
        with opened(folder / name) as file:
            for part in iter(lambda: file.read(2**20), b""):
                digest.update(part)
    return digest.hexdigest()[:20]
