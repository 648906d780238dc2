"""A folder of packs that the user named is remembered for the run and the config; what a stranger sends chooses no folder."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from commands import bench, workplace

from bench.cli.remembered import packs_of, remember
from bench.cli.terminal import Terminal
from bench.common.paths import PACKS
from bench.record.files import MANIFEST
from bench.record.reading import read_trials

WORLDS = Path(__file__).parents[1] / "support" / "worlds"
CONFIG = """
name = "away"
scenarios = ["trips/all"]
architectures = ["state_machine"]
models = ["simulated"]
plans = ["none", "crash"]
repetitions = 1
seed = 3

[plan.crash]
faults = [{ point = "process", effect = "unacknowledged", tool = "cancel_flight", attempts = [1] }]

[model.simulated]
kind = "simulated"
"""


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder without packs, with a run of packs that stand elsewhere, in a path that must be quoted."""
    folder = tmp_path_factory.mktemp("away")
    packs = Path(shutil.copytree(WORLDS, folder.parent / "some packs"))
    (folder / "away.toml").write_text(CONFIG, encoding="utf-8")
    code, _, err = bench(folder, "run", "away.toml", "--scenarios", str(packs), "--name", "away")
    assert (code, err) == (0, "")
    return folder


def trial(folder: Path) -> str:
    """The id of a trial that a crash struck."""
    return next(record.id for record in read_trials(folder / "results" / "away") if record.plan == "crash")


def test_commands_on_a_run_need_not_be_told_again_where_its_packs_are(away: Path) -> None:
    told = f"packs: {away.parent / 'some packs'}, as you named them for results/away\n"
    for words in (
        ("trace", "away", "--trial", trial(away)),
        ("explain", "diagnose", "away", "--most", "1"),
        ("more", "regrade", "away"),
        ("report", "away"),
    ):
        code, out, err = bench(away, *words)
        assert (code in (0, 3), err) == (True, told), words
        assert "not here" not in out
    assert bench(away, "scorecard", "away")[0] == 0


def test_the_command_that_shrink_and_search_print_works_as_printed(away: Path) -> None:
    of = ("--plan", "crash", "--architecture", "state_machine", "--scenario", "trips/all", "--trials", "4")
    shrink, search = ("explain", "shrink", "away", "--trial", trial(away)), ("explain", "search", "away.toml", *of)
    for words in (shrink, search):
        code, out, err = bench(away, *words)
        assert code == 0, err
        [printed] = re.findall(r"see it break: bench (run .*)", out)
        code, out, err = bench(away, *shlex.split(printed))
        assert code == 0 and "done: " in out, err


def test_no_file_of_a_run_names_the_folder_of_its_packs(away: Path) -> None:
    for path in (away / "results" / "away").iterdir():
        assert b"some packs" not in path.read_bytes()


def test_a_run_that_somebody_sent_chooses_no_folder(away: Path, tmp_path: Path) -> None:
    shutil.copytree(away / "results" / "away", tmp_path / "results" / "away")
    manifest = tmp_path / "results" / "away" / MANIFEST
    manifest.write_text(manifest.read_text().replace("{", f'{{"packs": ["{WORLDS}"],', 1), encoding="utf-8")
    _, out, err = bench(tmp_path, "trace", "away", "--trial", trial(away))
    assert err == "" and "its pack is not here; bench trace --scenarios DIR names its folder" in out
    code, _, err = bench(tmp_path, "explain", "diagnose", "away")
    assert code == 2 and "name that with --scenarios DIR" in err


def test_what_is_given_now_counts_and_a_run_with_the_default_forgets(tmp_path: Path) -> None:
    place, err = tmp_path / "run", Terminal(stderr=True)
    remember(place, [WORLDS])
    assert packs_of([Path("other")], place, err) == [Path("other")]
    assert packs_of(PACKS, place, err) == [WORLDS.resolve()]
    remember(place, PACKS)
    assert packs_of(PACKS, place, err) == PACKS


@pytest.mark.parametrize("spoil", ["writable by others", "a folder that is gone", "no path", "nothing to write to"])
def test_what_cannot_be_trusted_is_not_used(spoil: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if spoil == "nothing to write to":
        (tmp_path / "state").write_text("a file")
    packs, place = tmp_path / "packs", tmp_path / "run"
    packs.mkdir()
    remember(place, [packs])
    for path in (tmp_path / "state").rglob("*"):
        if path.is_file() and spoil == "writable by others":
            path.chmod(0o666)
        elif path.is_file() and spoil == "no path":
            path.write_bytes(b"packs\0")
    if spoil == "a folder that is gone":
        packs.rmdir()
    assert packs_of(PACKS, place, Terminal(stderr=True)) == PACKS


def test_a_run_in_a_checkout_is_told_nothing_and_remembers_nothing(tmp_path: Path) -> None:
    workplace(tmp_path, repetitions=1)
    assert bench(tmp_path, "run", "configs/small.toml")[::2] == (0, "")
    _, _, err = bench(tmp_path, "trace", "small-simulated", "--trial", "static/none/#1")
    assert "packs:" not in err
