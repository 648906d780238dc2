"""Makes the missing runs of a probe: workers run the agent on copies of the stores, and each run is recorded when it ends."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress
from pathlib import Path

from bench.common.errors import OriginalChanged
from bench.common.files import content_of, new_file
from bench.common.paths import state_folder
from bench.probe.run.probe import Probe, ProbeRequest
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.settings import ProbeSettings
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.stores import Stores
from bench.probe.run.writing import CellRun, ProbeWriter
from bench.record.events import Answered, Called
from bench.record.reading import read_texts

DIGEST_KEY_BYTES = 32


def work_folder() -> Path:
    """Return the folder for copies: the system's folder for temporary files, or the folder that the variable TMPDIR names."""
    return Path(tempfile.gettempdir())


async def run_probe(
    settings: ProbeSettings, hidden: Secrets, writer: ProbeWriter, request: ProbeRequest
) -> AsyncGenerator[CellRun, None]:
    """Make the missing runs, and yield each run of the agent after it is recorded. If you stop early, close this iterator.

    Raises:
        ConfigError: The subject cannot be probed.
        ResultsError: The run's folder cannot be written.
    """
    key = _digest_key()

    def worker(number: int) -> Worker:
        """Return a new worker with its own copies of the stores."""
        subject, boxed = settings.subject, settings.is_boxed
        stores = Stores.of(settings.stores, work_folder(), subject.settle, subject.hide, key, boxed=boxed)
        return Worker(subject, stores, PrivateFolder(work_folder(), f"agent{number}"), hidden, key=key)

    probe = Probe(settings.subject, worker, request, _recorded_runs(writer))
    writer.begin()
    detail, complete, harmed = "it was stopped", False, False
    try:
        with hidden.removed_from_errors():
            async with aclosing(probe.runs()) as runs:
                async for run in runs:
                    yield writer.add(run)
        planned = {cell.plan for cell in probe.cells}
        complete = planned <= {*writer.plans}
        detail = "all cells were run" if complete else "the budget was reached"
    except Exception as error:
        detail, harmed = hidden.blot(str(error)), isinstance(error, OriginalChanged)
        raise
    finally:
        writer.end(detail, complete, harmed)


def _recorded_runs(writer: ProbeWriter) -> Iterator[CellRun]:
    """Yield the recorded runs of earlier sessions, in the form in which the probe yields runs."""
    texts = read_texts(writer.folder) if writer.recorded else {}
    for record in writer.recorded:
        events = [event for event in record.events if not isinstance(event, Called | Answered | dict)]
        yield CellRun(record.plan, record.repetition, events, texts, record.api_seconds + record.framework_seconds)


def _digest_key() -> bytes:
    """Return the user's own key for digests of hidden values. It is made once, since equal values must have equal digests when
    a probe is continued. If it cannot be stored, each session has its own key."""
    new_key = secrets.token_bytes(DIGEST_KEY_BYTES)
    with suppress(OSError, RuntimeError):
        path = state_folder() / "probe-key"
        if path.is_file():
            return content_of(path, DIGEST_KEY_BYTES)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with new_file(path, 0o600) as file:
            file.write(new_key)
    return new_key
