"""An agent's folder and a home, and programs that run in a box around them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.probe.run.box.box import Box, box_plan
from bench.wire.agent_process import AgentProcess, ProcessExit


class Boxed:
    """A box that is open, around `folder` and `home`; `layers` is where it keeps what is written."""

    def __init__(
        self,
        base: Path,
        folder: Path,
        home: Path,
        layers: Path | None = None,
        programs: Sequence[Sequence[str]] = (),
        sockets: Mapping[Path, Path] = {},
    ):
        self.folder, self.home, self.work = folder, home, base / "work"
        self.layers, self.gateway = layers or self.work / "layers", self.work / "gateway"
        for made in (folder, home, self.layers, self.gateway):
            made.mkdir(parents=True, exist_ok=True)
        self.environment = {**os.environ, "HOME": str(home), "AGENT_FOLDER": str(self.work)}
        self.box = Box(box_plan(folder, self.layers, self.gateway, (), programs, (), self.environment, sockets))
        self.box.open()

    def run(self, code: str, *words: str, before: Mapping[str, str] | None = None) -> tuple[ProcessExit, str]:
        """Run a program of Python in the box, and return how it ended and what it printed."""
        return asyncio.run(self._run([sys.executable, "-c", code, *words], {**self.environment, **(before or {})}))

    def started(self, words: Sequence[str], environment: Mapping[str, str], namespaces: Sequence[int]) -> AgentProcess:
        return AgentProcess(words, self.folder, environment, 2**30, namespaces=namespaces)

    async def _run(self, words: Sequence[str], environment: Mapping[str, str]) -> tuple[ProcessExit, str]:
        process = self.started(words, environment, self.box.namespaces)
        try:
            async with asyncio.timeout(30):
                await asyncio.shield(process.ended)
        finally:
            await process.close()
        return process.ended.result(), process.output.text.strip()


def marked(mark: str) -> list[int]:
    """Return the processes that have a text among their variables."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                processes.append(int(path.parent.name))
        except OSError:
            continue
    return processes
