"""The tape of a cell: the cell is recorded once with the real servers, stores and model, and then played without them."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from bench.common.bounds import BoundedTable, Lookup, Many
from bench.common.digests import Texts
from bench.common.errors import ConfigError, nearest
from bench.common.files import content_of, new_file
from bench.probe.points import point_of
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.causes import name_calls
from bench.probe.run.cells import cells_of
from bench.probe.run.clean import FIRST_CLEAN_RUNS, clean_of, objection
from bench.probe.run.gateway.bodies import ContentDecoder
from bench.probe.run.gateway.door_kinds import DOOR_KINDS
from bench.probe.run.gateway.http_exchange import CONTENT_FIELDS
from bench.probe.run.gateway.http_wire import framing_of, head_of
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.gateway.subject import Subject
from bench.probe.run.gateway.tape import OTHER_WRITER, PlayedTape, TapedCall, TapedStores
from bench.probe.run.runner import Worker
from bench.probe.run.running import work_folder
from bench.probe.run.secrets import Secrets
from bench.probe.run.settings import ProbeSettings
from bench.probe.run.verdict import is_half_way, judge
from bench.probe.run.volatile import Masks, place_of
from bench.probe.run.witness.kinds import STORE_KINDS
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.stores import Stores
from bench.probe.run.writing import CellRun, run_of, without_secrets
from bench.record.probe_events import GatewayCall, plan_of
from bench.record.probe_rows import RowDifference

TAPE_VERSION = 2
MAX_TAPE_BYTES = 200_000
"""The largest tape in bytes that is written or read."""
MAX_ARGUMENTS_CHARS = 100 * MAX_TAPE_BYTES
"""The most characters of all arguments of a tape, once their pieces are joined."""
UNUSED_ADDRESS = "http://127.0.0.1:9"
"""The address of services and of the model, which the tape replaces: nothing listens there."""


@dataclass(frozen=True)
class CellTape:
    """The tape of one cell.

    clean       the clean runs, without their texts
    pieces      distinct pieces of text: the requests to a model have most of their text in common
    arguments   the arguments of the clean runs' calls by their digests, each as the numbers of its pieces
    handshakes  the responses of each MCP server to messages that are no calls
    calls       the calls of the cell
    recorded    the day of the recording; "" if it is not known
    """

    version: int
    plan: str
    clean: Many[AgentRun]
    pieces: Many[str]
    arguments: Lookup[str, Many[int]]
    handshakes: Lookup[str, BoundedTable[str, Any]]
    calls: Many[TapedCall]
    recorded: str = ""

    def clean_runs(self) -> list[AgentRun]:
        """Return the clean runs with the arguments of their calls. Raises ConfigError if the pieces do not fit."""
        try:
            length = sum(len(self.pieces[number]) for numbers in self.arguments.values() for number in numbers)
        except IndexError:
            length = 0
        if not 0 < length <= MAX_ARGUMENTS_CHARS:
            raise ConfigError(f"the tape of {self.plan} is damaged; record it anew by: bench probe --test {self.plan}")
        texts = {digest: "".join(self.pieces[number] for number in numbers) for digest, numbers in self.arguments.items()}
        return [replace(agent_run, texts=texts) for agent_run in self.clean]


_TAPE_ADAPTER: TypeAdapter[CellTape] = TypeAdapter(CellTape)


async def record_tapes(settings: ProbeSettings, hidden: Secrets, plan: str) -> list[tuple[CellTape, CellRun]]:
    """Run the cell, and the cell in which the agent is killed before the same call, if it exists. Return each run with its
    tape.

    Raises:
        ConfigError: There is no such cell, it cannot be run, or a tape cannot hold it.
    """
    subject = settings.subject
    if subject.hide:
        raise ConfigError("--test: a tape holds what servers answer, and `hide` wants no values of it kept; leave `hide` out")
    if servers := [server.name for config in subject.configs for server in config.servers if server.url]:
        raise ConfigError(f"--test: {servers[0]} is an MCP server with a URL, which no tape stands for; serve it over stdio")
    if sent := [store.name for store in settings.stores if STORE_KINDS[store.kind].needs_box]:
        raise ConfigError(f"--test: no tape stands for {sent[0]}, where mail or a webhook's messages are caught")
    stores = Stores.of(settings.stores, work_folder(), subject.settle, subject.hide, b"", boxed=settings.is_boxed)
    async with Worker(subject, stores, PrivateFolder(work_folder(), "tape"), hidden) as worker:
        agent_runs = [
            await worker.run(Masks(), one_by_one=number == FIRST_CLEAN_RUNS - 1) for number in range(FIRST_CLEAN_RUNS)
        ]
        for number, agent_run in enumerate(agent_runs, 1):
            if why := objection(agent_run, number, subject.agent.done is not None):
                raise ConfigError(why)
        clean = clean_of(agent_runs)
        cells = {cell.plan: cell for cell in cells_of(clean, subject, all_forms=True)}
        if plan not in cells:
            raise ConfigError(f"--test {plan}: there is no such cell; {nearest(plan, list(cells))}")
        clean_calls = [call for agent_run in agent_runs for call in agent_run.calls]
        if any(call.door_kind == "database" and call.continues is None for call in clean_calls):
            raise ConfigError("--test: the agent acts on a database, for which no tape stands; name its tools by `functions`")
        if point_of(cells[plan].point).by_tool:
            raise ConfigError(
                f"--test {plan}: the tool gets one call twice there, and a tape has no tool; test the tool itself"
            )
        half_way = partial(is_half_way, clean)
        plans = dict.fromkeys((plan, plan_of(cells[plan].call, "killed_before")))
        struck_cells = [cells[cell_plan] for cell_plan in plans if cell_plan in cells]
        struck_runs = [await worker.run(clean.masks, cell.fault, half_way=half_way) for cell in struck_cells]
        handshakes = worker.gateway.servers.handshakes
    clean_runs = tuple(replace(agent_run, texts={}, answers=()) for agent_run in agent_runs)
    pieces, arguments = _split_into_pieces(
        {call.arguments: agent_run.texts[call.arguments] for agent_run in agent_runs for call in agent_run.calls}
    )
    recorded = list[tuple[CellTape, CellRun]]()
    for cell, agent_run in zip(struck_cells, struck_runs, strict=True):
        day = datetime.now(UTC).date().isoformat()
        tape = CellTape(
            TAPE_VERSION, cell.plan, clean_runs, pieces, arguments, handshakes, tuple(_taped_calls(agent_run, hidden)), day
        )
        named_run = name_calls(agent_run, clean.calls)
        run = run_of(cell.plan, 0, named_run, judge(clean, named_run, cell.call, cell.point, cell.form))
        recorded.append((_without_secrets(tape, hidden), without_secrets(run, hidden)))
    return recorded


def _without_secrets(tape: CellTape, hidden: Secrets) -> CellTape:
    """Return a tape without secrets. Raises ConfigError if a secret would remain in any form, or if two rows would no longer
    differ."""
    blotted: CellTape = hidden.blot_all(tape, {}, Texts())
    answers = [call.answer.encode("latin-1").decode("utf-8", "replace") for call in blotted.calls]
    if any(map(hidden.occurs_in, (_TAPE_ADAPTER.dump_json(blotted).decode(), *answers))):
        raise ConfigError(f"--test {tape.plan}: a secret would stand in the tape; name its column or argument in `hide`")
    if len(_places(tape)) > len(_places(blotted)):
        raise ConfigError(f"--test {tape.plan}: rows are told apart by a secret, and a tape holds none; `ignore` their table")
    return blotted


def _places(tape: CellTape) -> set[RowPlace]:
    """Return the stores, tables and keys of all rows on a tape."""
    changed = [row for agent_run in tape.clean for reading in agent_run.readings for row in reading.changed]
    return {place_of(row) for row in (*changed, *(row for call in tape.calls for row in call.rows))}


def write_tape(path: Path, tape: CellTape) -> None:
    """Write a tape. Raises ConfigError if it is too large."""
    text = _TAPE_ADAPTER.dump_json(tape)
    if len(text) > MAX_TAPE_BYTES:
        raise ConfigError(
            f"{path}: the tape would have {len(text):,} bytes, more than {MAX_TAPE_BYTES:,}; probe a shorter task"
        )
    with new_file(path) as file:
        file.write(text)


def read_tape(path: Path) -> CellTape:
    """Return the tape in a file. Raises ConfigError if the file is no tape."""
    try:
        tape = _TAPE_ADAPTER.validate_json(content_of(path, MAX_TAPE_BYTES))
    except (OSError, ValidationError, RecursionError) as error:
        raise ConfigError(f"{path}: is no tape; record it by: bench probe --test CELL") from error
    if tape.version != TAPE_VERSION:
        raise ConfigError(f"{path}: is a tape of another version of bench; record it anew by: bench probe --test {tape.plan}")
    return tape


async def play_tape(settings: ProbeSettings, tape: CellTape) -> CellRun:
    """Play a cell from its tape: start the current agent, and inject the same fault.

    Raises:
        ConfigError: The agent cannot be started, or the tape does not hold the cell.
    """
    clean = clean_of(tape.clean_runs())
    cells = cells_of(clean, settings.subject, all_forms=True)
    cell = next((candidate for candidate in cells if candidate.plan == tape.plan), None)
    if cell is None:
        raise ConfigError(f"the tape of {tape.plan} does not hold this cell; record it anew by: bench probe --test {tape.plan}")
    settle, boxed = settings.subject.settle, settings.is_boxed
    stores = TapedStores.of(settings.stores, work_folder(), settle, frozenset(), b"", boxed=boxed)
    assert isinstance(stores, TapedStores)
    stores.tape = playing = PlayedTape(tape.calls)
    if settings.subject.functions is not None:  # the agent's process may open the stores that its functions use
        stores.absent = settings.paths_of_absent_stores
    hidden = Secrets.of(settings.subject, os.environ)  # secrets are removed as in the recording, so that texts stay equal
    async with Worker(_offline(settings.subject, tape), stores, PrivateFolder(work_folder(), "tape"), hidden) as worker:
        half_way = partial(is_half_way, clean)
        agent_run = name_calls(await worker.run(clean.masks, cell.fault, tape=playing, half_way=half_way), clean.calls)
    judged = judge(clean, agent_run, cell.call, cell.point, cell.form)
    if playing.left:
        judged = replace(judged, verdict="no_verdict", findings=(), why=f"it left the tape: {playing.left}")
    return run_of(cell.plan, 0, agent_run, judged)


def _offline(subject: Subject, tape: CellTape) -> Subject:
    """Return a subject in which the tape replaces servers, services and model."""
    script = str(Path(sys.modules[PlayedTape.__module__].__file__ or "").with_name("tape_server.py"))

    def command(server: str) -> tuple[str, ...]:
        return sys.executable, "-I", "-S", script, json.dumps(tape.handshakes.get(server, {}))

    configs = tuple(
        replace(config, servers=tuple(replace(server, command=command(server.name)) for server in config.servers))
        for config in subject.configs
    )
    services = tuple(replace(service, url=UNUSED_ADDRESS, command=()) for service in subject.services)
    model = subject.model and replace(subject.model, url=f"{UNUSED_ADDRESS}{subject.model.suffix}", script=())
    return replace(subject, configs=configs, services=services, model=model)


def _taped_calls(agent_run: AgentRun, hidden: Secrets) -> list[TapedCall]:
    """Return the calls of a run as they are on a tape, each with its response and the rows that it changed. Another writer's
    rows are a call of their own."""
    answers = {call.number: answer for call, answer in zip(agent_run.calls, agent_run.answers, strict=True)}
    rows: dict[int, tuple[RowDifference, ...]] = {}
    identities = {call.number: identity for call, identity, _ in agent_run.outer_calls()}
    for reading in agent_run.readings:
        numbers = sorted(reading.calls)
        are_equal = len({identities.get(number, "") for number in numbers}) == 1
        shares = _share_rows(reading.changed, len(numbers) if are_equal else 1)
        # one share for each call; a single share goes to the last call
        for number, share in zip(numbers[-len(shares) :], shares, strict=False):
            rows[number] = (*rows.get(number, ()), *share)
    others_rows = tuple(row for reading in agent_run.readings if reading.other for row in reading.changed)
    calls = [TapedCall(OTHER_WRITER, 1, "", "", others_rows)] if others_rows else []
    for call, identity, nth in agent_run.outer_calls():
        if raw := answers[call.number]:
            answer = _recorded_answer(call, raw, hidden)
            calls.append(TapedCall(identity, nth, call.tool, answer, rows.get(call.number, ())))
    return calls


def _share_rows(rows: Sequence[RowDifference], calls: int) -> list[list[RowDifference]]:
    """Return for each of several equal calls, which were in flight at the same time, the rows that it changed. If the rows
    cannot be shared evenly, return one list with all of them, for the last call.

    Args:
        rows: The rows that changed while the calls were in flight.
        calls: The number of calls.
    """
    shares: list[list[RowDifference]] = [[] for _ in range(calls)]
    groups = defaultdict[tuple[str, str, bool], list[RowDifference]](list)
    for row in rows:
        if row.before is None or row.after is None:
            groups[row.store, row.table, row.after is None].append(row)
            continue
        columns = dict(row.before)
        changed = {name: (columns.get(name), value) for name, value in row.after.items() if columns.get(name) != value}
        for nth, share in enumerate(shares, 1):
            before = dict(columns)
            for name, (old, new) in changed.items():
                if not (isinstance(old, int) and isinstance(new, int)) or (new - old) % calls:
                    return [list(rows)]
                columns[name] = old + (new - old) // calls * nth
            share.append(replace(row, before=before, after=dict(columns)))
    for group in groups.values():
        if len(group) % calls:
            return [list(rows)]
        for index, row in enumerate(sorted(group, key=lambda row: row.key)):
            shares[index % calls].append(row)
    return shares


def _recorded_answer(call: GatewayCall, raw: bytes, hidden: Secrets) -> str:
    """Return the bytes of a response without secrets, each byte as a character. An encoded body is decoded. Raises
    ConfigError if it cannot be decoded."""

    def blot(text: bytes) -> bytes:
        return hidden.blot(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    if not DOOR_KINDS[call.door_kind].opens:
        return blot(raw).decode("latin-1")
    body_start = raw.index(b"\r\n\r\n") + 4
    head = head_of(blot(raw[:body_start]))
    data, _ = framing_of(head, call.tool.partition(" ")[0]).feed(raw[body_start:])
    decoder = ContentDecoder(head.get("content-encoding"), MAX_TAPE_BYTES)
    plain = decoder.add(data)
    if not decoder.is_whole:
        raise ConfigError(f"--test: the answer of {call.tool} is packed so that nobody can look for secrets in it")
    if (content := blot(plain)) == data:
        return (head.raw + raw[body_start:]).decode("latin-1")
    return (head.without(*CONTENT_FIELDS).with_fields({"content-length": str(len(content))}).raw + content).decode("latin-1")


def _split_into_pieces(texts: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, tuple[int, ...]]]:
    """Return the distinct pieces of texts, and for each text the numbers of its pieces. A text is split between its
    messages."""
    pieces = dict[str, int]()
    numbers = {
        digest: tuple(pieces.setdefault(piece, len(pieces)) for piece in _between_messages.split(text))
        for digest, text in texts.items()
    }
    return tuple(pieces), numbers


_between_messages = re.compile(r"(?<=\},)(?=\{)")
