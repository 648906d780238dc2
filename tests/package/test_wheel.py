"""The wheel that others install does the whole job, outside of the checkout. `nox -s package` builds it and runs this."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = ROOT / os.environ.get("BENCH_PACKAGE", "build/dist")
pytestmark = pytest.mark.skipif("BENCH_PACKAGE" not in os.environ, reason="nox -s package installs the wheel for this")

CONFIG = """
name = "mine"
scenarios = ["demo"]
architectures = ["monolithic", "static", "runtime_structured"]
models = ["simulated"]
plans = ["none", "lost_field"]
repetitions = 3
seed = 1
model.simulated.kind = "simulated"
plan.lost_field.faults = [{ point = "output", effect = "missing_field", attempts = [1] }]
"""
NOT_CODE = (".md", ".json", ".txt", ".toml", ".css", ".js", ".j2", ".typed")


def command(folder: Path, *words: str) -> str:
    """Run the installed command in this folder: what it prints."""
    return output_of(folder, str(Path(sys.executable).parent / "bench"), *words)


def program(folder: Path, text: str) -> str:
    """Run a program in this folder, with the Python that the wheel is installed for: what it prints."""
    return output_of(folder, sys.executable, "-c", text)


def output_of(folder: Path, *words: str) -> str:
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment() -> dict[str, str]:
    """This process's, without what would lead to the checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def only(pattern: str) -> Path:
    [path] = DISTRIBUTIONS.glob(pattern)
    return path


def test_what_is_installed_is_the_wheel(tmp_path: Path) -> None:
    place = Path(program(tmp_path, "import bench; print(bench.__file__)").strip())
    assert "site-packages" in place.parts and not place.is_relative_to(ROOT / "bench")


def test_bench_code_is_a_package_of_its_own_that_is_installed_beside_the_wheel(tmp_path: Path) -> None:
    subprocess.run(("git", "init", "-q", str(tmp_path)), check=True)
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n", encoding="utf-8")
    assert "1 tests run" in command(tmp_path, "code", "run")


def test_the_wheel_holds_every_file_of_the_package_that_is_no_cache() -> None:
    names = set(zipfile.ZipFile(only("*.whl")).namelist())
    files = [
        path.relative_to(ROOT) for path in (ROOT / "bench").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    assert {path.suffix for path in files} >= set(NOT_CODE)
    assert [str(path) for path in files if path.as_posix() not in names] == []
    assert [name for name in names if not name.startswith(("bench/", "recovery_bench-"))] == []


def test_the_wheel_carries_the_licences_of_what_it_holds() -> None:
    with zipfile.ZipFile(only("*.whl")) as wheel:
        licences = {name.partition(".dist-info/licenses/")[2] for name in wheel.namelist()} - {""}
        metadata = next(wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/METADATA"))
    assert licences == {"LICENSE", "NOTICE", "bench/common/cl100k_base/LICENSE"}
    assert "License-Expression: Apache-2.0 AND MIT\n" in metadata


def test_the_sdist_holds_the_sources_and_no_runs() -> None:
    with tarfile.open(only("*.tar.gz")) as archive:
        tops = {name.split("/", 2)[1] for name in archive.getnames() if "/" in name}
    assert tops >= {
        "bench",
        "configs",
        "docs",
        "scenarios",
        "studies",
        "tests",
        "tools",
        "noxfile.py",
        "constraints.txt",
        "requirements.lock",
        "README.md",
        "LICENSE",
        "NOTICE",
    }
    assert not tops & {"results", "reports", "build"}


def test_from_an_empty_folder_a_pack_is_begun_checked_run_and_reported(tmp_path: Path) -> None:
    command(tmp_path, "new", "scenario", "demo")
    assert "FAILED" not in command(tmp_path, "check", "demo")
    listed = command(tmp_path, "list", "packs")
    assert "demo" in listed and "k8s_oomkill" in listed, "the wheel's packs stand beside those of the folder"
    (tmp_path / "mine.toml").write_text(CONFIG, encoding="utf-8")
    assert "solved 18" in command(tmp_path, "run", "mine.toml")
    command(tmp_path, "report", "mine-simulated")
    report = tmp_path / "reports" / "mine-simulated"
    page = (report / "report.html").read_text(encoding="utf-8")
    assert "<style>" in page and "<script" in page and "SIMULATED" in page
    assert list(report.glob("tables/*.csv")) and list(report.glob("figures/*.png")) and (report / "report.md").exists()


def test_two_packs_come_with_the_wheel_and_can_be_run(tmp_path: Path) -> None:
    listed = command(tmp_path, "list")
    assert "k8s_oomkill" in listed and "multi_file_debugging" in listed and "contract_renewal" not in listed
    (tmp_path / "mine.toml").write_text(CONFIG.replace('"demo"', '"k8s_oomkill"'), encoding="utf-8")
    assert "solved 18" in command(tmp_path, "run", "mine.toml")


def test_a_run_from_the_wheel_is_read_by_a_program(tmp_path: Path) -> None:
    command(tmp_path, "new", "scenario", "demo")
    (tmp_path / "mine.toml").write_text(CONFIG, encoding="utf-8")
    command(tmp_path, "run", "mine.toml", "--repetitions", "1")
    assert program(tmp_path, "import bench; print(len(bench.load_run('results/mine-simulated').trials))").split() == ["6"]


def test_the_parts_of_a_package_beside_it_are_listed_run_and_reported(tmp_path: Path) -> None:
    assert command(tmp_path, "list").count("from parrot-parts 1.0") == 8  # one of each kind that it names, and of effects three
    for kind in ("metrics", "tables", "figures"):
        assert command(tmp_path, "list", kind).count("from parrot-parts 1.0") == 1
    command(tmp_path, "new", "scenario", "demo")
    parrot = CONFIG.replace('"monolithic"', '"parrot"').replace('kind = "simulated"', 'kind = "parrot"')
    parrot = parrot.replace('effect = "missing_field"', 'effect = "squawked"').replace("seed = 1", 'seed = 1\nstudy = "echo"')
    (tmp_path / "mine.toml").write_text(parrot, encoding="utf-8")
    assert "solved 18" in command(tmp_path, "run", "mine.toml", "--report")
    page = (tmp_path / "reports" / "mine-simulated" / "report.md").read_text(encoding="utf-8")
    for text in ("What an echo costs", "counted by a parrot", "First tokens", "squawked at output"):
        assert text in page


def test_a_pack_of_a_package_beside_it_is_checked_and_run_from_an_empty_folder(tmp_path: Path) -> None:
    assert "FAILED" not in command(tmp_path, "check", "echo")
    (tmp_path / "mine.toml").write_text(CONFIG.replace('"demo"', '"echo"'), encoding="utf-8")
    assert "solved 18" in command(tmp_path, "run", "mine.toml")
