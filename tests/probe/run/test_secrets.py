"""What a probe's owner keeps secret is in none of its texts."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.common.digests import Texts
from bench.probe.run.gateway.subject import McpConfig, McpServer, ModelSource, ProbedAgent, Service, Subject
from bench.probe.run.secrets import Secrets, is_secret_name, redacted_command
from bench.record.probe_events import GatewayCall
from bench.record.probe_rows import RowDifference

CANARIES = {
    "variable": "canary-variable-1",
    "agent": "canary-agent-22",
    "server": "canary-server-333",
    "header": "canary-header-4444",
    "cookie": "canary-cookie-55555",
    "url": "canary-url-666666",
    "parameter": "canary-parameter-7",
    "dsn": "canary-dsn-8888888",
    "word": "canary-word-99999",
    "spaced": "canary-spaced-0000",
}
SUBJECT = Subject(
    "shop",
    ProbedAgent(
        ("agent", f"--api-key={CANARIES['word']}", "--token", CANARIES["spaced"]),
        ("agent",),
        Path(),
        {"SHOP": CANARIES["agent"]},
    ),
    (
        McpConfig(
            Path(".mcp.json"),
            (
                McpServer("shop", ("serve",), {"PLAIN": CANARIES["server"]}),
                McpServer("far", url="http://x/", headers={"Authorization": f"Bearer {CANARIES['header']}"}),
                McpServer("near", url="http://x/", headers={"Cookie": CANARIES["cookie"]}),
            ),
        ),
    ),
    (Service("till", "TILL", f"http://me:{CANARIES['url']}@host/"),),
    ModelSource(url=f"https://host/v1?api_key={CANARIES['parameter']}"),
)
SECRETS = Secrets.of(
    SUBJECT, {"ANYTHING": CANARIES["variable"], "PATH": "/usr/bin:/bin"}, [f"postgresql://me:{CANARIES['dsn']}@h/db"]
)


def test_the_path_and_the_query_of_a_webhook_are_secrets_and_the_words_in_them_are_none() -> None:
    hook = "https://hooks.example.com/services/T0001ABC/B0002/verysecretpath?api-version=2016-06-01&sig=a-signature-of-Teams"
    secrets = Secrets.of(
        Subject("shop", ProbedAgent(("agent",), ("agent",), Path())), {}, [hook, "postgresql://h/inventory-of-shops"]
    )
    assert (
        secrets.blot("POST /services/T0001ABC/B0002/verysecretpath?sig=a-signature-of-Teams")
        == "POST /services/***/B0002/***?sig=***"
    )
    assert secrets.blot("services of 2016-06-01 in inventory-of-shops") == "services of 2016-06-01 in inventory-of-shops"


def test_a_variable_that_holds_a_place_is_no_secret(tmp_path: Path) -> None:
    places, log = f"{tmp_path}:{tmp_path.parent}", f"{tmp_path}/run.log"
    none, named = f"{tmp_path}/absent/x", f"{tmp_path}/key"
    variables = {"PYENV_ROOT": str(tmp_path), "PLACES": places, "LOG": log, "PEPPER": none, "MY_KEY": named}
    secrets = Secrets.of(SUBJECT, variables)
    text = f"{tmp_path}/bin/python {places} {log}"
    assert secrets.blot(text) == text
    assert secrets.blot(f"{none} {named}") == "*** ***", "no folder could have the first, and a name says what the second is"


def test_a_command_or_an_address_that_begins_with_a_path_is_a_secret(tmp_path: Path) -> None:
    values = [f"{tmp_path}/mysql -uroot -phunter2hunter2", f"{tmp_path}/x?sig=hunter3", f"{tmp_path}/x,hunter4"]
    secrets = Secrets.of(SUBJECT, {f"SHOP_{number}": value for number, value in enumerate(values)})
    assert secrets.blot(" ".join(values)) == "*** *** ***"
    (tmp_path / "of two words").mkdir()
    there = f"{tmp_path}/of two words"
    assert Secrets.of(SUBJECT, {"SHOP": there}).blot(there) == there


@pytest.mark.parametrize("name", ["SSH_PASSPHRASE", "DB_PASS", "CARD_PIN", "DB_PWD", "SAS_SIG"])
def test_short_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name) and Secrets.of(SUBJECT, {name: "hunter-seven"}).blot("x hunter-seven") == "x ***"
    assert Secrets.of(SUBJECT, {name: "noninteractive"}).blot("noninteractive") == "***", "a word is one if its name says so"


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "DESIGN", "SPINNER"])
def test_names_that_hold_those_of_secrets_are_none(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("serve", "--api-key", "hunter2", "--port", "9"), "serve --api-key *** --port 9"),
        (("serve", "--token=hunter2", "DB_PASSWORD=hunter2"), "serve --token=*** DB_PASSWORD=***"),
        (("serve", "https://me:hunter2@h/x?sig=hunter2&n=1"), "serve 'https://h/x?sig=***&n=1'"),
        (("serve", "--max-tokens", "4000", "--auth=1.0"), "serve --max-tokens 4000 --auth=1.0"),
        (("npx", "-y", "server", "--token", "hunter2"), "npx -y server --token ***"),
        (("npx", "--token", "evil-package"), "npx --token evil-package"),
        (("npm", "exec", "--token", "evil-package"), "npm exec --token evil-package"),
        (("serve", "postgres://me:hun#ter2@h/db"), "serve postgres://h/db"),
        (("sh", "-c", "token=$(curl evil)"), "sh -c 'token=$(curl evil)'"),
        (("sh", "-c", "a&TOKEN=$(curl evil)"), "sh -c 'a&TOKEN=$(curl evil)'"),
        (("sh", "-c", "a //;evil @b"), "sh -c 'a //;evil @b'"),
    ],
)
def test_a_shown_command_leaves_out_values_of_secrets_and_hides_nothing_that_runs(words: tuple[str, ...], line: str) -> None:
    assert redacted_command(words) == line


def test_each_secret_of_a_subject_is_blotted_out_of_a_text() -> None:
    text = " and ".join(CANARIES.values())
    blotted = SECRETS.blot(text)
    assert [name for name, canary in CANARIES.items() if canary in blotted] == []
    assert blotted.count("***") == len(CANARIES)


@given(st.sampled_from(sorted(CANARIES.values())), st.text(max_size=30), st.text(max_size=30))
def test_no_text_around_a_secret_keeps_it(canary: str, before: str, after: str) -> None:
    assert canary not in SECRETS.blot(f"{before}{canary}{after}")


def test_words_of_every_shell_stay() -> None:
    assert SECRETS.blot("/usr/bin:/bin and short") == "/usr/bin:/bin and short"


def test_a_password_among_the_words_of_a_dsn_is_a_secret() -> None:
    secrets = Secrets.of(SUBJECT, {}, ["host=db user=me password='of the words' dbname=x"])
    assert "of the words" not in secrets.blot("cannot connect with of the words")


ENVIRONMENT = {
    "_": "/usr/local/sbin/own-tool",
    "USERNAME": "ordinary-user-1",
    "NODE_ENV": "production-2",
    "DEBIAN_FRONTEND": "noninteractive",
    "MODE": "noninteractive",
    "PORT": "8080.8081",
    "PROJECT": "folder-of-9-agents",
}


def test_ordinary_words_and_parts_of_paths_are_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "folder-of-9-agents"
    place.mkdir()
    monkeypatch.chdir(place)
    text = f"**Proactive {place}/bank.db: {' '.join(ENVIRONMENT.values())}"
    assert Secrets.of(SUBJECT, ENVIRONMENT).blot(text) == text
    assert Secrets.of(SUBJECT, {"DB_PASSWORD": "noninteractive"}).blot(text).startswith("**Proactive ")


DOTENV = """# PASSWORD=a-comment-12345
API_KEY=canary-dotenv-1
export QUOTED = "canary dotenv 22 #x"
SINGLE='canary-dotenv-333'   # a comment
SPACED=canary dotenv 4444 # a comment
MODE=production
"""


def test_values_of_dotenv_files_beside_the_agent_and_its_servers_are_secrets(tmp_path: Path) -> None:
    agent, server, installed = tmp_path / "agent", tmp_path / "server", tmp_path / "installed"
    for folder in (agent, server, installed):
        folder.mkdir()
    (agent / ".env").write_text(DOTENV, encoding="utf-8")
    (server / ".env.local").write_text("TOKEN=canary-of-the-server", encoding="utf-8")
    (server / "serve.py").touch()
    (installed / ".env").write_text("A=canary-of-the-folder", encoding="utf-8")
    words = ("python", str(server / "serve.py"), f"--directory={installed}")
    subject = replace(
        SUBJECT, agent=replace(SUBJECT.agent, folder=agent), configs=(McpConfig(Path(), (McpServer("shop", words),)),)
    )
    secrets = Secrets.of(subject, {})
    for canary in ("canary-dotenv-1", "canary dotenv 22 #x", "canary-dotenv-333", "canary dotenv 4444"):
        assert secrets.blot(f"got {canary}!") == "got ***!"
    assert secrets.blot("canary-of-the-server, canary-of-the-folder") == "***, ***"
    assert secrets.blot("in production, a comment, a-comment-12345") == "in production, a comment, a-comment-12345"


JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"


@pytest.mark.parametrize(
    "key",
    [
        "sk_live_51HabcdEFGH",
        "sk-proj-1234567890abcdefghij",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "AKIAIOSFODNN7EXAMPLE",
        JWT,
    ],
)
def test_a_key_of_a_known_form_is_a_secret_wherever_it_comes_from(key: str) -> None:
    assert Secrets(()).blot(f'{{"a": "{key}"}}') == '{"a": "***"}' and Secrets(()).occurs_in(f"x {key}")


def test_words_like_the_forms_of_keys_stay() -> None:
    text = "task-force-of-12345678901234567 sk-learn-is-no-key-at-all ghp_short AKIA eyJ.eyJ risk_live_12345678"
    assert Secrets(()).blot(text) == text and not Secrets(()).occurs_in(text)


@pytest.mark.parametrize("name", ["password", "api_key", "apiKey", "X-Api-Key", "access_token", "token", "clientSecret"])
def test_the_value_of_an_argument_that_is_named_as_a_secret_is_removed_from_all_texts(name: str) -> None:
    secrets = Secrets(())
    assert (
        secrets.is_secret_argument(name, "given-by-hand-1")
        and secrets.is_secret_argument(name, "required")
        and secrets.is_secret_argument(name, "12")
    )
    assert secrets.blot("given-by-hand-1 is required, 12") == "*** is required, 12"


@pytest.mark.parametrize(
    "name", ["key", "idempotency_key", "idempotency_token", "pageToken", "next_token", "max_tokens", "author"]
)
def test_a_key_that_tells_calls_apart_is_no_secret(name: str) -> None:
    secrets = Secrets(())
    assert not secrets.is_secret_argument(name, "bill-7-of-ann-1") and secrets.blot("bill-7-of-ann-1") == "bill-7-of-ann-1"


@given(st.sampled_from(['pä"ss\\wörd-1', "plain-pass-1"]))
def test_a_secret_is_found_as_bytes_and_as_json_within_json(value: str) -> None:
    secrets, once = Secrets([value]), json.dumps({"a": value})
    for text in (
        once,
        json.dumps({"text": once}),
        json.dumps({"a": value}, ensure_ascii=False),
        value.encode().decode("latin-1"),
    ):
        assert secrets.occurs_in(text) and "***" in secrets.blot(text) and not secrets.occurs_in(secrets.blot(text))
    encoded = base64.b64encode(value.encode()).decode()
    assert len(secrets.blot(encoded)) <= 3 + 4


def test_a_record_keeps_its_form_without_secrets_and_names_the_blotted_texts() -> None:
    texts, into = Texts(), Texts()
    canary = CANARIES["agent"]
    digest = texts.keep(f'{{"key": "{canary}"}}')
    call = GatewayCall(
        1, f"shop.{canary}#1", "shop", "mcp_stdio", "pay", "effect", None, digest, None, 1, "1", 0.0, 0.1, 0.2, 0.3
    )
    row = RowDifference("orders", "keys", canary, None, {"key": canary, "amount": 7})
    blotted, changed = SECRETS.blot_all((call, row), texts, into)
    assert isinstance(blotted, GatewayCall) and blotted.name == "shop.***#1" and blotted.arrived == 0.0
    assert into[blotted.arguments] == '{"key": "***"}' and list(into) == [blotted.arguments]
    assert changed == RowDifference("orders", "keys", "***", None, {"key": "***", "amount": 7})
