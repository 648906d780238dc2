"""A digest changes with what it stands for, and with nothing else."""

from __future__ import annotations

import importlib
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from little_worlds import ROOT as WORLDS
from plugged import PARROT, install_package, plugged

from bench.cli.authoring.new import new_scenario
from bench.common.errors import ResultsError
from bench.common.registry import module_of
from bench.record.store import RunWriter
from bench.run.architectures.registry import architecture_named, load_architecture
from bench.run.experiment.code import PACKAGE, Codebase, our_codebase
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.new_manifest import manifest_of
from bench.run.serve.free import free_scenario

# -- which trials become others by an edit -------------------------------------------------------------------------------------

FAULTS = {
    "texts": {"point": "output", "effect": "missing_field", "attempts": [1]},
    "calls": {"point": "call", "effect": "timeout", "attempts": [1]},
    "parrots": {"point": "output", "effect": "squawked", "attempts": [1]},
}
EXPERIMENT = {
    "name": "test",
    "scenarios": ["demo", "other"],
    "architectures": ["static", "runtime_structured", "reflexion", "parrot"],
    "models": ["simulated", "live", "mixed", "bird"],
    "plans": ["none", *FAULTS],
    "repetitions": 1,
    "seed": 7,
    "model": {
        "simulated": {"kind": "simulated"},
        "live": {"kind": "openai", "base_url": "http://127.0.0.1:1/v1"},
        "mixed": {"kind": "routed", "default": "simulated", "subtasks": {"decide": "simulated"}},
        "bird": {"kind": "parrot"},
    },
    "plan": {name: {"faults": [fault]} for name, fault in FAULTS.items()},
}
IN_A_WORLD = {
    **EXPERIMENT,
    "scenarios": ["refunds"],
    "architectures": ["state_machine", "agent"],
    "models": ["simulated"],
    "plans": ["none", "tools"],
    "architecture": {"agent": {"command": ["python"]}},
    "plan": {"tools": {"faults": [{"point": "tool", "effect": "slow", "attempts": [1]}]}},
}
Trial = tuple[str, str, str, str]
"""(scenario, architecture, model, plan)"""


class Place:
    """A copy of the package, of packs and of somebody's parts, to be edited, and the ids that two experiments have there."""

    def __init__(self, folder: Path):
        self.folder = folder
        shutil.copytree(PACKAGE, folder / "bench", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(WORLDS / "refunds", folder / "packs" / "refunds")
        for name in ("demo", "other"):
            new_scenario(name, folder / "packs")
        self.last = self.ids()

    def matrix(self, values: Mapping[str, Any]) -> Matrix:
        codebase = Codebase(self.folder / "bench")
        return build_matrix(Config.model_validate(values), [self.folder / "packs"], codebase.digest, codebase=codebase)

    def ids(self) -> dict[Trial, str]:
        specs = [spec for values in (EXPERIMENT, IN_A_WORLD) for spec in self.matrix(values).specs]
        return {(spec.scenario, spec.architecture, spec.model, spec.plan.name): spec.id for spec in specs}


def edit(path: Path) -> None:
    """A statement more, at the end; of a text a letter."""
    path.write_bytes(path.read_bytes() + (b"\nEDITED = 1\n" if path.suffix == ".py" else b"x"))


def reword(path: Path) -> None:
    """Other words and another layout: every docstring begins with a further word, and comments and blank lines are added."""
    text = path.read_text(encoding="utf-8")
    words = re.sub(r'^( *)"""', r'\1# a remark\n\n\1"""Another word: ', text, flags=re.MULTILINE)
    closed = re.sub(r'^( *)# a remark\n\n *"""Another word: $', r'\1"""', words, flags=re.MULTILINE)  # the end of a docstring
    path.write_text(f"# a remark\n\n{closed}\n\n# a remark\n", encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("copy")
    install_package(folder / "installed")
    shutil.copytree(PARROT / "parrot_parts", folder / "installed" / "parrot_parts")
    with plugged(folder / "installed"):
        yield Place(folder)


SIMULATED = ("simulated", "mixed", "bird")
EDITS: dict[str, Callable[..., bool]] = {
    "run/trial/text_effects.py": lambda _, __, ___, plan: plan == "texts",
    "run/trial/call_effects.py": lambda _, __, ___, plan: plan == "calls",
    "worlds/run/effects.py": lambda _, __, ___, plan: plan == "tools",
    "run/architectures/static.py": lambda _, architecture, __, ___: architecture == "static",
    "run/architectures/waves.py": lambda _, architecture, __, ___: architecture == "static",
    "worlds/run/patterns/state_machine.py": lambda _, architecture, __, ___: architecture == "state_machine",
    "run/frameworks/langgraph.py": lambda *_: False,
    "run/endpoint/wire.py": lambda _, architecture, __, ___: architecture in ("reflexion", "agent"),
    "worlds/run/driver/openapi.py": lambda _, architecture, __, ___: architecture == "agent",
    "wire/supervisor.py": lambda _, architecture, __, ___: architecture == "agent",
    "run/models/simulated_replies.py": lambda _, __, model, ___: model in SIMULATED,
    "run/models/routed.py": lambda _, __, model, ___: model == "mixed",
    "run/openai/transport.py": lambda _, __, model, ___: model == "live",
    "run/models/recorded.py": lambda *_: False,
    "run/trial/workbench.py": lambda *_: True,
    "worlds/run/environment/world.py": lambda scenario, _, __, plan: scenario == "refunds" or plan == "parrots",
    "run/answers/fenced.py": lambda *_: True,
    "run/experiment/trial.py": lambda *_: True,
    "scenario.py": lambda *_: True,
    "read/analysis/metrics.py": lambda *_: False,
    "read/report/page.py": lambda *_: False,
    "rerun/learning.py": lambda *_: False,
    "worlds/read/tables.py": lambda *_: False,
    "worlds/read/scorecard/card.py": lambda *_: False,
    "cli/main.py": lambda *_: False,
    "read/render/table.py": lambda *_: False,
    "run/serve/session.py": lambda *_: False,
    "run/sandbox/parent.py": lambda *_: False,
    "run/experiment/config.py": lambda *_: False,
    "run/experiment/grading.py": lambda *_: False,
    "record/store.py": lambda *_: False,
    "record/events.py": lambda *_: True,
    "record/verify.py": lambda *_: False,
    "__init__.py": lambda *_: False,
    "../installed/parrot_parts/effects.py": lambda _, __, ___, plan: plan == "parrots",
    "../installed/parrot_parts/architecture.py": lambda _, architecture, __, ___: architecture == "parrot",
    "../installed/parrot_parts/model.py": lambda _, __, model, ___: model == "bird",
    "../installed/parrot_parts/metrics.py": lambda *_: False,
    "../installed/parrot_parts/tables.py": lambda *_: False,
    "../packs/demo/scenario.py": lambda scenario, *_: scenario == "demo",
    "../packs/demo/prompts/decide.md": lambda scenario, *_: scenario == "demo",
    "../packs/demo/grader.py": lambda *_: False,
    "../packs/refunds/scenario.py": lambda scenario, *_: scenario == "refunds",
}
"""A file -> which trials another one there makes others."""


@pytest.mark.parametrize("file", EDITS)
def test_an_edit_changes_the_ids_of_the_trials_that_use_what_was_edited_and_no_others(place: Place, file: str) -> None:
    before = place.last
    assert len(before) == len(set(before.values())) == 2 * 4 * 4 * 4 + 2 * 2
    edit(place.folder / "bench" / file)
    place.last = place.ids()
    changed = {trial for trial, id_ in before.items() if place.last[trial] != id_}
    assert changed == {trial for trial in before if EDITS[file](*trial)}


def test_no_docstring_comment_or_layout_of_ours_is_in_an_id_but_those_of_frameworks(place: Place) -> None:
    package = place.folder / "bench"
    before, frameworks = place.last, Codebase(package).of("bench.run.frameworks.langgraph")
    files = [path for path in package.rglob("*.py") if "templates" not in path.parts and "frameworks" not in path.parts]
    assert len(files) > 500
    for file in files:
        reword(file)
    assert (package / "run/trial/verification.py").read_text() != (PACKAGE / "run/trial/verification.py").read_text()
    assert place.ids() == before and Codebase(package).of("bench.run.frameworks.langgraph") == frameworks
    reword(package / "run/frameworks/langgraph.py")
    assert Codebase(package).of("bench.run.frameworks.langgraph") != frameworks


def test_the_version_of_python_is_in_the_ids_and_not_in_the_digest_of_the_code(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Codebase(place.folder / "bench").digest
    monkeypatch.setattr(platform, "python_version", lambda: "3.99.0")
    assert Codebase(place.folder / "bench").digest == before
    assert not set(place.ids().values()) & set(place.last.values())


BEYOND_THE_WALL = ("read", "rerun", "elsewhere", "cli", "worlds/read")


def test_no_edit_beyond_the_wall_changes_an_id(place: Place) -> None:
    before = place.last
    files = [file for room in BEYOND_THE_WALL for file in (place.folder / "bench" / room).rglob("*.py")]
    assert len(files) > 200
    for file in files:
        edit(file)
    place.last = place.ids()
    assert place.last == before


def test_an_edit_of_each_module_that_every_trial_runs_through_changes_what_all_ids_hold(place: Place) -> None:
    package = place.folder / "bench"
    core = Codebase(package).core_files
    assert len(core) > 80 and not [file for file in core if file.relative_to(package).parts[0] in ("read", "cli", "rerun")]
    digests = {Codebase(package).digest}
    for file in core:
        edit(file)
        digests.add(Codebase(package).digest)
    place.last = place.ids()
    assert len(digests) == 1 + len(core)


def test_the_version_of_a_package_that_a_part_is_from_is_in_the_ids_of_its_trials(place: Place) -> None:
    before = place.last
    metadata = next((place.folder / "installed").glob("*.dist-info")) / "METADATA"
    text = metadata.read_text()
    metadata.write_text(text.replace("Version: 1.0", "Version: 1.1"))
    with plugged(place.folder / "installed"):
        changed = {trial for trial, id_ in place.ids().items() if before[trial] != id_}
    metadata.write_text(text)
    assert changed == {key for key in before if key[1] == "parrot" or key[2] == "bird" or key[3] == "parrots"}


def test_a_folder_of_trials_that_use_an_effect_of_other_code_is_refused_by_its_name(place: Place, tmp_path: Path) -> None:
    RunWriter(tmp_path / "run", manifest_of(place.matrix(EXPERIMENT), "run")).close()
    edit(place.folder / "bench" / "run" / "trial" / "call_effects.py")
    place.last = place.ids()
    with pytest.raises(ResultsError, match="another version of the code of 'effect timeout at call'"):
        RunWriter(tmp_path / "run", manifest_of(place.matrix(EXPERIMENT), "run"))


def test_calls_without_a_task_have_a_digest_of_what_is_asked_and_none_of_a_grader() -> None:
    assert (len(free_scenario().asked), free_scenario().graded_by) == (20, "")


# -- an architecture's own code ----------------------------------------------------------------------------------------

OWN = """
{imports}

async def solve(task, workbench):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def digest_of(name: str) -> str:
    importlib.invalidate_caches()
    part = architecture_named(name)
    return our_codebase().of_part(part, module_of(load_architecture(part)))


KIT = {
    "words.py": "WORDS = 1",
    "kit/__init__.py": "",
    "kit/words.py": "WORDS = 1",
    "kit/deep.py": "from . import more",
    "kit/more.py": "from .inner.last import LAST",
    "kit/inner/__init__.py": "",
    "kit/inner/last.py": "import words\nfrom ..words import WORDS\nLAST = 1",
}
"""What lies beside an own architecture: a module, and a package with another one in it."""


@pytest.mark.parametrize(
    ("imports", "file"),
    [
        ("", "mine.py"),
        ("import words", "words.py"),
        ("from words import WORDS", "words.py"),
        ("import kit.words", "kit/words.py"),
        ("import kit.words", "kit/__init__.py"),
        ("from kit import words", "kit/words.py"),
        ("from kit.words import WORDS", "kit/words.py"),
        ("from kit.words import WORDS", "kit/__init__.py"),
        ("from kit import deep", "kit/more.py"),
        ("from kit import deep", "kit/inner/last.py"),
        ("from kit import deep", "words.py"),
    ],
)
def test_an_edit_of_it_or_of_what_it_imports_from_beside_it_changes_its_digest(folder: Path, imports: str, file: str) -> None:
    write(folder, {"mine.py": OWN.format(imports=imports), **KIT})
    before = digest_of("mine:solve")
    assert len(before) == 20
    write(folder, {"unrelated.py": "X = 1", "kit/unrelated.py": "X = 1", "kit/broken.py": "X = "})
    assert digest_of("mine:solve") == before
    edit(folder / file)
    assert digest_of("mine:solve") != before


def test_a_module_in_a_package_is_followed_to_what_lies_beside_the_package(folder: Path) -> None:
    files = ("shared.py", "crew/own.py", "crew/__init__.py", "crew/mine.py")
    write(folder, {**dict.fromkeys(files, "X = 1"), "crew/mine.py": OWN.format(imports="import shared, crew.own")})
    digests = {digest_of("crew.mine:solve")}
    for file in files:
        edit(folder / file)
        digests.add(digest_of("crew.mine:solve"))
    assert len(digests) == 1 + len(files)


def test_a_module_that_is_never_imported_may_be_broken(folder: Path) -> None:
    imports = "try:\n    import broken\nexcept SyntaxError:\n    pass"
    write(folder, {"mine.py": OWN.format(imports=imports), "broken.py": "X = "})
    assert len(digest_of("mine:solve")) == 20


@pytest.mark.parametrize("made", ["functools.partial(made)", "Made()", "wrapped(made)", "made"])
def test_an_architecture_that_another_module_made_is_known_by_both_modules(folder: Path, made: str) -> None:
    maker = (
        "import functools\n"
        "async def made(task, workbench): pass\n"
        "class Made:\n    async def __call__(self, task, workbench): pass\n"
        "def wrapped(function):\n    @functools.wraps(function)\n    async def inner(*all): pass\n    return inner\n"
    )
    write(folder, {"maker.py": maker, "mine.py": f"import functools\nfrom maker import *\nsolve = {made}\n"})
    digests = {digest_of("mine:solve")}
    for file in ("maker.py", "mine.py"):
        edit(folder / file)
        digests.add(digest_of("mine:solve"))
    assert len(digests) == 3


def test_our_own_architectures_have_a_digest_each_that_does_not_follow_the_package() -> None:
    names = [
        f"bench.run.architectures.{name}:{name}" for name in ("monolithic", "static", "runtime_structured", "derived_subtasks")
    ]
    digests = {digest_of(name) for name in names}
    assert len(digests) == len(names)
    assert {len(digest) for digest in digests} == {20}


def test_our_code_that_a_part_imports_by_a_former_path_is_followed_as_by_the_present_one() -> None:
    used = our_codebase().of("bench.architectures.autogen")
    assert used == our_codebase().of("bench.run.architectures.autogen") != ""


# -- the current folder ------------------------------------------------------------------------------------------------


def test_the_current_folder_can_be_imported_from_only_while_an_own_architecture_loads(folder: Path) -> None:
    write(folder, {"mine.py": OWN.format(imports="import sys\nPATH = list(sys.path)")})
    before = list(sys.path)
    load_architecture(architecture_named("mine:solve"))
    assert sys.path == before and sys.modules["mine"].PATH[0] == str(folder)
    load_architecture(architecture_named("static"))
    assert sys.path == before


def test_ours_are_never_taken_from_the_current_folder(folder: Path) -> None:
    write(folder, dict.fromkeys(("static.py", "bench/run/architectures/static.py"), "raise SystemExit('not ours')"))
    assert load_architecture(architecture_named("static")).__module__ == "bench.run.architectures.static"
