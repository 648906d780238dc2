"""The reading of files of trials that other people recorded. The format is recognized among the known formats."""

from __future__ import annotations

import hashlib
import lzma
import zipfile
import zlib
from contextlib import closing
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.common.bounds import is_too_deep
from bench.common.errors import ResultsError, one_line
from bench.common.wording import first_violation
from bench.elsewhere.formats import inspect_logs
from bench.elsewhere.formats.part import FORMATS
from bench.elsewhere.runs.content import MAX_BYTES, bytes_of, json_of
from bench.elsewhere.trials import RecordedRun
from bench.record.archive import BLOCK, unpack

MAX_MEMBERS = 10_000
"""The most files in an archive."""


SIMULATION_MEMBERS = frozenset({"messages", "termination_reason"})
"""The JSON members by which a simulation of tau2-bench is recognized, in a file that is a list of simulations."""


def read_recorded(path: Path) -> RecordedRun | None:
    """Read a file of trials.

    Args:
        path: A file of tau-bench, tau2-bench, SWE-agent, mini-SWE-agent, or Inspect.

    Returns:
        The trials, or None if the file is JSON in another format.

    Raises:
        ResultsError: The file cannot be read, is cut, or contradicts itself. The line says where.
    """
    content = bytes_of(path)
    try:
        run = _read_archive(str(path), content) if content.startswith(b"PK") else _read_json(str(path), content)
    except ValidationError as error:
        raise ResultsError(f"{path}: is not read: {one_line(first_violation(error).line, 300)}") from error
    return run and replace(run, sha256=hashlib.sha256(content).hexdigest())


def recorded_run(path: Path) -> RecordedRun:
    """Return the trials of a file. Raises ResultsError if `read_recorded` does, or if the file is in another format."""
    run = read_recorded(path)
    if run is None:
        raise ResultsError(
            f"{path}: holds no trials in a known format; of a trace, `bench import FILE --name NAME` makes a pack"
        )
    return run


def _read_json(file_name: str, content: bytes) -> RecordedRun | None:
    """Return the trials of a JSON file; None if its format is unknown."""
    value = json_of(file_name, content)
    first_value = (value[0] if value else None) if isinstance(value, list) else value
    if not isinstance(first_value, dict):
        return None
    if isinstance(value, list) and first_value.keys() >= SIMULATION_MEMBERS:
        value, first_value = {"simulations": value}, {"simulations": value}
    for form in FORMATS:
        if first_value.keys() >= form.members and form.each == isinstance(value, list):
            if is_too_deep(value):
                raise ResultsError(f"{file_name}: is not read: it is nested too deeply")
            return form.read_trials(file_name, value)
    return None


def _read_archive(file_name: str, content: bytes) -> RecordedRun | None:
    """Return the trials of an Inspect log; None if the archive is something else. The number and the unpacked size of the files
    in the archive are checked before any file is unpacked."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
            if len(members) > MAX_MEMBERS or sum(info.file_size for info in members) > MAX_BYTES:
                raise ResultsError(
                    f"{file_name}: is not read: it unpacks to more than {MAX_BYTES:,} bytes or {MAX_MEMBERS:,} files"
                )
            names = [info.filename for info in members]
            if "header.json" not in names:
                return None
            header = inspect_logs.InspectHeader.model_validate(_member(file_name, archive, "header.json"))
            sample_names = sorted(name for name in names if name.startswith("samples/") and name.endswith(".json"))
            samples = [inspect_logs.InspectSample.model_validate(_member(file_name, archive, name)) for name in sample_names]
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, OSError, EOFError) as error:
        raise ResultsError(
            f"{file_name}: the archive is cut or packed in an unknown way: {one_line(str(error), 120)}"
        ) from error
    return inspect_logs.inspect_run(file_name, header, samples)


def _member(archive_name: str, archive: zipfile.ZipFile, name: str) -> Any:
    """Return the JSON value of a file in an archive."""
    with closing(unpack(archive, archive.getinfo(name))) as file:
        content = b"".join(iter(partial(file.read1, BLOCK), b""))
    value = json_of(f"{archive_name}: {name}", content)
    if is_too_deep(value):
        raise ResultsError(f"{archive_name}: {name} is nested too deeply")
    return value
