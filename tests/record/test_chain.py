"""Whatever happens to a line of a run's files is found, and the line is named."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import config, run
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.common.errors import ResultsError
from bench.record.chain import seal
from bench.record.files import GRADES, RESPONSES, TEXTS, TRIALS, link_at_end
from bench.record.reading import read_grades, read_records, read_responses, read_texts, read_trials
from bench.record.record import NewGrade, Regrade
from bench.record.store import append_grades
from bench.scenario import Grade

READERS: dict[str, Callable[[Path], Iterable[Any]]] = {
    TRIALS: read_records,
    RESPONSES: read_responses,
    GRADES: lambda folder: [*read_grades(folder).history, *read_grades(folder).grades.values()],
}
"""Each chained file and what reads it."""
FILES = st.sampled_from(sorted(READERS))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few trials, graded anew once."""
    folder = tmp_path_factory.mktemp("chain") / "run"
    trials = run(config({"kind": "simulated"}, repetitions=1, plans=["none", "early"]), folder)
    grades = [NewGrade(trial.id, "wrong", Grade(False, 0.5, {"half": 0.5}, "ümlaut")) for trial in trials]
    append_grades(folder, [Regrade("2026-01-01T00:00:00+00:00", "tiny", "9ade", len(grades), len(grades)), *grades])
    return folder


def lines_of(folder: Path, name: str) -> list[bytes]:
    return (folder / name).read_bytes().splitlines(keepends=True)


def damaged(whole: Path, name: str, content: bytes) -> Path:
    """A copy beside, with another content of one file; the same one for every example."""
    folder = whole.with_name("damaged")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    (folder / name).write_bytes(content)
    return folder


def named(folder: Path, name: str) -> int:
    """The line that is named as damaged."""
    with pytest.raises(ResultsError) as caught:
        list(READERS[name](folder))
    message = str(caught.value)
    match = re.search(rf"{re.escape(name)}: line (\d+) is damaged, or one before it is missing", message)
    assert match and "\n" not in message, message
    return int(match[1])


@settings(max_examples=150)
@given(FILES, st.data())
def test_any_byte_that_is_another_is_found_in_its_line(whole: Path, name: str, data: st.DataObject) -> None:
    content = bytearray((whole / name).read_bytes())
    at = data.draw(st.integers(0, len(content) - 2), "any but the last end of line, which would be a line cut short")
    line = content[:at].count(b"\n") + 1
    content[at] ^= data.draw(st.integers(1, 255), "the bits that flip")
    assert named(damaged(whole, name, bytes(content)), name) == line


@settings(max_examples=40)
@given(FILES, st.data())
def test_a_line_that_is_missing_is_found_in_the_one_behind_it(whole: Path, name: str, data: st.DataObject) -> None:
    lines = lines_of(whole, name)
    at = data.draw(st.integers(0, len(lines) - 2))
    assert named(damaged(whole, name, b"".join(lines[:at] + lines[at + 1 :])), name) == at + 1


@settings(max_examples=40)
@given(FILES, st.data())
def test_a_line_that_stands_twice_is_found_where_it_stands_again(whole: Path, name: str, data: st.DataObject) -> None:
    lines = lines_of(whole, name)
    at = data.draw(st.integers(0, len(lines) - 1))
    again = data.draw(st.integers(at + 1, len(lines)))
    assert named(damaged(whole, name, b"".join([*lines[:again], lines[at], *lines[again:]])), name) == again + 1


@settings(max_examples=40)
@given(FILES, st.data())
def test_lines_in_another_order_are_found_at_the_first_that_is_out_of_place(
    whole: Path, name: str, data: st.DataObject
) -> None:
    lines = lines_of(whole, name)
    order = data.draw(st.permutations(range(len(lines))).filter(lambda order: order != sorted(order)))
    first = next(place for place, number in enumerate(order) if place != number)
    assert named(damaged(whole, name, b"".join(lines[number] for number in order)), name) == first + 1


@settings(max_examples=60)
@given(FILES, st.data())
def test_a_file_cut_short_in_its_last_line_loses_that_line_alone(whole: Path, name: str, data: st.DataObject) -> None:
    lines = lines_of(whole, name)
    kept = data.draw(st.integers(0, len(lines[-1]) - 1))
    folder = damaged(whole, name, b"".join(lines[:-1]) + lines[-1][:kept])
    assert list(READERS[name](folder)) == list(READERS[name](whole))[:-1]


def test_a_line_of_another_run_is_found(whole: Path, tmp_path: Path) -> None:
    run(config({"kind": "simulated"}, repetitions=1, plans=["none", "early"], seed=12), tmp_path / "other")
    for name in (TRIALS, RESPONSES):
        lines = lines_of(whole, name)
        lines[2] = lines_of(tmp_path / "other", name)[2]
        assert named(damaged(whole, name, b"".join(lines)), name) == 3


@settings(max_examples=60)
@given(st.data())
def test_a_text_that_does_not_fit_its_digest_is_found_in_its_line(whole: Path, data: st.DataObject) -> None:
    content = (whole / TEXTS).read_bytes()
    texts = list(re.finditer(rb'"text": "', content))
    start = texts[data.draw(st.integers(0, len(texts) - 1))].end()
    at = start + data.draw(st.integers(0, content.index(b"\n", start) - start - 3))
    other = bytes([content[at] ^ 1])
    folder = damaged(whole, TEXTS, content[:at] + other + content[at + 1 :])
    with pytest.raises(ResultsError, match=rf"texts\.jsonl: line {content[:at].count(10) + 1} is damaged"):
        read_texts(folder)


def test_grades_made_anew_stand_in_the_place_of_the_first_ones(whole: Path) -> None:
    assert {trial.outcome for trial in read_trials(whole)} == {"wrong"}
    (regraded,) = read_grades(whole).history
    assert regraded.answers == len(list(read_trials(whole)))


@pytest.mark.parametrize("cut", [b"", b'{"id":"cut off', b"x" * 2**21])
def test_the_link_at_the_end_is_that_of_the_last_whole_line(tmp_path: Path, cut: bytes) -> None:
    path, link = tmp_path / TRIALS, ""
    assert link_at_end(written(path, cut)) == ""
    lines = []
    for line in (b'{"short":1}', b'{"long":"%s"}' % (b"y" * 2**21)):
        content, link = seal(line, link)
        lines.append(content)
        assert link_at_end(written(path, b"".join(lines) + cut)) == link


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
