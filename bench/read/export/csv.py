"""The form of export `csv`: a CSV file for each frame of `bench.load_run`."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from bench.read.analysis.frames import Run
from bench.read.render.escaping import escape_csv
from bench.read.render.labels import model_label


def frames_of(run: Run) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name and the rows of each frame that has rows. The column `model_label`, after `model`, marks a simulated or a
    recorded model."""
    labels = {model: model_label(run, model) for model in run.names("model")}
    for name, frame in run.frames.items():
        if len(frame):
            with_label = frame.copy()
            with_label.insert(list(frame).index("model") + 1, "model_label", frame["model"].map(labels))
            yield name, with_label


def files(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of a CSV file for each frame. A text that a spreadsheet would run as a formula is escaped."""
    for name, frame in frames_of(run):
        text_columns = [column for column in frame if pd.api.types.is_string_dtype(frame[column])]
        escaped = frame.assign(**{str(column): frame[column].map(escape_csv, na_action="ignore") for column in text_columns})
        yield f"{name}.csv", escaped.to_csv(index=False, lineterminator="\n").encode()
