"""A client's longest requests do not hold up the others: `bench serve` reads, counts and keeps them without a long stall."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from commands import Started, free_port, workplace
from cost import SLACK
from strain import strain_in, watched

MOST_STALL, MAX_MEMORY = SLACK * 0.1, 128 * 2**20
"""Seconds, and bytes. The promise is 0.1 seconds, on a quiet machine."""
TOKEN = "the-token-of-these-tests"
HELLO = {"role": "user", "content": "hello"}


def call(number: int) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}


LONG: dict[str, list[dict[str, Any]]] = {
    "short messages": [{"role": "user", "content": f"message {number}"} for number in range(10_000)],
    "messages of 700 characters": [{"role": "user", "content": f"{number} " + "word " * 140} for number in range(10_000)],
    "one message": [{"role": "user", "content": "word " * 1_600_000}],
    "tool calls": [
        HELLO,
        {"role": "assistant", "tool_calls": [call(number) for number in range(14_000)]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ],
    "arguments of one tool call": [
        HELLO,
        {"role": "assistant", "tool_calls": [call(1) | {"function": {"name": "f", "arguments": "word " * 1_500_000}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ],
    "fields of a provider": [HELLO, *[{"role": "assistant", "content": "a", "x": {"k": list(range(8))}}] * 6_000],
}


@pytest.mark.parametrize("what", LONG)
def test_a_long_request_does_not_stall_the_server(
    what: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    (tmp_path / "work").mkdir()
    config, port, measured = workplace(tmp_path / "work", repetitions=1), free_port(), tmp_path / "strain.json"
    words = ("serve", str(config), "--port", str(port), "--scenario", "demo", "--plan", "none")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    body = {"model": "any", "messages": LONG[what]}
    with Started(tmp_path / "work", words, {"BENCH_SERVE_TOKEN": TOKEN}, watched(measured)) as server:
        server.wait_until_said("Ctrl-C stops")
        url = f"http://127.0.0.1:{port}"
        with httpx2.Client(trust_env=False, timeout=60, base_url=url, headers=headers) as client:
            client.get("/trial")
            statuses = [client.post("/v1/chat/completions", json=body).status_code for _ in range(2)]
            client.post("/trial/give-up", json={"reason": "enough"})
            client.get("/trial")
        code, _, err = server.ended()
    strain = strain_in(measured)
    record_property("stall", strain.stall)
    record_property("peak", strain.grown / 2**20)
    assert (statuses, code, err) == ([200, 200], 0, "")
    assert strain.stall <= MOST_STALL and strain.grown <= MAX_MEMORY, strain
