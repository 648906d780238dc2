"""A run that other code recorded: complete, it is never refused; with trials missing, it goes on only if the user asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import bench, workplace

from bench.read.analysis.frames import load_run
from bench.record.files import MANIFEST
from bench.record.reading import read_manifest, read_trials
from bench.record.verify import verify

RUN = ("run", "configs/small.toml")
MORE = (*RUN, "--repetitions", "3")
OPTION = "--go-on-with-other-code"
EARLIER = "0123456789abcdef0123"


def refused(ended: tuple[int, str, str]) -> str:
    """The one line of a command that refused."""
    code, _, err = ended
    assert code == 2 and err.count("\n") == 1, err
    return err


def plain(text: str) -> str:
    """A text without its line ends: a terminal breaks lines."""
    return " ".join(text.split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place with a complete run of 8 trials, by code with another digest, under another version of pydantic."""
    workplace(tmp_path)
    assert bench(tmp_path, *RUN)[0] == 0
    path = tmp_path / "results" / "small-simulated" / MANIFEST
    manifest = json.loads(path.read_text())
    assert manifest["code"]["digest_of"] == "syntax"
    manifest["code"] = {"version": "0.1", "digest": EARLIER}
    manifest["packages"]["pydantic"] = "1.0"
    path.write_text(json.dumps(manifest))
    return path.parent


def test_a_complete_run_by_other_code_is_no_error_and_what_differs_is_said(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for words in (RUN, (*RUN, OPTION), (*RUN, "--report")):
        code, out, err = bench(folder.parents[1], *words)
        assert (code, err) == (0, "") and "all 8 trials are recorded, and nothing is run" in out
        assert "another version of the code of bench, another version of the package 'pydantic' (1.0, here" in out
        assert f"version 0.1, no commit known, digest {EARLIER} of its bytes, and this is version" in out
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert bench(folder.parents[1], "verify", "small-simulated")[0] == 0


def test_missing_trials_are_refused_with_their_number_and_the_option(folder: Path) -> None:
    line = refused(bench(folder.parents[1], *MORE))
    assert "4 of 12 trials are missing: --go-on-with-other-code runs them by this code and marks the run" in line
    assert "another version of the code of bench" in line and f"digest {EARLIER} of its bytes" in line
    assert not read_manifest(folder).other_code and len(list(read_trials(folder))) == 8


def test_going_on_runs_only_what_is_missing_and_every_page_says_so(folder: Path) -> None:
    place = folder.parents[1]
    code, out, _ = bench(place, *MORE, OPTION, "--report")
    assert code == 0 and "4 of 12 trials are left to this code" in out and "12 trials, 8 of them recorded already" in out
    [mark] = read_manifest(folder).other_code
    assert (mark.records, mark.code.digest_of) == (8, "syntax") and mark.code.digest != EARLIER
    assert len(list(read_trials(folder))) == 12 and not verify(folder).defects
    note = f"the first trials by {EARLIER}; from record 9 on by {mark.code.digest}."
    assert note in plain(out) and note in (place / "reports" / "small-simulated" / "report.md").read_text().replace("\\", "")
    assert note in plain(bench(place, "compare", "small-simulated", "small-simulated")[1])
    code, out, _ = bench(place, *MORE)
    assert code == 0 and "12 trials, 12 of them recorded already" in out, "the code that went on is not other code"


def test_different_code_is_never_merged(folder: Path) -> None:
    place = folder.parents[1]
    bench(place, *MORE, OPTION)
    line = refused(bench(place, "more", "merge", "small-simulated", "small-simulated", "--name", "both"))
    assert "other code went on with it, and different code is not merged" in line


def test_runs_by_different_code_stand_apart_in_a_report_even_where_they_share_no_trial(folder: Path) -> None:
    place = folder.parents[1]
    code, _, err = bench(place, *RUN, "--repetitions", "3-3", "--name", "later")
    assert (code, err) == (0, "")
    assert set(load_run(place / "results" / "later").trials["repetition"]) == {3}
    assert bench(place, "report", "small-simulated", "later")[0] == 0
    report = (place / "reports" / "small-simulated+later" / "report.md").read_text()
    assert "static (later)" in report.replace("\\", "") and "These runs were made by different code" in report
