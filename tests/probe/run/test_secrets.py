"""What a probe's owner keeps secret is in none of its texts."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bench.common.digests import Texts
from bench.probe.run.gateway.subject import McpConfig, McpServer, ModelSource, ProbedAgent, Service, Subject
from bench.probe.run.secrets import Secrets
from bench.record.probe.events import GatewayCall
from bench.record.probe.rows import RowDifference

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


def test_a_variable_that_holds_a_place_is_no_secret(tmp_path: Path) -> None:
    places = f"{tmp_path}:{tmp_path.parent}"
    secrets = Secrets.of(SUBJECT, {"PYENV_ROOT": str(tmp_path), "PLACES": places, "PEPPER": f"{tmp_path}/absent"})
    assert secrets.blot(f"{tmp_path}/bin/python {places}") == f"{tmp_path}/bin/python {places}"
    assert secrets.blot(f"{tmp_path}/absent") == "***"


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
