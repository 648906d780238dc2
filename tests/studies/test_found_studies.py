"""A study is a folder of `studies/`, found where a person works, and told of in one line where it is missing or broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import plugged
import pytest
from records import config_in, edit_manifest, trial, write_run
from trials import matrix_of

import bench
from bench.common.errors import ConfigError, ResultsError
from bench.read.analysis.frames import Run
from bench.read.report import studies
from bench.read.report.studies import STUDIES, require_known, study_pictures, study_tables
from bench.rerun.prepared import study_values
from bench.run.experiment.matrix import Matrix

STUDY = """
from bench.read.render.table import Table
from .counting import counted

def tables(run):
    yield Table("study-mine", "Mine", ("Trials",), ((counted(run),),))

def pictures(run):
    return ()
"""
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a study's modules into `studies/mine` of a folder, and work there."""

    def written(**modules: str) -> None:
        folder = tmp_path / "studies" / "mine"
        folder.mkdir(parents=True, exist_ok=True)
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(text)
        plugged.forget()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(studies, "CHECKOUT_STUDIES", tmp_path / "nowhere")
    plugged.forget()
    yield written
    plugged.forget()


def of_study(name: str, folder: Path) -> Run:
    write_run(folder, [trial()])
    edit_manifest(folder, config={**config_in(folder), "study": name})
    return bench.load_run(folder)


def asked() -> Matrix:
    matrix = matrix_of()
    return replace(matrix, config=matrix.config.model_copy(update={"study": "mine"}))


def line_of(run: Run) -> str:
    [table] = study_tables(run)
    [[line]] = table.texts()
    return line


def test_a_study_is_found_in_the_working_folder_and_imports_what_stands_beside_it(write: Write, tmp_path: Path) -> None:
    write(study=STUDY, counting="def counted(run):\n    return len(run.trials)\n")
    require_known("mine")
    assert [table.texts() for table in study_tables(of_study("mine", tmp_path / "run"))] == [[["1"]]]


def test_two_folders_of_studies_share_no_module(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(study=STUDY, counting="def counted(run):\n    return 1\n")
    run = of_study("mine", tmp_path / "run")
    assert line_of(run) == "1"
    other = tmp_path / "other" / "studies" / "mine"
    other.mkdir(parents=True)
    (other / "study.py").write_text(STUDY)
    (other / "counting.py").write_text("def counted(run):\n    return 2\n")
    monkeypatch.chdir(tmp_path / "other")
    plugged.forget()
    assert line_of(run) == "2"


@pytest.mark.parametrize(
    ("modules", "line"),
    [
        ({"study": STUDY}, "studies/mine/study.py:3: does not load: ModuleNotFoundError: No module named 'mine.counting'"),
        ({"study": "def"}, "studies/mine/study.py:1: does not load: SyntaxError: invalid syntax"),
        (
            {"study": STUDY, "counting": "def counted(run):\n    raise KeyError('a')"},
            "studies/mine/counting.py:2: KeyError: 'a'",
        ),
        ({"study": "tables = None"}, "studies/mine/study.py: TypeError: 'NoneType' object is not callable"),
    ],
)
def test_a_study_that_fails_says_where_in_one_line(modules: dict[str, str], line: str, write: Write, tmp_path: Path) -> None:
    write(**modules)
    run = of_study("mine", tmp_path / "run")
    assert line_of(run) == f"study 'mine': {line}"
    assert study_pictures(run) == []


def test_where_there_are_no_studies_a_config_is_refused_and_a_report_says_which_is_missing(
    write: Write, tmp_path: Path
) -> None:
    del write
    assert STUDIES.names == []
    with pytest.raises(ConfigError, match=r"^unknown study 'depth'; known: none; studies are looked for in .*nowhere$"):
        require_known("depth")
    assert line_of(of_study("depth", tmp_path / "run")) == "study 'depth': is unknown; known: none"


@pytest.mark.parametrize("name", ["..", "../mine", "mine/study", "mine.study"])
def test_no_name_in_a_manifest_leads_out_of_the_folder(name: str, write: Write, tmp_path: Path) -> None:
    write(study=STUDY)
    assert "is unknown" in line_of(of_study(name, tmp_path / "run"))


def test_a_run_keeps_what_its_study_prepares(write: Write) -> None:
    never = "raise AssertionError('a run does not wait for it')"
    write(study=never, prepare="def prepare(matrix):\n    return {'seed': matrix.config.seed}")
    matrix = asked()
    assert study_values(matrix) == {"seed": matrix.config.seed}


def test_a_run_does_not_begin_where_what_prepares_it_does_not_load(write: Write) -> None:
    write(study=STUDY, prepare="import nothing_of_this_name")
    with pytest.raises(ResultsError, match=r"^studies/mine/prepare\.py:1: does not load: ModuleNotFoundError"):
        study_values(asked())
