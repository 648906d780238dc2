"""The form `parquet`: each frame as a Parquet file, with a Croissant file and a data card, ready to publish.

Croissant is MLCommons' description of a data set: its files by digest, and each column by type. The card says in words what the
rows are, where they come from and what they do not show. Neither names a licence: the data belong to their author.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import mlcroissant as mlc
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bench.read.analysis.arms import shortfalls
from bench.read.analysis.frames import Run
from bench.read.export.csv import frames_of

ROWS: Mapping[str, str] = {
    "trials": "a trial",
    "calls": "a call of the model",
    "faults": "a planned fault",
    "recoveries": "a failure that told of faults",
    "replies": "a reply that was judged",
    "waits": "a wait",
    "steps": "a step of a procedure that began",
    "tool_calls": "a call of a world's tool",
}
CARD = """---
pretty_name: {name}
tags: [llm-agents, fault-injection, reliability]
configs:
{splits}
---

# {run.name}

{subject}
{simulated}{shortfalls}
Each row of `trials.parquet` is one trial: a task, an architecture, a model, a fault plan and a repetition. The column `trial`
joins the files.

| file | a row is | rows | columns |
| --- | --- | --- | --- |
{rows}

## Where it comes from

- It was made by recovery-bench {code.version}, commit {code.commit}, with the seed {run.config.seed}.
- It was begun on {run.manifest.started}.
- The rows were read from files with these digests: {run.sources}.
- Tokens are counted by cl100k_base, and `*_usage` are the provider's own count. `cost` is in dollars.{notes}

## What it does not show

- Trials of one task are not independent: intervals are to be clustered by `instance`.
- A trial that ended in an error stands in the files with the `outcome` `error`, and says nothing about its model.
- Prompts and replies are not in these files. `bench export {run.name} --form atif` writes them.
"""


def files(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield the card, the Croissant file, and each frame."""
    frames = dict(frames_of(run))
    packed = {f"{name}.parquet": _parquet(frame) for name, frame in frames.items()}
    yield "README.md", _card(run, frames).encode()
    yield "croissant.json", json.dumps(_croissant(run, frames, packed), indent=1, ensure_ascii=False).encode() + b"\n"
    yield from packed.items()


def _parquet(frame: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(), file, compression="zstd")
    return file.getvalue()


def _croissant(run: Run, frames: Mapping[str, pd.DataFrame], packed: Mapping[str, bytes]) -> dict[str, Any]:
    version, started = run.manifest.code.version, run.manifest.started
    metadata = mlc.Metadata(
        name=run.name,
        description=_subject(run),
        cite_as=f"{run.name}, a run of recovery-bench {version}",
        version=version if version[:1].isdigit() else "0.0.0",
        date_published=datetime.fromisoformat(started) if started else None,
        distribution=[
            mlc.FileObject(
                id=name,
                name=name,
                content_url=name,
                content_size=f"{len(content)} B",
                encoding_formats=[mlc.EncodingFormat.PARQUET],
                sha256=hashlib.sha256(content).hexdigest(),
            )
            for name, content in packed.items()
        ],
        record_sets=[
            mlc.RecordSet(
                id=name,
                name=name,
                description=f"Each row is {ROWS.get(name, name)}.",
                fields=[_field(name, str(column), frame[column]) for column in frame],
            )
            for name, frame in frames.items()
        ],
    )
    described: dict[str, Any] = metadata.to_json()
    return described


def _field(frame: str, column: str, values: pd.Series[Any]) -> mlc.Field:
    types, kind = pd.api.types, mlc.DataType.TEXT
    if types.is_bool_dtype(values):
        kind = mlc.DataType.BOOL
    elif types.is_integer_dtype(values):
        kind = mlc.DataType.INTEGER
    elif types.is_float_dtype(values):
        kind = mlc.DataType.FLOAT
    source = mlc.Source(file_object=f"{frame}.parquet", extract=mlc.Extract(column=column))
    return mlc.Field(id=f"{frame}/{column}", name=column, data_types=[kind], source=source)


def _subject(run: Run) -> str:
    packs, models = ", ".join(run.names("scenario")), ", ".join(_marked(run, model) for model in run.names("model"))
    return f"{len(run.trials):,} trials of the run {run.name} of recovery-bench: {packs}, answered by {models}."


def _marked(run: Run, model: str) -> str:
    return f"{model} (SIMULATED)" if run.is_simulated(model) else model


def _card(run: Run, frames: Mapping[str, pd.DataFrame]) -> str:
    """Return a data card as the Hugging Face Hub reads it: a YAML head, then text."""
    shapes = {name: f"| {ROWS.get(name, name)} | {len(frame):,} | {len(frame.columns)} |" for name, frame in frames.items()}
    answered = "A simulated model answers from the packs' references: its tokens and seconds are not those of a model.\n"
    return CARD.format(
        shortfalls="".join(f"{line}\n" for line in shortfalls(run)),
        name=json.dumps(run.name),
        run=run,
        code=run.manifest.code,
        subject=_subject(run),
        splits="\n".join(f"- config_name: {name}\n  data_files: {name}.parquet" for name in frames),
        rows="\n".join(f"| `{name}.parquet` {shape}" for name, shape in shapes.items()),
        simulated=answered if any(map(run.is_simulated, run.names("model"))) else "",
        notes="".join(f"\n- {note}" for note in run.notes),
    )
