"""A figure of a study is of one model, and of all that was found of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from records import run_of, trial

from studies.by_model import by_model


@dataclass(frozen=True)
class Found:
    model: str
    number: int


def test_each_model_has_what_was_found_of_it_and_one_of_which_nothing_was_found_is_left_out(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(model=model) for model in ("dear", "cheap", "unseen")])
    result = [Found("cheap", 1), Found("dear", 2), Found("cheap", 3)]
    parted = [("dear", [Found("dear", 2)]), ("cheap", [Found("cheap", 1), Found("cheap", 3)])]
    assert sorted(by_model(run, iter(result))) == sorted(parted)
    assert [model for model, _ in by_model(run, result)] == [model for model in run.names("model") if model != "unseen"]
