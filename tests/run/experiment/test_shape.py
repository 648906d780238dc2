"""Whatever a run's folder holds, its readers read it or refuse it in one line that names the file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config, run
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.common.errors import BenchError, ResultsError
from bench.read.analysis.frames import load_run
from bench.record.chain import seal, unseal
from bench.record.files import MANIFEST, RESPONSES, TEXTS, TRIALS
from bench.record.reading import read_manifest, read_responses, read_texts
from bench.record.store import write_manifest
from bench.record.verify import verify
from bench.run.experiment.recording import load_recording

DEEP = "[" * 10**6
HOSTILE = (
    "NaN",
    "1e309",
    "-Infinity",
    str(2**63),
    "1" * 5000,
    "-1",
    "0.5",
    '"\\ud800"',
    '"x"',
    "null",
    "[]",
    "{}",
    "[[]]",
    DEEP,
)
"""JSON, and what passes for it, in the place of a value."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
).map(json.dumps)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shape") / "run"
    run(config({"kind": "simulated"}, repetitions=1, plans=["none", "early"]), folder)
    return folder


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value in a JSON value."""
    yield before
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield from places(child, (*before, key))


def with_text_at(value: Any, place: tuple[Any, ...], text: str) -> bytes:
    """JSON in which this text stands in the place of a value."""
    if not place:
        return text.encode()
    whole = json.loads(json.dumps(value))
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = "\0HERE"
    return json.dumps(whole).replace(json.dumps("\0HERE"), text).encode()


def read_all(folder: Path) -> None:
    """Read it as all commands do; a refusal is one line."""
    for read in (
        lambda: load_run(folder),
        lambda: list(read_responses(folder)),
        lambda: read_texts(folder),
        lambda: load_recording(folder, "small", 11, 1),
        lambda: verify(folder),
    ):
        try:
            read()
        except BenchError as error:
            assert "\n" not in str(error) and len(str(error)) < 1000 and str(folder) in str(error), str(error)[:500]


def crafted(whole: Path, name: str, data: st.DataObject) -> Path:
    folder = whole.with_name("crafted")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    text = data.draw(st.sampled_from(HOSTILE) | JSON)
    if name == MANIFEST:
        manifest = json.loads((whole / name).read_text())
        place = data.draw(st.sampled_from(list(places(manifest))))
        (folder / name).write_bytes(with_text_at(manifest, place, text))
        return folder
    lines = (whole / name).read_bytes().splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 1))
    link, again = "", ""
    made = []
    for number, line in enumerate(lines):
        content = line.rstrip(b"\n")
        if name != TEXTS:
            content, link = unseal(line, link)
        if number == at:
            value = json.loads(content)
            content = with_text_at(value, data.draw(st.sampled_from(list(places(value)))), text)
        if name != TEXTS:
            content, again = seal(content, again)
            content = content.rstrip(b"\n")
        made.append(content + b"\n")
    (folder / name).write_bytes(b"".join(made))
    return folder


@settings(deadline=None)
@given(st.sampled_from([MANIFEST, MANIFEST, TRIALS, TRIALS, RESPONSES, TEXTS]), st.data())
def test_a_value_that_no_run_writes_is_read_or_refused_in_one_line(whole: Path, name: str, data: st.DataObject) -> None:
    read_all(crafted(whole, name, data))


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (("config",), "[]"),
        (("models",), "[]"),
        (("models", "small"), "null"),
        (("scenarios", "tiny", "subtasks"), "3"),
        (("config", "repetitions"), "1e309"),
        (("config", "seed"), '"x"'),
        (("models", "small", "price_in"), "1e308"),
        (("scenarios", "tiny", "baseline"), '{"score": 1e308, "solved": 1, "of": 1}'),
        (("config", "repetitions"), str(2**63)),
        (("name",), '"\\ud800"'),
        ((), DEEP),
        ((), "1" * 5000),
    ],
)
def test_a_manifest_of_another_shape_is_refused_in_one_line(whole: Path, tmp_path: Path, place: Any, text: str) -> None:
    manifest = json.loads((whole / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_bytes(with_text_at(manifest, place, text))
    with pytest.raises(ResultsError) as caught:
        read_manifest(tmp_path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_a_manifest_that_could_not_be_read_again_is_never_written(whole: Path, tmp_path: Path) -> None:
    manifest = read_manifest(whole)
    for value in (float("nan"), float("inf"), 2**64, "\ud800"):
        with pytest.raises(ResultsError, match="could not be read again"):
            write_manifest(tmp_path, manifest.model_copy(update={"prepared": {"more": value}}))
    assert list(tmp_path.iterdir()) == []
