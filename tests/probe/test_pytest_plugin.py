"""The test that `bench probe --test` writes, run by pytest as a user would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import bench

from tests.probe.run.test_tape import subject

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probe's processes are watched on Linux")
PLAN = "till.charge#1.lost"
TEST = Path("tests", "probe", "test_till_charge_1_lost.py")


def run(folder: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


def run_pytest(folder: Path, *words: str) -> tuple[int, str]:
    """Run pytest with the plug-in, whether or not the installed package names it."""
    left_out = [word for name in ("cacheprovider", "hypothesispytest", "anyio") for word in ("-p", f"no:{name}")]
    return run(folder, "-m", "pytest", "-p", "bench.probe.pytest_plugin", *left_out, "-q", *words)


def test_a_written_test_fails_with_the_timeline_and_passes_when_the_agent_is_mended(tmp_path: Path) -> None:
    file = subject(tmp_path, "again")
    code, text, err = bench(tmp_path, "probe", "--yes", "--test", PLAN)
    assert code == 0, text + err
    assert f"{TEST} and its tapes, {TEST.stem}.json and test_till_charge_1_killed_before.json, are written" in text
    assert (tmp_path / TEST.with_suffix(".json")).stat().st_size < 200_000
    (tmp_path / "shop.db").unlink()
    code, text = run_pytest(tmp_path, "tests", "-n", "2", "--junitxml=junit.xml")
    assert code == 1
    assert "struck here: lost" in text
    assert "doubled: till.charge#1 stands 2 times" in text
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().find(".//failure") is not None
    file.write_text(file.read_text().replace('"again"', '"trusts"'))
    assert run_pytest(tmp_path, "tests", "-x", "-k", "charge")[0] == 0
    assert run_pytest(tmp_path, "tests", "-k", "no_such_cell")[0] == 5
    file.write_text(file.read_text().replace('"trusts"', '"keyed"'))
    code, text = run_pytest(tmp_path, "tests")
    assert code == 1
    assert f"{PLAN} has no verdict: it left the tape" in text
    assert "bench probe --test" in (tmp_path / TEST).read_text()


def test_an_agent_that_only_writes_down_first_fails_where_it_is_killed_before_the_call(tmp_path: Path) -> None:
    file, notes, plan = subject(tmp_path, "again"), tmp_path / "notes", "till.charge#1.unacknowledged"
    file.write_text(f'{file.read_text()}[[store]]\nmemory = "{notes}"\n'.replace('"again"', f'"again", "{notes}"'))
    assert bench(tmp_path, "probe", "--yes", "--test", plan)[0] == 0
    assert "1 failed, 1 passed" in run_pytest(tmp_path, "tests")[1]
    file.write_text(file.read_text().replace('"again"', '"again notes"'))
    code, text = run_pytest(tmp_path, "tests")
    assert code == 1 and "1 failed, 1 passed" in text and "lost" in text, text


def test_a_written_test_finds_its_file_from_a_folder_above(tmp_path: Path) -> None:
    agents = tmp_path / "agents" / "shop"
    agents.mkdir(parents=True)
    subject(agents, "trusts")
    (agents / "tests").mkdir()
    (agents / "tests" / "test_a.py").write_text(
        f'import pytest\n@pytest.mark.probe("probe.toml", "{PLAN}", tape="none.json")\ndef test_it(probed): pass\n'
    )
    assert "none.json: is no tape" in run_pytest(tmp_path)[1]


def test_a_project_with_a_marker_and_a_fixture_of_the_same_names_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(
        "import pytest\n@pytest.fixture\ndef probed(request): return request.node.get_closest_marker('probe').args[0]\n"
        "@pytest.mark.probe(3)\ndef test_it(probed): assert probed == 3\n"
    )
    code, text = run_pytest(tmp_path)
    assert code == 0 and "1 passed" in text, text


def test_a_marker_without_a_cell_and_a_tape_that_is_not_there_are_said_in_a_line(tmp_path: Path) -> None:
    subject(tmp_path, "")
    (tmp_path / "test_a.py").write_text(
        'import pytest\n@pytest.mark.probe("probe.toml", "a.b#1.lost", tape="none.json")\ndef test_it(probed): pass\n'
    )
    assert "none.json: is no tape; record it by: bench probe --test CELL" in run_pytest(tmp_path)[1]
    (tmp_path / "test_a.py").write_text('import pytest\n@pytest.mark.probe("probe.toml")\ndef test_it(probed): pass\n')
    assert "the marker names no cell; write probe(FILE, CELL, ...)" in run_pytest(tmp_path)[1]
