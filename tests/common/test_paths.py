"""A name stays a name: no folder is made outside of the one that it belongs in."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import bench, workplace

from bench.common.errors import ConfigError, ResultsError
from bench.common.paths import folder_of, name_of, named

OUTSIDE = [
    "..",
    "../../evil",
    "/tmp/evil",
    "a/b",
    "a\\b",
    "c:evil",
    "a\0b",
    ".hidden",
    "",
    "x" * 300,
    "nul",
    "a?",
    "end.",
    "two words",
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_could_lie_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is no name for a folder in results"):
        named(Path("results"), name)


def test_a_device_of_windows_is_called_that() -> None:
    with pytest.raises(ConfigError, match=r"'NUL\.txt' is no name for a folder in results: 'NUL' is a device on Windows"):
        named(Path("results"), "NUL.txt")


@pytest.mark.parametrize("name", ["paper-qwen2.5-coder-1.5b-instruct", "a+b", "run.1", "x" * 200])
def test_a_name_as_runs_have_it_is_taken(name: str) -> None:
    assert named(Path("results"), name) == Path("results") / name


def test_a_folder_has_its_own_name_however_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    assert [name_of(Path(written)) for written in (".", "../run", "../run/x/..", str(tmp_path / "run"))] == ["run"] * 4


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "x" * 300])
def test_a_run_is_never_named_out_of_results(tmp_path: Path, name: str) -> None:
    workplace(tmp_path / "here")
    code, _, err = bench(tmp_path / "here", "run", "configs/small.toml", "--name", name)
    assert code == 2 and err.count("\n") == 1 and "is no name for a folder in results" in err
    assert not (tmp_path / "here" / "results").exists() and not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"simulated"', '"../../evil"'),
        ("first_reply", '"../evil"'),
        ('"runtime_structured"', '"../../evil"'),
        ('name = "small"', 'name = "../evil"'),
        ('"demo"', '"../demo"'),
    ],
)
def test_no_name_in_a_config_leads_out_of_a_folder(tmp_path: Path, old: str, new: str) -> None:
    config = workplace(tmp_path)
    text = config.read_text().replace(old, new)
    if old == '"simulated"':
        text = text.replace("[model.simulated]", f"[model.{new}]").replace(f"kind = {new}", 'kind = "simulated"')
    config.write_text(text)
    code, _, err = bench(tmp_path, "run", "configs/small.toml")
    assert code == 2 and err.startswith("bench: ") and err.count("\n") == 1, err
    assert {path.name for path in tmp_path.iterdir()} <= {"configs", "scenarios"}


def test_a_run_that_does_not_exist_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results" / "paper").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for given in ("papers", "results/papers"):
        with pytest.raises(ResultsError, match=r"^results/papers: holds no run; did you mean 'paper'"):
            folder_of(given)


def test_an_empty_text_names_no_run() -> None:
    with pytest.raises(ResultsError, match="'' names no run"):
        folder_of("")
