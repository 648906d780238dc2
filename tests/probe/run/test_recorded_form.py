"""The form in which what a run showed is recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.probe.run.gateway.subject import ProbedAgent, Subject
from bench.probe.run.recorded_form import RecordedForm, owners_names
from bench.probe.run.secrets import Secrets
from bench.probe.run.witness.rows import Encoding


def test_a_copy_has_its_owners_name_however_its_path_is_seen_and_an_address_has_one_name(tmp_path: Path) -> None:
    here, copy = tmp_path / "shop", tmp_path / "probe-1f" / "copy" / "home"
    names = owners_names({"home": str(copy), "$DSN": "host=/tmp dbname=copy"}, here)
    assert names == {str(copy): "home", "../probe-1f/copy/home": "home", "host=/tmp dbname=copy": "$DSN"}


@pytest.mark.parametrize("text", ['\n {"card": "canary"}', '{"card": "canary"}\n{"id": 1}\n', 'Found:\n[{"CARD": "canary"}]'])
def test_a_hidden_member_is_a_digest_wherever_the_json_begins_in_a_text(tmp_path: Path, text: str) -> None:
    subject = Subject("shop", ProbedAgent(("agent",), ("agent",), tmp_path), hide=frozenset({"card"}))
    shown = RecordedForm(subject, Secrets(()), {}, b"key").value({"answer": text})
    assert "canary" not in str(shown) and "(hidden) " in str(shown)
    plain = RecordedForm(replace(subject, hide=frozenset({"other"})), Secrets(()), {}, b"key")
    assert "canary" in str(plain.value({"answer": text}))


def test_json_with_a_hidden_member_that_is_nested_too_deeply_is_one_digest(tmp_path: Path) -> None:
    subject = Subject("shop", ProbedAgent(("agent",), ("agent",), tmp_path), hide=frozenset({"card"}))
    text = '{"card": "canary", "inner": ' + "[" * 100_000 + "]" * 100_000 + "}"
    shown = RecordedForm(subject, Secrets(()), {}, b"key").value({"answer": text})
    assert "canary" not in str(shown) and "(hidden) " in str(shown)


def test_what_the_agent_prints_and_what_a_query_gives_have_no_hidden_value(tmp_path: Path) -> None:
    subject = Subject("shop", ProbedAgent(("agent",), ("agent",), tmp_path), hide=frozenset({"card"}))
    form = RecordedForm(subject, Secrets(()), {}, b"key")
    assert "canary" not in form.text('Paid:\n{\n  "card": "canary",\n  "cents": 5\n}\nGoodbye.')
    assert "canary" not in form.rows("[('canary', 5)]") and form.rows("[('canary', 5)]") == form.rows("[('canary', 5)]")
    plain = RecordedForm(replace(subject, hide=frozenset()), Secrets(()), {}, b"key")
    assert plain.rows("[('canary', 5)]") == "[('canary', 5)]"


def test_equal_hidden_values_have_equal_digests_in_a_row_and_in_a_call(tmp_path: Path) -> None:
    subject = Subject("shop", ProbedAgent(("agent",), ("agent",), tmp_path), hide=frozenset({"card"}))
    form, encoding = RecordedForm(subject, Secrets(()), {}, b"key"), Encoding(subject.hide, b"key")
    assert form.value({"card": "4711"}) == encoding.row(["card"], ["4711"])
