"""The forms in which other programs read a run: one entry each, for `bench export RUN --form NAME`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bench.analysis.frames import Run
from bench.errors import ResultsError
from bench.experiment.files import write_files
from bench.raised import words_of
from bench.registry import Part, Registry
from bench.render.escaping import escape_csv
from bench.render.labels import model_label


@dataclass(frozen=True)
class ExportPart(Part):
    """A form in which another program reads a run.

    files   yields the name and the content of each file; it writes nothing itself
    """

    files: Callable[[Run], Iterable[tuple[str, bytes]]]


def export(run: Run, part: ExportPart, to: Path) -> list[Path]:
    """Write a run in another form.

    Args:
        run: The run.
        part: The form.
        to: The folder to write into. It is made where there is none. A file of the same name is replaced.

    Returns:
        The paths of the files.

    Raises:
        ResultsError: A file cannot be written, or the code of another package fails.
    """
    try:
        files = dict(part.files(run))
    except Exception as error:
        if not part.package:
            raise
        raise ResultsError(f"the form '{part.name}' of {part.package} fails: {words_of(error)}") from error
    return write_files(to, files)


def _csv(run: Run) -> Iterator[tuple[str, bytes]]:
    """Each frame of `bench.load_run`. A simulated or recorded model is called so."""
    for name, frame in run.frames.items():
        if len(frame):
            labels = {model: model_label(run, model) for model in run.names("model")}
            shown = frame.assign(model=frame["model"].map(labels))
            texts = [column for column in shown if pd.api.types.is_string_dtype(shown[column])]
            safe = shown.assign(**{str(column): shown[column].map(escape_csv, na_action="ignore") for column in texts})
            yield f"{name}.csv", safe.to_csv(index=False, lineterminator="\n").encode()


OURS = (ExportPart("csv", _csv),)
EXPORTS = Registry("form of export", ExportPart, f"{__name__}:OURS", plural="exports")
