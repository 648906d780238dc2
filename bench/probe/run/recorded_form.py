"""The form in which a run is recorded: with the owner's names, without secrets and without hidden values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import JsonValue

from bench.common.digests import Texts, digest_of
from bench.probe.run.gateway.journal import JournaledCall
from bench.probe.run.gateway.subject import Subject
from bench.probe.run.secrets import Secrets
from bench.probe.run.witness.hiding import HiddenNames
from bench.record.probe_events import GatewayCall
from bench.wire.blotting import BLOT


class RecordedForm:
    """Makes texts, values, paths and calls fit for a record.

    Args:
        subject: What is probed.
        secrets: The values that no record may contain.
        replaces: The owner's names of the stores -> the names of the copies.
        key: The key of the digests that replace hidden values.
    """

    def __init__(self, subject: Subject, secrets: Secrets, replaces: Mapping[str, str], key: bytes):
        self._subject, self._secrets, self._hidden = subject, secrets, HiddenNames(subject.hide, key)
        self._owners_names = owners_names(replaces, subject.agent.folder)

    def text(self, text: str) -> str:
        """Return a text in which the names of copies are replaced by the owner's names, and secrets and hidden values are
        removed."""
        return self._without_secrets(self._hidden.hide_in_text(text))

    def rows(self, rows: str) -> str:
        """Return the rows that a query of the owner's gave: as their digest if columns are hidden, since rows do not name their
        columns."""
        return self._hidden.digest(rows) if self._hidden else self.text(rows)

    def value(self, value: JsonValue) -> JsonValue:
        """Return a JSON value in which the names of copies are replaced by the owner's names, and secrets and hidden values are
        removed."""
        try:
            return self._value(self._hidden.hide_in(value))
        except RecursionError:
            return "(nested too deeply)"

    def path(self, path: str) -> str:
        """Return a path relative to the agent's folder, or to the home with `~/` before it; another path unchanged. Secrets are
        removed."""
        for folder, prefix in ((self._subject.agent.folder.resolve(), ""), (Path.home(), "~/")):
            if Path(path).is_relative_to(folder):
                return self.text(f"{prefix}{Path(path).relative_to(folder)}")
        return self.text(path)

    def call(self, entry: JournaledCall, texts: Texts) -> GatewayCall:
        """Return a journaled call in the form of a record, without secrets in the name of its tool. If the owner says that the
        tool only reads, the call reads, whatever the tool claims. Its arguments and response are added to `texts`."""
        call = call_of(entry, texts)
        is_read = any(fnmatchcase(f"{call.door}.{call.tool}", pattern) for pattern in self._subject.reads)
        return replace(call, tool=self.text(call.tool), reads=is_read or call.reads)

    def _without_secrets(self, text: str) -> str:
        """Return a text with the owner's names and without secrets."""
        for copy, owner in self._owners_names.items():
            text = text.replace(copy, owner)
        return self._secrets.blot(text)

    def _value(self, value: JsonValue) -> JsonValue:
        """Return a JSON value with the owner's names and without secrets."""
        if isinstance(value, dict):
            return {self._without_secrets(name): self._field(name, inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._value(inner) for inner in value]
        return self._without_secrets(value) if isinstance(value, str) else value

    def _field(self, name: str, value: JsonValue) -> JsonValue:
        """Return the value of an object's member."""
        is_text = isinstance(value, str) and not self._hidden.has(name)
        return BLOT if is_text and self._secrets.is_secret_argument(name, str(value)) else self._value(value)


def owners_names(replaces: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    """Return each name of a copy -> the owner's name of the original. The path of a copy is there twice: absolute, and relative
    to the agent's folder. `replaces` has the owner's names -> the names of the copies."""
    names = {copy: original for original, copy in reversed(list(replaces.items()))}
    paths = [copy for copy in names if Path(copy).is_absolute()]
    return names | {os.path.relpath(path, folder.resolve()): names[path] for path in paths}


def call_of(entry: JournaledCall, texts: Texts) -> GatewayCall:
    """Return a journaled call in the form of a record. Its arguments and response are added to `texts`."""
    call = entry.call
    model = call.arguments.get("model") if call.kind == "model" and isinstance(call.arguments, dict) else ""
    return GatewayCall(
        number=call.number,
        name="",
        door=call.door,
        door_kind=call.kind,
        tool=call.tool,
        call_class="model" if call.kind == "model" else "unseen",
        reads=call.reads,
        arguments=texts.keep(entry.arguments),
        answer=None if entry.answer is None else texts.keep(entry.answer),
        life=call.life,
        wire=call.wire_id,
        arrived=entry.arrived,
        passed_on=entry.passed_on,
        answered=entry.answered,
        given=entry.given,
        failed=call.failed,
        point=entry.point,
        form=call.wire_form if entry.point else "",
        given_otherwise=entry.given_otherwise,
        went=entry.went,
        continues=call.continues,
        tokens_in=call.door_state.get("tokens_in", 0),
        tokens_out=call.door_state.get("tokens_out", 0),
        model=model if isinstance(model, str) else "",
        idempotent=call.idempotent,
        key=digest_of(call.key) if call.key else "",
    )
