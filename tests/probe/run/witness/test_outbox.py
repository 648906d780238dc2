"""What was sent is kept as rows: the same message twice is two rows, and no bytes of a mail break the reading."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.common.errors import ConfigError
from bench.probe.run.witness.kinds import STORE_KINDS, StoreSettings
from bench.probe.run.witness.outbox import OutboxStore, mail_of, message_of
from bench.probe.run.witness.rows import Encoding

HEADERS = st.text(st.characters(codec="ascii", min_codepoint=32), max_size=40)


def store(kind: str = "mail", where: str = "smtp.example.com", hide: frozenset[str] = frozenset()) -> OutboxStore:
    made = STORE_KINDS[kind].make(StoreSettings("sent", kind, where), Path(), Encoding(hide))
    assert isinstance(made, OutboxStore)
    return made


def test_the_same_message_twice_is_two_rows_and_a_reset_forgets_both() -> None:
    outbox = store()
    empty = outbox.read(10)
    stamps = [outbox.stamp()]
    for times in (1, 2):
        outbox.add({"subject": "Your refund", "text": "30"})
        stamps.append(outbox.stamp())
        rows = outbox.read(10).differences
        assert [dict(row.after or {}) for row in rows] == [{"subject": "Your refund", "text": "30"}] * times
        assert len({row.key for row in rows}) == times and all(row.before is None for row in rows)
    assert outbox.read(1).more == 1
    outbox.reset()
    assert outbox.read(10) == empty and len({*stamps, outbox.stamp()}) == 4


def test_the_order_of_messages_changes_no_digest_and_what_is_hidden_is_not_shown() -> None:
    first, second = store(hide=frozenset(("text",))), store(hide=frozenset(("text",)))
    messages = [{"text": "a secret"}, {"text": "another"}]
    for outbox, order in ((first, messages), (second, messages[::-1])):
        for message in order:
            outbox.add(dict(message))
    assert first.read(10).digest == second.read(10).digest
    assert "a secret" not in repr(first.read(10))


@given(HEADERS, st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=200))
def test_a_mail_is_read_as_it_was_written(subject: str, text: str) -> None:
    message = EmailMessage()
    message["Subject"], message["Date"] = subject, "Mon, 1 Jan 2024 00:00:00 +0000"
    message.set_content(text)
    columns = mail_of("a@x", ["c@x", "b@x"], message.as_bytes())
    assert (columns["sender"], columns["recipients"]) == ("a@x", '["b@x","c@x"]')
    assert columns["text"] == text.strip() and "date" not in columns
    assert str(columns.get("subject", "")).split() == subject.split()


@given(st.binary(max_size=500))
def test_no_bytes_break_the_reader_of_mails(raw: bytes) -> None:
    for text in (raw, b"Content-Type: multipart/mixed; boundary=x\n\n--x\n" + raw, b"Content-Type: text/plain; charset=" + raw):
        assert {"sender", "recipients"} <= mail_of("a@x", [], text).keys()


@pytest.mark.parametrize(
    "mail",
    [
        b"Content-Disposition: attachment" + b"; a=b" * 60_000 + b"\n\ntext",
        b"Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Disposition: a" + b";\n a=b" * 60_000 + b"\n\ntext",
        b"Content-Type: multipart/mixed; boundary=x\n\n--x\r\rno\r--x\rContent-Disposition: a"
        + b"; a=b" * 60_000
        + b"\n\ntext",
        b"Subject: " + b"=?utf-8?q?a?= " * 20_000 + b"\n\ntext",
        b"".join(b"Subject: " + b"=?utf-8?q?a?= " * 4_000 + b"\n" for _ in range(10)) + b"\ntext",
    ],
    ids=["header", "part", "returns", "words", "many"],
)
def test_a_mail_with_long_headers_is_one_text_at_once(mail: bytes) -> None:
    began = process_time()
    assert mail_of("a@x", [], mail) == {"sender": "a@x", "recipients": "[]", "text": mail.decode()}
    assert process_time() - began < 1


@pytest.mark.parametrize(
    "mail",
    [
        b"To: " + b"(" * 3000 + b"\n\ntext",
        b"".join(b"Content-Type: multipart/mixed; boundary=x%d\n\n--x%d\n" % (n, n) for n in range(1000)),
    ],
    ids=["comments", "parts"],
)
def test_a_mail_that_is_nested_without_end_is_one_text(mail: bytes) -> None:
    assert mail_of("a@x", [], mail)["text"] == mail.decode()


def test_a_mail_with_long_lines_and_a_large_attachment_is_read() -> None:
    message = EmailMessage()
    message["To"] = ", ".join(f"reader{number}@example.com" for number in range(500))
    message.set_content("{" + " 'a': 1," * 20_000 + "}", cte="8bit")
    message.add_attachment(b"%PDF" * 100_000, maintype="application", subtype="pdf", filename="refund.pdf")
    columns = mail_of("a@x", [], message.as_bytes())
    assert str(columns["attached"]).startswith('["refund.pdf ') and str(columns["text"]).startswith("{ 'a': 1,")


def test_a_store_keeps_no_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.probe.run.witness.outbox.MAX_MESSAGES", 3)
    monkeypatch.setattr("bench.probe.run.witness.outbox.MAX_MESSAGES_CHARS", 100)
    small, large = {"text": "30"}, {"text": "x" * 60}
    sent = store()
    assert [sent.add(message) for message in (large, large, small, small, small)] == [True, False, True, True, False]
    assert len(sent.read(10).differences) == 3
    sent.reset()
    assert [sent.add(large), sent.add(large)] == [True, False]


def test_a_message_to_a_webhook_has_the_members_of_its_json_as_columns() -> None:
    assert message_of("POST", "", {"text": "hi", "blocks": []}) == {"text": "hi", "blocks": []}
    assert message_of("PUT", "/other", "hi") == {"path": "/other", "method": "PUT", "body": "hi"}


@pytest.mark.parametrize(
    ("kind", "where", "line"),
    [
        ("mail", "", "mail is the host of a mail server, such as smtp.example.com:587"),
        ("mail", "smtp.example.com:mail", "mail is the host of a mail server"),
        ("mail", "https://mail.example.com/x", "mail is the host of a mail server"),
        ("webhook", "hooks.example.com", "webhook is an address that begins with https:// or http://"),
        ("webhook", "ftp://hooks.example.com", "webhook is an address that begins with"),
    ],
)
def test_what_is_no_place_is_refused_in_one_line(kind: str, where: str, line: str) -> None:
    with pytest.raises(ConfigError, match=line):
        store(kind, where)


def test_a_mail_server_without_a_port_is_at_the_usual_ones() -> None:
    assert store().place.ports == (25, 465, 587) and store(where="smtp.example.com:2525").place.ports == (2525,)
    assert store(where="me@smtp.example.com:2525").place.host == "smtp.example.com"
