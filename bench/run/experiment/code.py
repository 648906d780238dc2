"""The code that a trial depends on: the files that its parts import, directly or through other files, and a digest of these
files.

The digest is made from the syntax trees of our modules, without docstrings, comments and layout
(`bench.run.experiment.syntax`). For all other files, and for the modules in BYTES_ROOM, it is made from their bytes.

The core is the code that every trial runs through. An architecture, an effect or a model is only in the ids of the trials that
use it: by its module, by the files that this module imports and the core does not, and by the versions of the packages that
these files import. Imports for types alone (`if TYPE_CHECKING:`) are ignored, and so is code that shows results.
"""

from __future__ import annotations

import ast
import hashlib
import platform
import subprocess
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
from bench.record.origin import CodeVersion
from bench.record.provenance import DISTRIBUTION
from bench.run.experiment.syntax import syntax_of

PACKAGE = Path(__file__).resolve().parents[2]
ENTRY_MODULE = "bench.run.experiment.trial"
"""The module in which every trial begins."""
READING_ROOMS = (("read",), ("rerun",), ("elsewhere",), ("cli",), ("worlds", "read"))
"""The rooms that only read or show what was recorded: an edit there changes no trial."""
BYTES_ROOM = ("run", "frameworks")
"""The room whose modules are digested by their bytes, since frameworks make prompts from docstrings and source text."""


@dataclass(frozen=True)
class SourceFile:
    """A Python file. `root` is the folder from which its module is imported. `by_itself` says that the other files in that
    folder belong to other packages, so that the module imports none of them."""

    path: Path
    root: Path
    by_itself: bool = False


@dataclass(frozen=True)
class ImportStatement:
    """An import statement. `from .module import names` has the level 1; `import module` has no names and the level 0."""

    module: str
    names: tuple[str, ...] = ()
    level: int = 0

    @property
    def top(self) -> str:
        """The name of the top-level package."""
        return self.module.partition(".")[0]

    @property
    def paths(self) -> list[list[str]]:
        """The modules that the import can mean, each as the list of the names in its dotted path: one module for each imported
        name, or the module itself if no name is imported."""
        parts = self.module.split(".") if self.module else []
        return [[*parts, name] for name in self.names] or [parts]


def _names_in(folder: Path) -> frozenset[str]:
    """Return the names of the files and folders in a folder; empty if the folder does not exist."""
    return frozenset(path.name for path in folder.iterdir()) if folder.is_dir() else frozenset()


NamesIn = Callable[[Path], frozenset[str]]


@dataclass(frozen=True)
class ImportedCode:
    """Files with their names, and the modules of other packages that these files import. The names do not depend on the folder
    of the installation."""

    files: Mapping[Path, str] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()


class Codebase:
    """The code of our package in some folder, and the code that is used with it."""

    def __init__(self, package: Path = PACKAGE):
        self.package = package
        self._used_by_file: dict[Path, tuple[tuple[SourceFile, ...], frozenset[str]]] = {}
        self._imported_by_modules: dict[tuple[str, ...], ImportedCode] = {}
        self._syntax: dict[Path, bytes] = {}
        """File of ours -> the digest of its syntax tree."""

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
        """Return the digest of a part's code and of `more` modules that the part uses. The name of the part's package comes
        first, unless the package is ours."""
        digest = self.of(*part.modules, *filter(None, [part.home]), *more)
        return f"{part.package} {digest}" if part.package else digest

    def of(self, *modules: str) -> str:
        """Return the digest of the files that these modules reach and the core does not; "" if there are none."""
        code = self._imported_code(modules)
        files = {path: name for path, name in code.files.items() if path not in self._core.files}
        versions = _versions(code.packages - self._core.packages)
        return self._digest_of(files, versions) if files or versions else ""

    @cached_property
    def _core(self) -> ImportedCode:
        return self._imported_code([ENTRY_MODULE])

    @cached_property
    def _ours(self) -> Mapping[str, Path]:
        """The files of our modules that a trial can depend on, by module. The top-level `__init__` is left out: it is for
        readers, and no trial runs it."""
        files: dict[str, Path] = {}
        for path in self.package.rglob("*.py"):
            parts = path.relative_to(self.package).with_suffix("").parts
            if parts != ("__init__",) and not any(parts[: len(room)] == room for room in READING_ROOMS):
                files[".".join(("bench", *(parts[:-1] if parts[-1] == "__init__" else parts)))] = path
        return files

    def _imported_code(self, modules: Iterable[str]) -> ImportedCode:
        """Return the files and packages that these modules reach by imports. The result is cached for our modules."""
        if cached := self._imported_by_modules.get(key := tuple(modules)):
            return cached
        files, packages = dict[Path, str](), set[str]()
        queue = [source for module in key for source in self._sources(module)]
        names = cache(_names_in)  # so that each folder is listed once
        while queue:
            source = queue.pop()
            if source.path not in files:
                files[source.path] = source.path.relative_to(source.root).as_posix()
                more_files, more_packages = self._used_files(source, names)
                queue += more_files
                packages |= more_packages
        code = ImportedCode(files, frozenset(packages - sys.stdlib_module_names - {""}))
        if all(module.partition(".")[0] == "bench" for module in key):
            self._imported_by_modules[key] = code
        return code

    def _used_files(self, source: SourceFile, names: NamesIn) -> tuple[Sequence[SourceFile], frozenset[str]]:
        """Return the files that a file's imports run, and the imported modules of other packages. The result is cached for our
        files."""
        if source.path in self._used_by_file:
            return self._used_by_file[source.path]
        is_ours = source.root == self.package.parent
        files, packages = [] if is_ours else list(_parent_packages(source, names)), set[str]()
        in_package = source.path.is_relative_to(self.package)
        for imported in self._imports(source.path) if in_package else _imports_in(source.path.read_bytes()):
            if imported.top == "bench" and not imported.level:
                files += self._files_of_import(imported)
            elif neighbours := list(_files_beside(source, imported, names)):
                files += neighbours
            else:
                packages.add(imported.top)
        result = tuple(files), frozenset(packages)
        if is_ours:
            self._used_by_file[source.path] = result
        return result

    def _imports(self, path: Path) -> Sequence[ImportStatement]:
        """Return the imports of a file of ours, and store the digest of its syntax. The file is parsed once for both."""
        syntax, imports = _parse(path.read_bytes())
        if path.relative_to(self.package).parts[: len(BYTES_ROOM)] != BYTES_ROOM:
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

    def _sources(self, module: str) -> Iterator[SourceFile]:
        """Yield the files of a module: of our package, or of a loaded module of another package."""
        if module.partition(".")[0] == "bench":
            yield from self._files_of_import(ImportStatement(module))
        elif file := getattr(sys.modules.get(module), "__file__", None):
            path = Path(file).resolve()
            depth = module.count(".") + (path.name == "__init__.py")
            is_installed = "site-packages" in path.parents[depth].parts
            yield SourceFile(path, path.parents[max(0, depth - is_installed)], by_itself=is_installed and depth == 0)

    def _files_of_import(self, imported: ImportStatement) -> Iterator[SourceFile]:
        """Yield the files of our package that an import runs."""
        for names in imported.paths:
            parts = (present_path(name := ".".join(names)) or name).split(".")
            for end in range(2, len(parts) + 1):
                if path := self._ours.get(".".join(parts[:end])):
                    yield SourceFile(path, self.package.parent, by_itself=True)


@cache
def our_codebase() -> Codebase:
    """Return the codebase of this installation. It is read once in a process."""
    return Codebase()


def code_version() -> CodeVersion:
    """Return the version of the running code."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--", "bench", "scenarios", "studies", "configs", "pyproject.toml")
    dirty = bool(changed) if commit else None
    return CodeVersion(
        version=metadata.version(DISTRIBUTION), commit=commit, dirty=dirty, digest=our_codebase().digest, digest_of="syntax"
    )


def _git(*words: str) -> str | None:
    """Return the output of a git command in the folder of our code; None if it fails."""
    try:
        process = subprocess.run(["git", *words], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()


@lru_cache(maxsize=1024)
def _parse(source: bytes) -> tuple[bytes, Sequence[ImportStatement]]:
    """Return the digest of the syntax of a file of ours, and its imports. The same source is parsed once in a process."""
    tree = ast.parse(source)
    return hashlib.sha256(syntax_of(tree).encode()).digest(), tuple(_run_imports(tree))


@lru_cache(maxsize=1024)
def _imports_in(source: bytes) -> Sequence[ImportStatement]:
    """Return the imports of another package's file. The result is cached, since each architecture in one folder needs it."""
    try:
        return tuple(_run_imports(ast.parse(source)))
    except (SyntaxError, ValueError):
        return ()  # Python cannot import this file


def _run_imports(tree: ast.Module) -> Iterator[ImportStatement]:
    """Yield the import statements of a module that run when it is used."""
    for statement in executed_imports_in(tree):
        names = tuple(alias.name for alias in statement.names)
        if isinstance(statement, ast.Import):
            yield from map(ImportStatement, names)
        else:
            yield ImportStatement(statement.module or "", names, statement.level)


def _files_beside(source: SourceFile, imported: ImportStatement, names_in: NamesIn) -> Iterator[SourceFile]:
    """Yield the files that an import in this file can mean: below the file's folder, or below its root."""
    for parts in imported.paths:
        if imported.level:
            starts = [(source.path.parents[imported.level - 1], parts)]
        elif source.by_itself:
            starts = []
        else:  # the path can begin with packages above the root, and their number is unknown
            starts = [(source.root, parts[start:]) for start in range(len(parts))]
        for folder, rest in starts:
            yield from (SourceFile(path, source.root, source.by_itself) for path in _files_along(folder, rest, names_in))


def _parent_packages(source: SourceFile, names_in: NamesIn) -> Iterator[SourceFile]:
    """Yield the `__init__` files of the packages that contain a module."""
    for folder in source.path.parents:
        if folder != source.root and folder.is_relative_to(source.root) and "__init__.py" in names_in(folder):
            yield SourceFile(folder / "__init__.py", source.root, source.by_itself)


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
    """Return the package of a module and its installed version; None if it is not installed."""
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
