"""The services that the probe starts before the agent, including the model's script, and the wait until they are ready."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from bench.common.errors import ConfigError, one_line
from bench.probe.run.box.box import Box
from bench.probe.run.gateway.subject import Service, Subject
from bench.wire.agent_process import AgentProcess

READY_TIMEOUT_S, POLL_INTERVAL_S = 30.0, 0.05
"""Seconds until a service must be ready, and between two attempts to connect."""
SERVER_ERROR_STATUS = 500


def services_of(subject: Subject) -> Iterator[Service]:
    """Yield the services that the probe starts for a subject."""
    yield from (service for service in subject.services if service.command)
    if (model := subject.model) and model.script:
        yield Service("the model's script", "", model.url, model.script)


def with_ports(subject: Subject) -> Subject:
    """Return a subject in which `{port}` is replaced by a free port, for each service that the probe starts and for the model's
    script."""
    services = []
    for service in subject.services:
        port = str(_free_port()) if "{port}" in service.url else ""
        words = tuple(word.replace("{port}", port) for word in service.command)
        services.append(replace(service, url=service.url.replace("{port}", port), command=words))
    model = subject.model
    if model and model.script:
        port = str(_free_port())
        script = tuple(word.replace("{port}", port) for word in model.script)
        model = replace(model, script=script, url=f"http://127.0.0.1:{port}{model.suffix}")
    return replace(subject, services=tuple(services), model=model)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


async def until_ready(service: Service, process: AgentProcess, box: Box | None) -> None:
    """Wait until a service is ready. Raises ConfigError if it is not ready in time, or has ended."""
    deadline = asyncio.get_running_loop().time() + READY_TIMEOUT_S
    while not await asyncio.to_thread(_is_ready, service.url, service.health, box):
        is_late = asyncio.get_running_loop().time() > deadline
        if is_late or process.ended.done():
            await process.close()
            problem = f"was not ready within {READY_TIMEOUT_S:g} s" if is_late else "ended before it was ready"
            printed = one_line(process.output.last_line or "nothing", 200)
            raise ConfigError(
                f"{service.name} {problem} at {service.url}; see its command and its `health`. It printed last: {printed}"
            )
        await asyncio.sleep(POLL_INTERVAL_S)


def _is_ready(url: str, health: str, box: Box | None) -> bool:
    """Return whether a service accepts connections, and answers a request for its health path, if it has one, with a status
    below 500."""
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    try:
        connected = box.connect("servers", host, port, 1.0) if box else socket.create_connection((host, port), timeout=1)
        with closing(HTTPConnection(host, port, timeout=1)) as connection:
            connection.sock = connected
            if not health:
                return True
            connection.request("GET", f"{parts.path.rstrip('/')}/{health.lstrip('/')}")
            return connection.getresponse().status < SERVER_ERROR_STATUS
    except (OSError, HTTPException):
        return False
