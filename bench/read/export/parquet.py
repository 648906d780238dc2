"""The form of export `parquet`: a Parquet file for each frame."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from bench.read.analysis.frames import Run
from bench.read.export.csv import frames_of


def files(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of a Parquet file for each frame that has rows."""
    for name, frame in frames_of(run):
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(), file, compression="zstd")
        yield f"{name}.parquet", file.getvalue()
