"""An archived run is read as its folder was, is written to by nothing, and a damaged or hostile archive is one line."""

from __future__ import annotations

import shutil
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
from bench.common.errors import ResultsError
from bench.record.archive import LARGEST, MEMBERS, archive, member
from bench.record.files import MANIFEST, TRIALS
from bench.record.reading import read_manifest, read_trials
from bench.record.store import RunWriter, writing
from bench.record.verify import sources, verify


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


def test_archives_of_one_run_at_once_both_end_whole(folder: Path, archived: Path, tmp_path: Path) -> None:
    copy = tmp_path / "again" / "run"
    shutil.copytree(folder, copy)

    def written(_: int) -> str:
        try:
            return str(archive(copy))
        except ResultsError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        ends = set(pool.map(written, range(4)))
    path = zip_of(copy)
    assert ends <= {str(path), f"{path}: exists already; remove it, and run the command again"}
    assert path.read_bytes() == zip_of(archived).read_bytes() and sorted(copy.parent.iterdir()) == [copy, path]


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
    code, _, err = command(archived.parent.parent, "more", "regrade", archived.name)
    assert code == 2 and refused in err and err.count("\n") == 1
    assert not archived.exists()


def packed(*members: tuple[str, bytes], by: int = zipfile.ZIP_DEFLATED) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", by) as file:
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


def says_another_length_of_its_list(path: Path) -> None:
    """A second end stands within the first, and says that the list is short."""
    lists_much(path)
    content = bytearray(path.read_bytes())
    content[-18:-14] = b"PK\x05\x06"
    path.write_bytes(content)


def lists_much_behind_zip64(path: Path) -> None:
    lists_much(path)
    content = path.read_bytes()
    start, size = (int.from_bytes(content[at : at + 4], "little") for at in (len(content) - 6, len(content) - 10))
    record = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 40_000, 40_000, size, start)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(content) - 22, 1)
    path.write_bytes(content[:-22] + record + locator + content[-22:-10] + bytes(4) + content[-6:])


def has_a_comment(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as file:
        file.comment = b"of a stranger"


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no zip": (lambda path: path.write_bytes(b"PK" * 500), "is not a whole archive of a run"),
    "nothing": (lambda path: path.write_bytes(b""), "is not a whole archive of a run"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-30]), "is not a whole archive of a run"),
    "another file": (packed((MANIFEST, b"{}"), ("../../evil", b"")), "holds '../../evil', which no run writes"),
    "long list": (lists_much, "is not a whole archive of a run"),
    "a second end": (says_another_length_of_its_list, "is not a whole archive of a run"),
    "zip64": (lists_much_behind_zip64, "is not a whole archive of a run"),
    "a comment": (has_a_comment, "is not a whole archive of a run"),
    "bzip2": (packed((MANIFEST, b"{}"), by=zipfile.ZIP_BZIP2), "is packed in a way that this version does not read"),
    "a dense file": (packed((MANIFEST, b"{}"), (TRIALS, b" " * (2**25 + 1))), "unpacks to more than 1,000 times its size"),
    "no manifest": (packed((TRIALS, b"")), "holds no run (no manifest.json)"),
    "memory": (looks_far_back, "cannot be read: "),
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
    with pytest.raises(ResultsError, match=r"unpacks to more than 4 GiB; make it anew with `bench more archive`"):
        member(zip_of(archived), MANIFEST)


@pytest.mark.parametrize("by", [zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_member_takes_no_more_memory_than_what_is_asked_of_it(
    tmp_path: Path, by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.record.files.LARGEST_MANIFEST", 2**20)
    packed((MANIFEST, b" " * 2**25), by=by)(tmp_path / "run.zip")
    tracemalloc.start()
    with pytest.raises(ResultsError, match=r"manifest.json: cannot be read: it has more than"):
        read_manifest(tmp_path / "run")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24


@given(content=st.binary(max_size=300), times=st.integers(1, 2000), most=st.integers(1, 100_000))
@settings(max_examples=20, deadline=None)
def test_a_member_is_unpacked_to_the_bytes_that_were_packed(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, times: int, most: int
) -> None:
    path = tmp_path_factory.mktemp("lzma") / "run.zip"
    packed((TRIALS, content * times), by=zipfile.ZIP_LZMA)(path)
    with member(path, TRIALS) as file:
        assert b"".join(iter(lambda: file.read(most), b"")) == content * times


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
