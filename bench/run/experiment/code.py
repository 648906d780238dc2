"""The code that a trial depends on: the files that its parts import, directly or through other files, and a digest of this
code.

The digest is of what our modules do, their syntax trees without docstrings, comments and layout
(`bench.run.experiment.syntax`). Of all other files, and of the modules in BY_BYTES, it is of their bytes.

The core is what every trial runs through. An architecture, an effect or a model is only in the ids of the trials that use it:
by its module, by what that imports and the core does not, and by the versions of the packages that these import. Imports for
types alone (`if TYPE_CHECKING:`) are ignored, and so is code that shows results.
"""

from __future__ import annotations

import ast
import hashlib
import platform
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from bench.common.former_paths import present_path
from bench.common.import_statements import executed_imports_in
from bench.common.registry import Part
from bench.run.experiment.syntax import syntax_of

PACKAGE = Path(__file__).resolve().parents[2]
ENTRY = "bench.run.experiment.trial"
"""The module in which every trial begins."""
SHOWS = (("read",), ("rerun",), ("elsewhere",), ("cli",), ("worlds", "read"))
"""The rooms beyond the wall: an edit there changes no trial."""
BY_BYTES = ("run", "frameworks")
"""The room whose modules are digested by their bytes: frameworks make prompts of docstrings and of source text."""


@dataclass(frozen=True)
class Home:
    """A Python file. `root` is the folder from which its module is imported. A module that is installed `by_itself` has no
    siblings: the other files in that folder belong to other packages."""

    path: Path
    root: Path
    by_itself: bool = False


@dataclass(frozen=True)
class Imported:
    """One import statement: `from .module import names` has the level 1."""

    module: str
    names: tuple[str, ...] = ()
    level: int = 0

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]

    @property
    def paths(self) -> list[list[str]]:
        """The possible modules of the import, as lists of names: one for each imported name, or the module itself if no name is
        given."""
        parts = self.module.split(".") if self.module else []
        return [[*parts, name] for name in self.names] or [parts]


def _names_in(folder: Path) -> frozenset[str]:
    """Return the names of the files and folders in a folder; empty if the folder does not exist."""
    return frozenset(path.name for path in folder.iterdir()) if folder.is_dir() else frozenset()


NamesIn = Callable[[Path], frozenset[str]]


@dataclass(frozen=True)
class Reached:
    """Files with names that do not depend on the place of installation, and the modules of other packages that these files
    import."""

    files: Mapping[Path, str] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()


class Codebase:
    """The code of our package in some folder, and the code that is used with it."""

    def __init__(self, package: Path = PACKAGE):
        self.package = package
        self._uses: dict[Path, tuple[tuple[Home, ...], frozenset[str]]] = {}
        self._reaches: dict[tuple[str, ...], Reached] = {}
        self._syntax: dict[Path, bytes] = {}
        """Our file -> the digest of what it does."""

    @cached_property
    def digest(self) -> str:
        """The digest of the core's code. It is the same on each version of Python."""
        return self._digest_of(self._core.files, {})

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """The versions of Python and of the packages that the core imports."""
        return {"python": platform.python_version(), **_versions(self._core.packages)}

    @property
    def core_files(self) -> Collection[Path]:
        """The files through which every trial runs."""
        return self._core.files

    def of_part(self, part: Part, *more: str) -> str:
        """Return the digest of a part's code and of `more` modules that it runs through. The name of the part's package comes
        first, unless the package is ours."""
        digest = self.of(*part.modules, *filter(None, [part.home]), *more)
        return f"{part.package} {digest}" if part.package else digest

    def of(self, *modules: str) -> str:
        """Return the digest of the files that these modules reach and the core does not; "" if there are none."""
        reached = self._reach(modules)
        files = {path: name for path, name in reached.files.items() if path not in self._core.files}
        versions = _versions(reached.packages - self._core.packages)
        return self._digest_of(files, versions) if files or versions else ""

    @cached_property
    def _core(self) -> Reached:
        return self._reach([ENTRY])

    @cached_property
    def _ours(self) -> Mapping[str, Path]:
        """The files of our modules that a trial can depend on, by module. The whole package's `__init__` is only for readers:
        no trial runs it."""
        files: dict[str, Path] = {}
        for path in self.package.rglob("*.py"):
            parts = path.relative_to(self.package).with_suffix("").parts
            if parts != ("__init__",) and not any(parts[: len(room)] == room for room in SHOWS):
                files[".".join(("bench", *(parts[:-1] if parts[-1] == "__init__" else parts)))] = path
        return files

    def _reach(self, modules: Iterable[str]) -> Reached:
        """Return the files and packages that these modules reach by imports. The result is cached for our modules."""
        if known := self._reaches.get(key := tuple(modules)):
            return known
        files, packages = dict[Path, str](), set[str]()
        queue = [home for module in key for home in self._homes(module)]
        names = cache(_names_in)  # for this search: each folder is read once, and not for each module that can lie in it
        while queue:
            home = queue.pop()
            if home.path not in files:
                files[home.path] = home.path.relative_to(home.root).as_posix()
                used, outside = self._used_files(home, names)
                queue += used
                packages |= outside
        reached = Reached(files, frozenset(packages - sys.stdlib_module_names - {""}))
        if all(module.partition(".")[0] == "bench" for module in key):
            self._reaches[key] = reached
        return reached

    def _used_files(self, home: Home, names: NamesIn) -> tuple[Sequence[Home], frozenset[str]]:
        """Return the files that a file's imports run, and the imported modules of other packages. The result is cached for our
        files."""
        if home.path in self._uses:
            return self._uses[home.path]
        is_ours = home.root == self.package.parent
        files, packages = [] if is_ours else list(_parent_packages(home, names)), set[str]()
        in_package = home.path.is_relative_to(self.package)
        for imported in self._imports(home.path) if in_package else _imports_in(home.path.read_bytes()):
            if imported.top == "bench" and not imported.level:
                files += self._files_of_import(imported)
            elif beside := list(_files_beside(home, imported, names)):
                files += beside
            else:
                packages.add(imported.top)
        result = tuple(files), frozenset(packages)
        if is_ours:
            self._uses[home.path] = result
        return result

    def _imports(self, path: Path) -> Sequence[Imported]:
        """Return the imports of a file of ours, and keep the digest of its syntax. The file is parsed once for both."""
        syntax, imports = _parse(path.read_bytes())
        if path.relative_to(self.package).parts[: len(BY_BYTES)] != BY_BYTES:
            self._syntax[path] = syntax
        return imports

    def _digest_of(self, files: Mapping[Path, str], versions: Mapping[str, str]) -> str:
        """Return one digest of these files, each with its name, and of these package versions."""
        digest = hashlib.sha256()
        for path, name in sorted(files.items(), key=lambda item: (item[1], item[0])):
            content = self._syntax.get(path) or path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        digest.update(repr(sorted(versions.items())).encode())
        return digest.hexdigest()[:20]

    def _homes(self, module: str) -> Iterator[Home]:
        """Yield the files of a module: of our package, or of a loaded module of another package."""
        if module.partition(".")[0] == "bench":
            yield from self._files_of_import(Imported(module))
        elif file := getattr(sys.modules.get(module), "__file__", None):
            path = Path(file).resolve()
            depth = module.count(".") + (path.name == "__init__.py")
            is_installed = "site-packages" in path.parents[depth].parts
            yield Home(path, path.parents[max(0, depth - is_installed)], by_itself=is_installed and depth == 0)

    def _files_of_import(self, imported: Imported) -> Iterator[Home]:
        """Yield the files of our package that an import runs."""
        for named in imported.paths:
            parts = (present_path(name := ".".join(named)) or name).split(".")
            for end in range(2, len(parts) + 1):
                if path := self._ours.get(".".join(parts[:end])):
                    yield Home(path, self.package.parent, by_itself=True)


@cache
def our_codebase() -> Codebase:
    """Return the codebase of this installation. It is read once in a process."""
    return Codebase()


@lru_cache(maxsize=1024)
def _parse(source: bytes) -> tuple[bytes, Sequence[Imported]]:
    """Return the digest of the syntax of a file of ours, and its imports. The same source is parsed once in a process."""
    tree = ast.parse(source)
    return hashlib.sha256(syntax_of(tree).encode()).digest(), tuple(_run_imports(tree))


@lru_cache(maxsize=1024)
def _imports_in(source: bytes) -> Sequence[Imported]:
    """Return the imports of another package's file. The result is cached, since each architecture in one folder needs it."""
    try:
        return tuple(_run_imports(ast.parse(source)))
    except (SyntaxError, ValueError):
        return ()  # it was never imported


def _run_imports(tree: ast.Module) -> Iterator[Imported]:
    for statement in executed_imports_in(tree):
        names = tuple(alias.name for alias in statement.names)
        if isinstance(statement, ast.Import):
            yield from map(Imported, names)
        else:
            yield Imported(statement.module or "", names, statement.level)


def _files_beside(home: Home, imported: Imported, names_in: NamesIn) -> Iterator[Home]:
    """Yield the files below a file's folder, or its root, that an import can mean."""
    for parts in imported.paths:
        if imported.level:
            starts = [(home.path.parents[imported.level - 1], parts)]
        elif home.by_itself:
            starts = []
        else:  # the packages above the folder are named, too, and their number is unknown
            starts = [(home.root, parts[start:]) for start in range(len(parts))]
        for folder, rest in starts:
            yield from (Home(path, home.root, home.by_itself) for path in _files_along(folder, rest, names_in))


def _parent_packages(home: Home, names_in: NamesIn) -> Iterator[Home]:
    """Yield the `__init__` files of the packages that contain a module."""
    for folder in home.path.parents:
        if folder != home.root and folder.is_relative_to(home.root) and "__init__.py" in names_in(folder):
            yield Home(folder / "__init__.py", home.root, home.by_itself)


def _files_along(folder: Path, parts: Sequence[str], names_in: NamesIn) -> Iterator[Path]:
    """Yield the `__init__` files of the nested packages that an import runs, and the module at the end of its path, as far as
    they exist."""
    for part in parts:
        entries = names_in(folder)
        if f"{part}.py" in entries:
            yield (folder / f"{part}.py").resolve()
        if part not in entries:
            return
        folder /= part
        if "__init__.py" in names_in(folder):
            yield (folder / "__init__.py").resolve()


def _versions(modules: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of these modules' packages. A module that is not installed is left out."""
    return dict(filter(None, map(_version_of, modules)))


@cache
def _version_of(module: str) -> tuple[str, str] | None:
    try:
        return module, metadata.version(module)
    except metadata.PackageNotFoundError:
        distributions = _distributions().get(module) if module in sys.modules or find_spec(module) else None
        return (distributions[0], metadata.version(distributions[0])) if distributions else None


@cache
def _distributions() -> Mapping[str, Sequence[str]]:
    """Return the packages that install each module, for modules whose package has another name. It is slow: it lists every file
    of every package."""
    return metadata.packages_distributions()
