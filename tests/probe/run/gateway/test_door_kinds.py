"""Each kind of door is one entry that keeps what it says, and another package's kind needs an entry point and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from gates import ScriptedGate, exchanged, listening, raw_server
from plugged import install, plugged

from bench.common.errors import ConfigError
from bench.probe.points import POINTS
from bench.probe.run.gateway.door_kinds import DOOR_KINDS, DoorKind
from bench.probe.run.gateway.subject import Service
from bench.probe.run.settings import ProbeSettings

PACKAGE = Path(__file__).parents[3] / "graphql_package"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PAYS = b'{"variables": {"n": 700}, "query": "mutation pay($n: Int) { pay(n: $n) }"}'
LOOKS = b'{"query": "query balance { balance }"}'


@pytest.fixture(autouse=True)
def graphql(tmp_path: Path) -> Iterator[None]:
    """The package that brings the door before GraphQL, as if it was installed."""
    text = (PACKAGE / "graphql_door.py").read_text()
    entry = {"recovery_bench.doors": {"graphql": "graphql_door:KIND"}}
    install(tmp_path / "site", "graphql-door", entry, {"graphql_door.py": text})
    with plugged(tmp_path / "site"):
        yield


def post(body: bytes, path: str, place: str) -> bytes:
    head = f"POST {path}/graphql HTTP/1.1\r\nHost: {place}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


def asked(door: str, gate: ScriptedGate, *bodies: bytes) -> tuple[list[bytes], list[bytes], str]:
    """Return what a service behind a door of this kind got, what the agent got, and the service's own host and port."""

    async def ask() -> tuple[list[bytes], list[bytes], str]:
        async with raw_server(OK, b'"}') as server, listening(gate) as listener:
            address = listener.add_service(Service("shop", "SHOP_URL", server.url, door=door))
            path, place = address.removeprefix(listener.address), listener.address.removeprefix("http://")
            answers = [await exchanged(address, post(body, path, place), len(OK)) for body in bodies]
            return server.got, answers, server.url.removeprefix("http://")

    return asyncio.run(asyncio.wait_for(ask(), 10))


def test_each_kind_that_a_service_has_passes_holds_and_repeats_a_call_as_its_entry_says() -> None:
    opened = [kind for kind in DOOR_KINDS if kind.opens]
    assert [kind.name for kind in opened] == ["http", "graphql"]
    for kind in opened:
        gate = ScriptedGate()
        got, answers, place = asked(kind.name, gate, PAYS)
        assert (got, answers) == ([post(PAYS, "", place)], [OK]) and gate.calls[0].kind == kind.name
        assert kind.can == {"hold", "twice"}
        got, answers, _ = asked(kind.name, ScriptedGate(before={1: "twice"}), PAYS)
        assert len(got) == 2 and answers == [OK]
        held = ScriptedGate(before={1: "hold"}, patience=0.05)
        got, answers, _ = asked(kind.name, held, PAYS)
        assert len(got) == 1 and answers == [OK] and held.course[:2] == [("arrived", 1), ("waits_longer", 1)]


def test_a_strangers_door_names_the_calls_that_are_all_alike_over_http() -> None:
    gate = ScriptedGate()
    asked("graphql", gate, PAYS, LOOKS)
    assert [(call.tool, call.arguments, call.reads) for call in gate.calls] == [
        ("mutation pay", {"n": 700}, None),
        ("query balance", None, True),
    ]
    plain = ScriptedGate()
    asked("http", plain, PAYS, LOOKS)
    assert [call.tool for call in plain.calls] == ["POST /graphql"] * 2


def test_a_point_strikes_at_every_kind_that_can_do_what_it_needs() -> None:
    needed = {point.name: {kind.name for kind in DOOR_KINDS if point.needs in kind.can} for point in POINTS if point.needs}
    holding = {"mcp_stdio", "mcp_http", "http", "graphql", "database"}
    repeating = {"mcp_http", "http", "graphql"}
    assert needed == {"in_flight": holding, "late": holding, "twice": repeating, "redelivered": repeating}


def test_the_file_of_a_probe_names_the_door_of_a_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    service = '[[service]]\nname = "shop"\nvariable = "SHOP_URL"\nurl = "http://127.0.0.1:1"\ndoor = "{}"\n'
    text = f'agent = "true"\n{service}[[store]]\nfile = "x"\nvariable = "X"\n'
    (tmp_path / "probe.toml").write_text(text.format("graphql"))
    (tmp_path / "x").write_text("")
    assert ProbeSettings(Path("probe.toml")).manifest_entry(False, ()).doors == {"shop": "graphql"}
    for wrong in ("graphqk", "database"):
        (tmp_path / "probe.toml").write_text(text.format(wrong))
        with pytest.raises(ConfigError, match=f"no kind of door for a service is named '{wrong}'"):
            ProbeSettings(Path("probe.toml"))


def test_an_entry_that_says_what_no_door_does_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'odd' says can = 'fly'"):
        DoorKind("odd", can=frozenset(("fly",)))  # type: ignore[arg-type]
