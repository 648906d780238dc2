"""An archived run is read as its folder was, is written to by nothing, and a damaged or hostile archive is one line."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from commands import UNDRAWN
from commands import bench as command
from experiment_runs import config, run
from hypothesis import given, settings
from hypothesis import strategies as st

import bench
from bench.errors import ResultsError
from bench.experiment.archive import LARGEST, MEMBERS, archive, member
from bench.experiment.files import MANIFEST, TRIALS
from bench.experiment.reading import read_manifest, read_trials
from bench.experiment.store import RunWriter, writing
from bench.experiment.verify import sources, verify


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of eight trials."""
    folder = tmp_path_factory.mktemp("results") / "run-1.5b"
    run(config({"kind": "simulated"}, repetitions=2, plans=["none", "early"]), folder)
    return folder


@pytest.fixture
def archived(folder: Path, tmp_path: Path) -> Path:
    """The folder of the same run, of which only the archive is there."""
    copy = tmp_path / "results" / folder.name
    shutil.copytree(folder, copy)
    archive(copy)
    shutil.rmtree(copy)
    return copy


@pytest.fixture(scope="module")
def packed_run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    copy = tmp_path_factory.mktemp("packed") / "run"
    shutil.copytree(folder, copy)
    return archive(copy).read_bytes()


def zip_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.zip")


def test_an_archived_run_gives_the_frames_that_its_folder_gave(folder: Path, archived: Path) -> None:
    live, again = bench.load_run(folder), bench.load_run(archived)
    for frame in ("trials", "calls", "faults", "recoveries", "replies", "waits"):
        pd.testing.assert_frame_equal(getattr(live, frame), getattr(again, frame))
    assert again.sources == live.sources == sources(archived) and verify(archived) == verify(folder)


def test_the_same_run_makes_the_same_archive(folder: Path, archived: Path, tmp_path: Path) -> None:
    later = tmp_path / "later"
    shutil.copytree(folder, later, copy_function=shutil.copy)
    assert archive(later).read_bytes() == zip_of(archived).read_bytes()


def test_commands_read_an_archived_run_by_name_by_folder_and_by_file(archived: Path) -> None:
    home, digests = archived.parent.parent, sources(archived)
    for name in (archived.name, f"results/{archived.name}", f"results/{archived.name}.zip"):
        code, out, _ = command(home, "verify", name)
        assert (code, out.count("\n")) == (0, 1) and digests in out
    assert command(home, "verify")[:1] == (0,)
    code, _, err = command(home, "report", archived.name, **UNDRAWN)
    assert (code, err) == (0, "") and (home / "reports" / archived.name / "report.md").exists()


def test_a_folder_beside_its_archive_is_read_and_an_archive_is_not_made_twice(archived: Path, folder: Path) -> None:
    shutil.copytree(folder, archived)
    (archived / TRIALS).write_bytes(b"")
    assert list(read_trials(archived)) == []
    with pytest.raises(ResultsError, match="exists already; remove it"):
        archive(archived)


def test_what_would_write_to_an_archived_run_is_refused_in_one_line(archived: Path) -> None:
    refused = "is an archived recording, which no command writes to; give another --name, or unpack it into"
    with pytest.raises(ResultsError, match=refused):
        RunWriter(archived, read_manifest(archived))
    with pytest.raises(ResultsError, match=refused), writing(archived):
        pass
    code, _, err = command(archived.parent.parent, "regrade", archived.name)
    assert code == 2 and refused in err and err.count("\n") == 1
    assert not archived.exists()


def packed(*members: tuple[str, bytes]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in members:
                file.writestr(name, content)

    return write


def changes_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)


def looks_far_back(path: Path) -> None:
    content = bytearray(path.read_bytes())
    at = 30 + len(MANIFEST) + 5
    content[at : at + 4] = (2**32 - 1).to_bytes(4, "little")
    path.write_bytes(content)


def lists_much(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for number in range(40_000):
            file.writestr(f"{number:030}", b"")


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no zip": (lambda path: path.write_bytes(b"PK" * 500), "is not a whole archive of a run"),
    "nothing": (lambda path: path.write_bytes(b""), "is not a whole archive of a run"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-30]), "is not a whole archive of a run"),
    "another file": (packed((MANIFEST, b"{}"), ("../../evil", b"")), "holds '../../evil', which no run writes"),
    "long list": (lists_much, "is not a whole archive of a run"),
    "no manifest": (packed((TRIALS, b"")), "holds no run (no manifest.json)"),
    "memory": (looks_far_back, "needs more memory than a run's archive does"),
    "a byte changed": (changes_a_byte, "cannot be read: "),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_damaged_or_hostile_archive_is_one_line(archived: Path, case: str) -> None:
    write, words = HOSTILE[case]
    write(zip_of(archived))
    code, out, err = command(archived.parent.parent, "verify", archived.name)
    assert (code, err, out.count("\n")) == (1, "", 1) and words in out
    code, _, err = command(archived.parent.parent, "report", archived.name, **UNDRAWN)
    assert code == 2 and words in err and err.count("\n") == 1


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(archived: Path) -> None:
    packed(*((name, b"") for name in MEMBERS))(zip_of(archived))
    content = bytearray(zip_of(archived).read_bytes())
    at = content.find(b"PK\x01\x02")
    for _ in MEMBERS:
        content[at + 24 : at + 28] = (LARGEST // 4).to_bytes(4, "little")
        at = content.find(b"PK\x01\x02", at + 4)
    zip_of(archived).write_bytes(content)
    with pytest.raises(ResultsError, match=r"unpacks to more than 4 GiB; make it anew with `bench archive`"):
        member(zip_of(archived), MANIFEST)


@settings(max_examples=30, deadline=None)
@given(place=st.integers(0, 10_000), value=st.integers(0, 255), lost=st.integers(0, 500))
def test_a_changed_byte_or_a_lost_end_is_noticed_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, folder: Path, packed_run: bytes, place: int, value: int, lost: int
) -> None:
    content = bytearray(packed_run)
    content[place % len(content)] = value
    damaged = tmp_path_factory.mktemp("damaged") / "run"
    zip_of(damaged).write_bytes(content[: len(content) - lost])
    with suppress(ResultsError):
        assert verify(damaged).defects or sources(damaged) == sources(folder)
