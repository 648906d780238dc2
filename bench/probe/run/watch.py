"""Watches one run of an agent in a box without a fault, to see the files that it writes and the servers that it calls. A
`probe.toml` has to name these."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.common.digests import digest_of
from bench.common.errors import OriginalChanged
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.box.box import Box
from bench.probe.run.box.frameworks import FileForm
from bench.probe.run.box.written import WrittenFile
from bench.probe.run.gateway.journal import text_of
from bench.probe.run.gateway.subject import Subject
from bench.probe.run.runner import Worker
from bench.probe.run.running import work_folder
from bench.probe.run.secrets import Secrets
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.kinds import STORE_KINDS, StoreSettings
from bench.probe.run.witness.path_store import StoresBox
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.store import StoreWithoutOriginal
from bench.probe.run.witness.stores import Stores
from bench.record.probe_events import GatewayCall
from bench.record.probe_rows import RowDifference, StoreReading
from bench.wire.tail import last_line

BOX_FILES = ""
"""The name of the store that consists of the files in the box. A database is a store with a name of its own."""


@dataclass(frozen=True)
class WatchedFile:
    """A file that the agent wrote, made or removed.

    path    its path; a journal counts as its database
    was     whether it existed before the run
    is_now  whether it exists after the run
    form    whether it is a database, and which framework keeps the agent's memory in it
    """

    path: Path
    was: bool
    is_now: bool
    form: FileForm


@dataclass(frozen=True)
class WatchedRun:
    """The result of a watched run.

    agent_run  the calls, how the agent ended, and what it printed
    files      the files that the agent wrote outside temporary folders
    seen       the facts that the agent's Python processes reported: kind -> facts, in their order
    servers    the MCP servers over stdio that were started
    changed    a line about each database of the owner's own that changed meanwhile, and how to restore it; "" if none did
    """

    agent_run: AgentRun
    files: Sequence[WatchedFile]
    seen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    servers: frozenset[str] = frozenset()
    changed: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the agent ended in time with exit code 0."""
        return self.agent_run.code == 0 and self.agent_run.in_time

    @property
    def ending(self) -> str:
        """The end of the run in words: the exit code, and the last line that the agent printed."""
        how = f"ended with exit code {self.agent_run.code}" if self.agent_run.in_time else "did not end in time"
        printed = last_line(self.agent_run.texts.get(self.agent_run.printed or "", "")) or "nothing"
        return f"the one run that was watched {how}, and printed last: {printed}"

    @property
    def summary(self) -> str:
        """Return the comment at the top of the written file: what changed in the user's data during the run, else whether
        the file is complete."""
        if self.changed:
            return f"BEWARE: {self.changed}"
        if left := self.agent_run.left_running:
            return f"BEWARE: when the agent ended, this still ran, and was ended: {'; '.join(left)}; let the agent wait for it."
        if self.is_whole:
            return f"Each line says what was seen in one run, which took {self.agent_run.seconds:.1f} s."
        return f"BEWARE, more may be missing here: {self.ending}"

    def tool_calls_with_changes(self, files: Collection[Path]) -> Iterator[tuple[GatewayCall, bool]]:
        """Yield each call of a tool, and whether one of these files, or a row of a database, changed during the call."""
        for call in self.agent_run.calls:
            readings = [reading for reading in self.agent_run.readings if call.number in reading.calls]
            changed = (row for reading in readings for row in reading.changed)
            if call.door_kind != "model" and call.continues is None:
                yield call, any(row.store != BOX_FILES or Path(row.key) in files for row in changed)


class LayerWitness(StoreWithoutOriginal):
    """The files that are written in the box as a store, with a row for each file. It has no copy, and is reset with the box."""

    name = BOX_FILES

    def __init__(self) -> None:
        self.box: Box | None = None

    def reset(self) -> None:
        """Do nothing, since the box is reset."""

    def read(self, most: int) -> StoreReading:
        """Return the digest of the written files, and a row for each file."""
        files = self.box.files_written() if self.box else []
        rows = [_row(file) for file in files if file.first != file.now]
        digest = digest_of(text_of([[row.key, dict(row.after or {})] for row in rows]))
        return StoreReading(digest, tuple(rows[:most]), max(0, len(rows) - most))

    def remove(self) -> None:
        """Do nothing, since there is no copy."""


class _WatchedStores(Stores):
    """The files that are written in the box, and the copies of databases on servers."""

    def __init__(self, databases: Sequence[StoreSettings], settle: float, beside: Sequence[Path]):
        encoding, self.layer = Encoding(), LayerWitness()
        copies = [STORE_KINDS[database.kind].make(database, work_folder(), encoding) for database in databases]
        super().__init__([self.layer, *copies], settle, encoding)
        self.is_boxed, self.beside, self.changed = True, beside, ""

    async def check_originals(self, when: str, *, surely: bool = False) -> None:
        """Note which databases of the owner's own have changed, since real services that the agent reaches can write to
        them."""
        try:
            await super().check_originals(when, surely=surely)
        except OriginalChanged as error:
            self.changed = "; ".join(filter(None, (self.changed, str(error))))

    def enter_box(self, box: StoresBox) -> None:
        """Let the stores work in this box."""
        super().enter_box(box)
        assert isinstance(box, Box)
        self.layer.box = box


async def watch(
    subject: Subject,
    databases: Sequence[StoreSettings],
    beside: Sequence[Path],
    secrets: Secrets,
    environment: Mapping[str, str] = os.environ,
) -> WatchedRun:
    """Run the agent once in a box, and return what it did.

    Args:
        subject: The agent, and the tools, services and models that it may call.
        databases: The databases on servers; the agent gets a copy of each.
        beside: Further paths that are copied for the agent, besides its folder and its home.
        secrets: The values that are removed from what is kept.
        environment: The owner's environment variables.

    Returns:
        The calls and the output of the agent, the files that it wrote, and the MCP servers that it started.

    Raises:
        NoBox: The machine cannot make a box.
        ConfigError: The agent cannot be started, or a database cannot be copied.
    """
    stores = _WatchedStores(databases, subject.settle, beside)
    worker = Worker(subject, stores, PrivateFolder(work_folder(), "watched"), secrets, environment)
    async with worker:
        agent_run = await worker.run(Masks(), name="the watched run")
        box = stores.layer.box
        assert box
        written = await asyncio.to_thread(box.files_written)
        files = [
            WatchedFile(file.path, file.first is not None, file.now is not None, await asyncio.to_thread(box.form, file.path))
            for file in written
            if file.first != file.now
        ]
        seen = defaultdict[str, list[str]](list)
        for kind, fact in worker.gateway.facts_seen:
            seen[kind].append(secrets.blot(fact))
        servers = frozenset(name for name, responses in worker.gateway.servers.handshakes.items() if responses)
    return WatchedRun(agent_run, files, seen, servers, secrets.blot(stores.changed))


def _row(file: WrittenFile) -> RowDifference:
    """Return a written file as a row."""
    before, after = ({"content": content} if content is not None else None for content in (file.first, file.now))
    return RowDifference(BOX_FILES, "", str(file.path), before, after)
