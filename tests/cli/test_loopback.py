"""A user behind a company's proxy: what stays on this machine is not sent there, whoever sends it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import bench, workplace
from proxies import ProxyServer

from bench.cli.loopback import exempt_loopback


def test_a_frameworks_own_client_reaches_the_endpoint_on_this_machine_past_a_proxy(tmp_path: Path) -> None:
    config = workplace(tmp_path, repetitions=1)
    config.write_text(config.read_text().replace('["static", "runtime_structured"]', '["reflexion"]'))
    with ProxyServer(answer=b"") as proxy:
        code, out, err = bench(tmp_path, "run", str(config), HTTP_PROXY=proxy.url, NO_PROXY="intranet")
    assert (code, proxy.heads) == (0, []), (out, err)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({}, None),
        ({"NO_PROXY": "intranet"}, "intranet"),
        ({"https_proxy": "http://corner:3128"}, "127.0.0.1,localhost,::1"),
        ({"ALL_PROXY": "http://corner:3128", "no_proxy": "intranet, .example"}, "intranet, .example,127.0.0.1,localhost,::1"),
        ({"HTTPS_PROXY": "http://corner:3128", "NO_PROXY": "*"}, "*"),
    ],
)
def test_this_machine_is_added_to_what_is_excepted_already(
    given: dict[str, str], left: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("no_proxy", "")  # so that it is as it was afterwards
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.delenv("NO_PROXY")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    exempt_loopback()
    assert os.environ.get("no_proxy", os.environ.get("NO_PROXY")) == left
