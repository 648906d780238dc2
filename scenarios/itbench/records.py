"""Read the files of a snapshot: Prometheus' alerts as JSON, and tab-separated tables of OpenTelemetry records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.common.errors import PackError

Json = dict[str, Any]
CHUNK = 20_000
"""Rows that are held at a time; a table may have gigabytes."""


def alert_dumps(folder: Path) -> Iterator[list[Json]]:
    """Yield the alerts of each dump, by time. A dump is the response of Prometheus' /api/v1/alerts."""
    files = [*folder.glob("alerts/*.json"), *folder.glob("alerts_*.json")]
    for path in sorted(files, key=lambda path: path.name):
        try:
            dump = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise PackError(f"{path}: is no JSON: {' '.join(str(error).split())}; fetch it anew") from error
        data = dump.get("data", dump) if isinstance(dump, dict) else dump
        alerts = data.get("alerts") if isinstance(data, dict) else data
        if not isinstance(alerts, list):
            raise PackError(f"{path}: has no list of alerts, as Prometheus gives them; fetch it anew")
        yield [alert for alert in alerts if isinstance(alert, dict)]


def table(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield these columns of each row; "" for a column that the table does not have. Yields nothing if there is no such
    file."""
    if not path.is_file():
        return
    import pandas as pd  # noqa: PLC0415  who lists packs should not wait for it

    try:
        chunks = pd.read_csv(
            path, sep="\t", dtype=str, keep_default_na=False, encoding_errors="replace",
            usecols=lambda name: name in columns, chunksize=CHUNK,
        )  # fmt: skip
        for chunk in chunks:
            yield from chunk.reindex(columns=list(columns), fill_value="").itertuples(index=False, name=None)
    except (OSError, ValueError) as error:
        raise PackError(f"{path}: is no table separated by tabs: {' '.join(str(error).split())}; fetch it anew") from error


def objects(path: Path) -> Iterator[tuple[str, Json]]:
    """Yield (time, Kubernetes object) of each row whose body contains an object. A row of a watch wraps the object."""
    for time, body in table(path, ("Timestamp", "Body")):
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            continue  # a collector writes lines of its own as well
        value = value.get("object", value) if isinstance(value, dict) else None
        if isinstance(value, dict):
            yield clock(time), value


def child(value: Json, name: str) -> Json:
    """Return a JSON object within an object; empty if it is no object."""
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def clock(text: object) -> str:
    """Return `2025-12-15T17:46:18.123Z` as `2025-12-15 17:46:18`. All files then have one form, so that times can be compared
    as texts."""
    return str(text or "").replace("T", " ")[:19]


def one_line(text: object, most: int) -> str:
    """Return a text on one line, with its middle left out if it is longer than `most` characters."""
    line = " ".join(str(text or "").split())
    half = (most - 5) // 2
    return line if len(line) <= most else f"{line[:half]} ... {line[-half:]}"
