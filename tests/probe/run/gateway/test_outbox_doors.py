"""Mails and messages to webhooks are caught in the agent's box, kept as rows, and struck as calls; nothing is sent."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from gates import ScriptedGate

from bench.common.errors import ConfigError
from bench.probe.points import CallAction
from bench.probe.run.gateway.gate import DoorContext, LiveCall
from bench.probe.run.gateway.listener import AgentListener
from bench.probe.run.gateway.outbox_doors import MAIL_STORE_FULL, STORE_FULL_TEXT, MailDoor, WebhookDoor
from bench.probe.run.gateway.subject import ProbedAgent, Service, Subject
from bench.probe.run.probe import Probe, ProbeRequest
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.witness import outbox
from bench.probe.run.witness.kinds import STORE_KINDS, StoreSettings
from bench.probe.run.witness.outbox import OutboxStore
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.stores import Stores
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe_events import GatewayCall, StoresRead

pytest.importorskip("cryptography", reason="cryptography is not installed: pip install 'recovery-bench[probe]'")
MAILS = """
import smtplib, ssl, sys, time
from email.message import EmailMessage
message = EmailMessage()
message["From"], message["To"], message["Subject"] = "shop@example.com", "ada@example.com", "Your refund"
message["Message-ID"] = f"<{{time.time_ns()}}@shop>"
message.set_content("You get 30 back.\\n.\\nA line.")
message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="refund.pdf")
def send():
    {how}
{calls}
"""
PLAIN = """
    with smtplib.SMTP("mail.example.com", 587, timeout=10) as server:
        server.send_message(message)"""
STARTTLS = """
    with smtplib.SMTP("mail.example.com", 587, timeout=10) as server:
        server.starttls(context=ssl.create_default_context())
        server.login("shop", "a-password-of-the-owner")
        server.send_message(message)"""
TLS = """
    with smtplib.SMTP_SSL("mail.example.com", 465, timeout=10, context=ssl.create_default_context()) as server:
        server.login("shop", "a-password-of-the-owner")
        server.send_message(message)"""
AGAIN = """
for _ in range(3):
    try:
        send()
        break
    except (OSError, smtplib.SMTPException) as error:
        print(type(error).__name__)
"""
POSTS = """
import json, urllib.request
url, body = "https://hooks.example.com/services/T0/secret-of-the-hook", {"text": "30 paid", "to": ["a"]}
asked = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
print(urllib.request.urlopen(asked, timeout=10).read().decode())
"""
MAIL = StoreSettings("mail", "mail", "mail.example.com")
HOOK = StoreSettings("hook", "webhook", "https://hooks.example.com/services/T0/secret-of-the-hook")


def subject_of(folder: Path, code: str, services: Sequence[Service] = ()) -> Subject:
    (folder / "agent").mkdir(exist_ok=True)
    words = (sys.executable, "-c", code)
    agent = ProbedAgent(words, words, folder / "agent", limit=30.0)
    return Subject("sender", agent, services=tuple(services), settle=0.02, patience=1.0)


def runs(folder: Path, subject: Subject, store: StoreSettings, *only: str, most: int = 1000, until: str = "") -> list[CellRun]:
    def worker(number: int) -> Worker:
        private = folder / f"worker{number}"
        stores = Stores.of([store], private, subject.settle, subject.hide, b"", boxed=True)
        return Worker(subject, stores, PrivateFolder(private, "agent"), Secrets([HOOK.where]))

    async def made() -> list[CellRun]:
        cells = list[CellRun]()
        async with aclosing(Probe(subject, worker, ProbeRequest(only=only)).runs()) as running:
            async for run in running:
                cells.append(run)
                if len(cells) >= most or run.plan == until:
                    break
        return cells

    try:
        return asyncio.run(made())
    except ConfigError as error:
        if "put into a box" in str(error):
            pytest.skip(f"there is no box here: {error}")
        raise


def rows_of(run: CellRun) -> list[dict[str, object]]:
    return [dict(row.after or {}) for reading in of_kind(run.events, StoresRead) for row in reading.changed]


@pytest.mark.parametrize("how", [PLAIN, STARTTLS, TLS], ids=["plain", "starttls", "tls"])
def test_a_mail_is_one_row_with_what_was_sent_and_no_password(tmp_path: Path, how: str) -> None:
    [run] = runs(tmp_path, subject_of(tmp_path, MAILS.format(how=how, calls="send()")), MAIL, most=1)
    [call] = of_kind(run.events, GatewayCall)
    assert (call.door, call.tool, call.door_kind, call.failed) == ("mail", "send", "mail", False)
    [row] = rows_of(run)
    assert row.pop("attached") and row == {
        "sender": "shop@example.com",
        "recipients": '["ada@example.com"]',
        "from": "shop@example.com",
        "to": "ada@example.com",
        "subject": "Your refund",
        "text": "You get 30 back.\n.\nA line.",
    }
    assert "a-password-of-the-owner" not in repr(run)


@pytest.mark.parametrize(
    ("point", "verdict"),
    [
        ("lost", "doubled"),
        pytest.param("error", "same", marks=pytest.mark.slow),
        pytest.param("unacknowledged", "doubled", marks=pytest.mark.slow),
    ],
)
def test_a_mail_whose_receipt_is_lost_and_that_is_sent_again_is_doubled(tmp_path: Path, point: str, verdict: str) -> None:
    plan = f"mail.send#1.{point}"
    run = runs(tmp_path, subject_of(tmp_path, MAILS.format(how=PLAIN, calls=AGAIN)), MAIL, plan, until=plan)[-1]
    assert run.plan == plan and run.judgement and run.judgement.verdict == verdict


def test_a_message_to_a_webhook_is_a_row_and_its_secret_path_is_nowhere(tmp_path: Path) -> None:
    [run] = runs(tmp_path, subject_of(tmp_path, POSTS), HOOK, most=1)
    [call] = of_kind(run.events, GatewayCall)
    assert (call.door, call.tool, call.failed) == ("hook", "POST", False)
    assert rows_of(run) == [{"text": "30 paid", "to": '["a"]'}]
    assert "ok" in run.texts.values() or any("ok" in text for text in run.texts.values())
    assert "secret-of-the-hook" not in repr(run)


def test_a_mail_of_a_service_is_a_row_and_no_call_of_the_agents(tmp_path: Path) -> None:
    service = (
        MAILS.format(how=PLAIN, calls="")
        + """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Pays(BaseHTTPRequestHandler):
    def do_POST(self):
        send()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
HTTPServer(("127.0.0.1", int(sys.argv[1])), Pays).serve_forever()
"""
    )
    asks = "import os, urllib.request; urllib.request.urlopen(os.environ['SHOP'] + '/pay', b'')"
    shop = Service("shop", "SHOP", "http://127.0.0.1:{port}", (sys.executable, "-c", service, "{port}"))
    [run] = runs(tmp_path, subject_of(tmp_path, asks, [shop]), MAIL, most=1)
    assert [call.door for call in of_kind(run.events, GatewayCall)] == ["shop"]
    assert [row["subject"] for row in rows_of(run)] == ["Your refund"]


def store_of(settings: StoreSettings) -> OutboxStore:
    made = STORE_KINDS[settings.kind].make(settings, Path(), Encoding(frozenset()))
    assert isinstance(made, OutboxStore)
    return made


def messages_in(store: OutboxStore) -> list[dict[str, object]]:
    return [dict(row.after or {}) for row in store.read(10).differences]


async def posted_to(settings: StoreSettings, gate: ScriptedGate, *targets: str) -> tuple[OutboxStore, list[bytes]]:
    """Return what a webhook's store has after a post to each target, and the first lines of the answers."""
    store, answers, numbers = store_of(settings), list[bytes](), itertools.count(1)
    door = WebhookDoor(store, DoorContext(lambda: gate, lambda: next(numbers), lambda: 1))
    door.origin.tls = None  # the box ends it
    async with AgentListener(DoorContext(lambda: gate, lambda: 0, lambda: 1)) as listener:
        listener.add(door)
        door.use_origin_address()
        serve = partial(listener.serve, doors=[door])
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            for target in targets:
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
                head = f"POST {target} HTTP/1.1\r\nHost: hooks.example.com\r\nConnection: close\r\n"
                writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 13\r\n\r\n".encode() + b'{"text":"hi"}')
                answers.append(await reader.readline())
                writer.close()
    return store, answers


SIGNED = StoreSettings("hook", "webhook", "https://hooks.example.com/workflows/a-secret-path?sig=a-secret-signature")
"""As those of Teams are."""


@pytest.mark.parametrize(
    ("settings", "target"),
    [
        (HOOK, "/services/T0/secret-of-the-hook?wait=true"),
        (SIGNED, "/workflows/a-secret-path?sig=a-secret-signature"),
        (SIGNED, "/workflows/a-secret-path?sig=another-secret-signature&wait=true"),
        (SIGNED, "/workflows/another-secret-path"),
    ],
)
def test_no_path_and_no_query_of_a_webhook_is_shown(settings: StoreSettings, target: str) -> None:
    gate = ScriptedGate()
    store, [answer] = asyncio.run(posted_to(settings, gate, target))
    [call], [row] = gate.calls, messages_in(store)
    assert answer.startswith(b"HTTP/1.1 200") and row["text"] == "hi"
    assert "secret" not in repr((row, call.tool, call.arguments))
    assert ("path" in row) is (target != settings.where.removeprefix("https://hooks.example.com"))
    assert (call.tool == "POST") is ("/another-secret-path" not in target)


def test_two_paths_at_the_host_of_a_webhook_are_two_tools() -> None:
    gate = ScriptedGate()
    asyncio.run(posted_to(HOOK, gate, "/a", "/b", "/a"))
    tools = [call.tool for call in gate.calls]
    assert tools[0] == tools[2] != tools[1]


def test_a_webhook_refuses_what_its_store_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_MESSAGES", 1)
    gate, path = ScriptedGate(), "/services/T0/secret-of-the-hook"
    store, answers = asyncio.run(posted_to(HOOK, gate, path, path))
    assert [answer[9:12] for answer in answers] == [b"200", b"507"]
    assert gate.notes == [("hook", STORE_FULL_TEXT)] and len(messages_in(store)) == 1


MESSAGE = b"MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\nDATA\r\nSubject: hi\r\n\r\n30\r\n.\r\n"


@asynccontextmanager
async def mail_session(
    gate: ScriptedGate, store: OutboxStore
) -> AsyncIterator[tuple[MailDoor, asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a session with a mail server, after its greeting."""
    numbers = itertools.count(1)
    door = MailDoor(store, DoorContext(lambda: gate, lambda: next(numbers), lambda: 1), None)
    async with await asyncio.start_server(door.serve, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await reader.readline()
        yield door, reader, writer
        writer.close()


async def last_line(reader: asyncio.StreamReader, lines: int = 4) -> bytes:
    return [await asyncio.wait_for(reader.readline(), 5) for _ in range(lines)][-1]


def test_a_mail_that_nobody_can_read_is_kept_and_the_session_goes_on() -> None:
    async def sent() -> list[dict[str, object]]:
        store = store_of(MAIL)
        async with mail_session(ScriptedGate(), store) as (_, reader, writer):
            for mail in (MESSAGE.replace(b"Subject: hi", b"To: " + b"(" * 3000), MESSAGE):
                writer.write(mail)
                assert (await last_line(reader)).startswith(b"250")
        return messages_in(store)

    odd, plain = asyncio.run(sent())
    assert "((((" in str(odd["text"]) and plain["text"] == "30"


def test_a_mail_server_refuses_what_its_store_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_MESSAGES", 1)
    gate, store = ScriptedGate(), store_of(MAIL)

    async def sent() -> list[bytes]:
        async with mail_session(gate, store) as (_, reader, writer):
            writer.write(MESSAGE * 2)
            return [await last_line(reader), await last_line(reader)]

    assert asyncio.run(sent())[1] == MAIL_STORE_FULL
    assert [call.failed for call in gate.calls] == [False, True]
    assert gate.notes == [("mail", STORE_FULL_TEXT)] and len(messages_in(store)) == 1


def test_a_session_that_lasts_is_cut_off_and_sends_nothing_later() -> None:
    gate, store = ScriptedGate(), store_of(MAIL)

    async def sent() -> bytes:
        async with mail_session(gate, store) as (door, reader, writer):
            writer.write(MESSAGE.partition(b".\r\n")[0])
            await last_line(reader, 3)
            await door.end(0.0)
            writer.write(b".\r\n")
            try:
                return await asyncio.wait_for(reader.read(), 5)
            except ConnectionError:
                return b""

    assert asyncio.run(sent()) == b""
    assert not gate.calls and not messages_in(store)


def test_a_mail_that_a_gate_holds_is_done_when_its_door_has_ended() -> None:
    class HoldingGate(ScriptedGate):
        async def arrive(self, call: LiveCall) -> CallAction:
            held.set()
            await asyncio.sleep(0.2)
            return await super().arrive(call)

    async def sent() -> tuple[list[str], list[dict[str, object]]]:
        async with mail_session(gate, store) as (door, _, writer):
            writer.write(MESSAGE)
            await held.wait()
            writer.close()
            await door.end(2.0)
            return [name for name, _ in gate.course], messages_in(store)

    held, gate, store = asyncio.Event(), HoldingGate(), store_of(MAIL)
    agent_run, [kept] = asyncio.run(sent())
    assert agent_run[:2] == ["arrived", "answered"] and kept["text"] == "30"


def test_a_mail_of_an_earlier_run_is_no_row_of_the_next() -> None:
    class ResettingGate(ScriptedGate):
        async def arrive(self, call: LiveCall) -> CallAction:
            store.reset()
            return await super().arrive(call)

    async def sent() -> None:
        async with mail_session(ResettingGate(), store) as (_, reader, writer):
            writer.write(MESSAGE)
            await reader.read()

    store = store_of(MAIL)
    asyncio.run(sent())
    assert not messages_in(store)
