"""Mails and messages to webhooks are caught in the agent's box, kept as rows, and struck as calls; nothing is sent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from bench.common.errors import ConfigError
from bench.probe.run.gateway.subject import ProbedAgent, Service, Subject
from bench.probe.run.probe import Probe
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.place import Place
from bench.probe.run.witness.stores import Stores
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe.events import GatewayCall, StoresRead

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
        return Worker(subject, stores, Place(private, "agent"), Secrets([HOOK.where]))

    async def made() -> list[CellRun]:
        cells = list[CellRun]()
        async with aclosing(Probe(subject, worker, only=only).runs()) as running:
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
    assert run.plan == plan and run.judged and run.judged.verdict == verdict


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
