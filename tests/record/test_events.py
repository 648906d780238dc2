"""Events as they are read: each by its kind, and those of a later version as they stand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from bench.common.wording import first_violation
from bench.record.events import Event, Waited

EVENT: TypeAdapter[Event] = TypeAdapter(Event)


@pytest.mark.parametrize("kind", ["of a later version", "", None, 1, ["wait"], {"wait": 1}])
def test_an_event_of_a_kind_that_nobody_knows_stays_as_it_is(kind: Any) -> None:
    event = {"kind": kind, "why": "slot"}
    read = EVENT.validate_json(json.dumps(event))
    assert read == event
    assert json.loads(EVENT.dump_json(read)) == event


@pytest.mark.parametrize("why", ["a whim", None])
def test_a_damaged_event_of_a_known_kind_is_refused_by_field(why: Any) -> None:
    with pytest.raises(ValidationError) as raised:
        EVENT.validate_json(json.dumps({"kind": "wait", "why": why, "started": 0, "seconds": 1}))
    assert first_violation(raised.value).line.startswith("event.wait.why: must be ")


def test_an_event_is_written_as_it_was_read() -> None:
    text = b'{"why":"slot","started":0.0,"seconds":1.5,"kind":"wait"}'
    read = EVENT.validate_json(text)
    assert read == Waited("slot", 0.0, 1.5)
    assert EVENT.dump_json(read) == text
