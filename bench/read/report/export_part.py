"""The registry entries of the forms in which other programs read a run: `bench export RUN --form NAME`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.common.errors import ConfigError, ResultsError
from bench.common.raised import type_and_message
from bench.common.registry import Part, Registry
from bench.read.analysis.frames import Run
from bench.record.files import write_files

Files = Callable[[Run], Iterable[tuple[str, bytes]]]
"""A function that yields the name and content of each file of a run's export."""


@dataclass(frozen=True)
class ExportPart(Part):
    """A form in which another program reads a run.

    files   a function that yields each file's name and content and writes nothing, or its import path
    """

    files: Files | str


def export(run: Run, part: ExportPart, to: Path) -> list[Path]:
    """Write a run in another form.

    Args:
        run: The run to write.
        part: The entry of the form in which it is written.
        to: The folder to write into, made if missing. A file of the same name is replaced.

    Returns:
        The paths of the files.

    Raises:
        ConfigError: The form's packages are missing.
        ResultsError: A file cannot be written, or the code of another package fails.
    """
    try:
        files: Files = part.load(part.files) if isinstance(part.files, str) else part.files
    except ModuleNotFoundError as error:
        if not part.extra or str(error.name).startswith("bench"):
            raise  # no extra of a package would install the missing module
        raise ConfigError(f"the form '{part.name}' needs: pip install '{part.package or '.'}[{part.extra}]'") from error
    try:
        contents = dict(files(run))
    except Exception as error:
        if not part.package:
            raise  # a bug of ours
        raise ResultsError(f"the form '{part.name}' of {part.package} fails: {type_and_message(error)}") from error
    return write_files(to, contents)


EXPORTS = Registry("form of export", ExportPart, plural="exports")
