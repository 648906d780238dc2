"""Three trips through the code, and which definitions each runs. A class counts once, with its methods."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import bench
from bench.common.paths import PACKS
from bench.read.analysis.frames import load_run
from bench.read.analysis.results import Results
from bench.read.report.tables import TABLES
from bench.record.store import RunWriter
from bench.run.experiment.code import our_codebase
from bench.run.experiment.config import load_config
from bench.run.experiment.grading import Graders
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.runner import run_matrix
from bench.run.experiment.session import Session
from bench.run.experiment.trial import run_trial
from bench.run.trial.loop import run, run_whole
from bench.run.trial.slots import Slots
from structure.commands import FUNCTION, ONE_TRIAL

HOME = str(Path(bench.__file__).parent)
Definition = tuple[str, str]
"""A file of the package, and the name that it defines."""


class Walk:
    """The definitions that ran."""

    def __init__(self) -> None:
        self.definitions: set[Definition] = set()

    def saw(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOME) and (name := _name_of(code)):
            self.definitions.add((code.co_filename[len(HOME) + 1 :], name))


def _name_of(code: CodeType) -> str:
    """Return the definition at the top of its module that the code belongs to; "" for a module, a class body or a lambda."""
    name = code.co_qualname.partition(".")[0]
    return name if code.co_flags & FUNCTION == FUNCTION and not name.startswith("<") else ""


@contextmanager
def walked() -> Iterator[Walk]:
    """Note what runs inside the context, on this thread."""
    walk = Walk()
    sys.setprofile(walk.saw)
    try:
        yield walk
    finally:
        sys.setprofile(None)


def walks() -> dict[str, set[Definition]]:
    """Return each trip's definitions. Every trip is made once before, so that what a process makes once is made."""
    with tempfile.TemporaryDirectory() as folder:
        return dict(_walks(Path(folder)))


def _walks(folder: Path) -> Iterator[tuple[str, set[Definition]]]:
    yield "from a config to its trials", _measured(lambda: _matrix(folder, 1))
    matrix = _matrix(folder, 1)
    (spec,) = matrix.specs
    yield "one trial", _measured(lambda: run(run_trial(spec, matrix, Slots(), Graders())))
    _run(_matrix(folder, 18), folder / "eighteen")
    yield "from a run to a table", _measured(lambda: _table(folder / "eighteen"))


def _measured(trip: Callable[[], Any]) -> set[Definition]:
    trip()
    with walked() as walk:
        trip()
    return walk.definitions


def _matrix(folder: Path, repetitions: int) -> Matrix:
    file = folder / "walk.toml"
    file.write_text(ONE_TRIAL.replace("repetitions = 1", f"repetitions = {repetitions}"), encoding="utf-8")
    return build_matrix(load_config(file, {}), PACKS, our_codebase().digest)


def _run(matrix: Matrix, folder: Path) -> None:
    """Run the trials of a matrix and record them."""
    with closing(RunWriter(folder, manifest_of(matrix, folder.name))) as writer:
        run_whole(run_matrix(matrix, writer, lambda _: None, Session()))


def _table(folder: Path) -> None:
    assert list(TABLES["comparison"].tables(Results(load_run(folder))))
