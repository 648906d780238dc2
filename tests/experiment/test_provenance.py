"""A digest changes with what it stands for, and with nothing else."""

from __future__ import annotations

import ast
import importlib
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bench.architectures.registry import architecture_named, load_architecture
from bench.experiment import provenance
from bench.experiment.provenance import DETERMINING, PACKAGE, architecture_digest, code_digest, determining
from bench.serve.free import free_scenario

# -- the code that determines every trial ------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of ours, to be edited; the packages it stands on, whose look-up takes its time, are another matter."""
    monkeypatch.setattr(provenance, "package_versions", dict)
    return Path(shutil.copytree(PACKAGE, tmp_path / "bench", ignore=shutil.ignore_patterns("__pycache__")))


def edit(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")


def imported(path: Path) -> Iterator[str]:
    """Each module of ours that a file names in an import, or may have from one, as a path without its ending."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (name.removeprefix("bench.").replace(".", "/") for name in names if name.startswith("bench."))


def test_each_file_that_determines_trials_changes_the_digest(package: Path) -> None:
    digests = {code_digest(package)}
    files = determining(package)
    assert {"server.py", "wire.py", "workbench.py", "caller.py", "cached.py", "seeding.py"} <= {path.name for path in files}
    for path in files:
        edit(path)
        digests.add(code_digest(package))
    assert len(digests) == 1 + len(files)


def test_no_other_file_changes_it(package: Path) -> None:
    before = code_digest(package)
    others = set(package.rglob("*.py")) - set(determining(package))
    assert {"store.py", "tables.py", "main.py", "parent.py", "static.py"} <= {path.name for path in others}
    for path in others:
        edit(path)
    assert code_digest(package) == before == code_digest()


def test_what_determines_trials_stands_on_nothing_else_of_ours_but_what_only_says_things() -> None:
    allowed = {name.removesuffix(".py") for name in DETERMINING}
    used = {name.split("/")[0] for path in determining() for name in imported(path)}
    assert used - allowed <= {"wording"}


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
    return architecture_digest(load_architecture(architecture_named(name)), name.partition(":")[0])


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


@pytest.mark.parametrize("made", ["functools.partial(made, 3)", "Made()", "wrapped(made)", "made"])
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
    names = [f"bench.architectures.{name}:{name}" for name in ("monolithic", "static", "runtime_structured", "reflexion")]
    digests = {digest_of(name) for name in names}
    assert len(digests) == len(names)
    assert {len(digest) for digest in digests} == {20}


# -- the current folder ------------------------------------------------------------------------------------------------


def test_the_current_folder_can_be_imported_from_only_while_an_own_architecture_loads(folder: Path) -> None:
    write(folder, {"mine.py": OWN.format(imports="import sys\nPATH = list(sys.path)")})
    before = list(sys.path)
    load_architecture(architecture_named("mine:solve"))
    assert sys.path == before and sys.modules["mine"].PATH[0] == str(folder)
    load_architecture(architecture_named("static"))
    assert sys.path == before


def test_ours_are_never_taken_from_the_current_folder(folder: Path) -> None:
    write(folder, dict.fromkeys(("static.py", "bench/architectures/static.py"), "raise SystemExit('not ours')"))
    assert load_architecture(architecture_named("static")).__module__ == "bench.architectures.static"
