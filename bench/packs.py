"""Scenario packs: where they lie, how one is loaded, and what is refused.

    scenarios/<pack>/
      scenario.py               VARIANTS = ("paper", ...) and scenario(folder: PackFolder) -> Scenario;
                                it may import its siblings (`from .grader import grade`)
      documents/[<variant>/]NAME   what a model can see
      prompts/role.md           the system message
      prompts/<subtask>.md      the instructions of one subtask
      reference/[<variant>/]answer.json        {subtask: output}: an answer that solves it
      reference/[<variant>/]wrong/<name>.json  {"why": "...", "outputs": {subtask: output}}: put in the reference's place
                                            there, these outputs make an answer that must be refused
      reference/[<variant>/]truth/             what the grader alone reads

A part stands either in its folder or, where it differs by variant, in `<variant>/` below that folder.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from pydantic import ValidationError

from bench.errors import PackError, nearest
from bench.scenario import Baseline, Grader, Json, Scenario, Subtask, Task, WrongAnswer

DEFAULT_VARIANTS = ("paper",)


@dataclass(frozen=True)
class PackFolder:
    """A pack's folder, read in one variant. Raises PackError, naming the file, where one is missing or unreadable."""

    path: Path
    variant: str

    @property
    def name(self) -> str:
        return self.path.name

    def part(self, name: str) -> Path:
        """`<name>/<variant>/` where there is one, else `<name>/`."""
        own = self.path / name / self.variant
        return own if own.is_dir() else self.path / name

    def documents(self) -> dict[str, str]:
        """Name -> text, in the order of the names. A document in a subfolder is named with a slash."""
        root = self.part("documents")
        files = sorted(path for path in root.rglob("*") if path.is_file())
        return {path.relative_to(root).as_posix(): self._text(path) for path in files}

    def prompt(self, name: str) -> str:
        return self._text(self.path / "prompts" / f"{name}.md").strip()

    def reference(self) -> dict[str, Json]:
        answer = self._json(self.part("reference") / "answer.json")
        if not isinstance(answer, dict):
            raise PackError(f"{self.part('reference') / 'answer.json'}: must be an object with one output per subtask")
        return answer

    def wrong(self) -> tuple[WrongAnswer, ...]:
        return tuple(self._wrong(path) for path in sorted((self.part("reference") / "wrong").glob("*.json")))

    def _wrong(self, path: Path) -> WrongAnswer:
        value = self._json(path)
        if not (isinstance(value, dict) and isinstance(value.get("why"), str) and isinstance(value.get("outputs"), dict)):
            raise PackError(f'{path}: must be an object with "why" (a text) and "outputs" (an object)')
        return WrongAnswer(path.stem, value["why"], value["outputs"])

    @property
    def truth(self) -> Path:
        return self.part("reference") / "truth"

    def scenario(self, subtasks: Sequence[Subtask], *, grade: Grader, baseline: Baseline, secrets: Sequence[str]) -> Scenario:
        """The pack as a whole: what `scenario.py` defines in code, and beside it all that lies in the folder."""
        return Scenario(
            name=self.name,
            variant=self.variant,
            task=Task(self.name, self.prompt("role"), self.documents(), tuple(subtasks)),
            grade=grade,
            truth=self.truth,
            reference=self.reference(),
            wrong=self.wrong(),
            baseline=baseline,
            secrets=tuple(secrets),
        )

    def digest(self) -> str:
        """Of the names and bytes of all the pack's files, caches left out."""
        digest = hashlib.sha256()
        for path in sorted(self.path.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                content = path.read_bytes()
                digest.update(f"{path.relative_to(self.path).as_posix()}\0{len(content)}\0".encode())
                digest.update(content)
        return digest.hexdigest()[:20]

    def _text(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PackError(f"{path}: cannot be read: {error}") from error

    def _json(self, path: Path) -> Json:
        try:
            return json.loads(self._text(path))
        except ValueError as error:
            raise PackError(f"{path}: is no JSON: {error}") from error


def find_packs(roots: Iterable[Path]) -> dict[str, Path]:
    """Name -> folder of every pack under the roots. Raises PackError where a name stands twice."""
    found: dict[str, Path] = {}
    for root in roots:
        for path in sorted(root.glob("*/scenario.py")):
            folder = path.parent
            if folder.name in found and found[folder.name].resolve() != folder.resolve():
                raise PackError(f"two packs are named '{folder.name}': {found[folder.name]} and {folder}; rename one")
            found[folder.name] = folder
    return found


def load_pack(name: str, roots: Iterable[Path]) -> Scenario:
    """Load the pack `name`, or `name:variant`, and check that it is well-formed.

    Raises PackError: unknown pack or variant, a module that does not load, or any fault that `refuse` names.
    """
    packs = find_packs(roots)
    pack, _, variant = name.partition(":")
    if pack not in packs:
        raise PackError(f"unknown scenario '{pack}'; {nearest(pack, packs)}")
    module = _load_module(packs[pack])
    variants: tuple[str, ...] = getattr(module, "VARIANTS", DEFAULT_VARIANTS)
    if variant and variant not in variants:
        raise PackError(f"scenario '{pack}' has no variant '{variant}'; {nearest(variant, variants)}")
    folder = PackFolder(packs[pack], variant or variants[0])
    build = getattr(module, "scenario", None)
    if build is None:
        raise PackError(f"{folder.path / 'scenario.py'}: defines no function scenario(folder)")
    try:
        loaded = build(folder)
    except PackError:
        raise
    except Exception as error:
        raise PackError(f"{folder.path / 'scenario.py'}: scenario(folder) fails: {_one_line(error)}") from error
    if not isinstance(loaded, Scenario):
        raise PackError(f"{folder.path / 'scenario.py'}: scenario(folder) must return a bench.scenario.Scenario")
    refuse(loaded)
    full = pack if folder.variant == variants[0] else f"{pack}:{folder.variant}"
    return dataclasses.replace(loaded, name=full, variant=folder.variant, digest=folder.digest())


def variants_of(folder: Path) -> tuple[str, ...]:
    """The variants that the pack in `folder` comes in, the default first."""
    variants: tuple[str, ...] = getattr(_load_module(folder), "VARIANTS", DEFAULT_VARIANTS)
    return variants


def _load_module(folder: Path) -> ModuleType:
    # A pack is a package named after its folder's full path, so that two packs of one name never share a module.
    unique = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
    name = f"bench_pack_{unique}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, folder / "scenario.py", submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise PackError(f"{folder / 'scenario.py'}: is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise PackError(f"{folder / 'scenario.py'}: does not load: {_one_line(error)}") from error
    return module


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def refuse(scenario: Scenario) -> None:
    """Raise PackError for the first thing that makes a pack unusable, whatever its grader says."""
    task, where = scenario.task, f"scenario '{scenario.name}'"
    names = [subtask.name for subtask in task.subtasks]
    if not names:
        raise PackError(f"{where}: has no subtask")
    for name in names:
        if names.count(name) > 1 or name in task.documents:
            raise PackError(f"{where}: the name '{name}' stands twice among its subtasks and documents; rename one")
    _refuse_reads(task, where)
    unread = set(task.documents) - {name for subtask in task.subtasks for name in subtask.reads}
    if unread:
        raise PackError(f"{where}: no subtask reads the document '{min(unread)}'; let one read it, or remove it")
    for subtask in task.subtasks:
        _refuse_prompt(subtask, task, where)
    _refuse_answer(scenario.reference, task, f"{where}: the reference answer")
    if set(scenario.reference) != set(names):
        raise PackError(f"{where}: the reference answer must hold an output for each of {', '.join(names)}")
    for wrong in scenario.wrong:
        _refuse_answer(wrong.outputs, task, f"{where}: the wrong answer '{wrong.name}'")


def _refuse_reads(task: Task, where: str) -> None:
    done: set[str] = set(task.documents)
    names = {subtask.name for subtask in task.subtasks}
    for subtask in task.subtasks:
        for read in subtask.reads:
            if read not in names and read not in task.documents:
                known = nearest(read, names | set(task.documents))
                raise PackError(f"{where}: subtask '{subtask.name}' reads '{read}', which does not exist; {known}")
            if read not in done:
                cycle = _cycle(task, subtask.name)
                said = (
                    f"the reads form a cycle: {' -> '.join(cycle)}"
                    if cycle
                    else f"'{read}' stands after it; change their order"
                )
                raise PackError(f"{where}: subtask '{subtask.name}' reads '{read}', but {said}")
        done.add(subtask.name)


def _cycle(task: Task, start: str) -> list[str]:
    reads: Mapping[str, tuple[str, ...]] = {subtask.name: subtask.reads for subtask in task.subtasks}
    trail, seen = [[start]], {start}
    while trail:
        path = trail.pop()
        for read in reads.get(path[-1], ()):
            if read == start:
                return [*path, read]
            if read not in seen:
                seen.add(read)
                trail.append([*path, read])
    return []


def _refuse_prompt(subtask: Subtask, task: Task, where: str) -> None:
    """A prompt names an input by writing its name in backticks; it may name only what it reads."""
    inputs = set(task.documents) | {other.name for other in task.subtasks}
    named = set(re.findall(r"`([^`\n]+)`", subtask.instructions)) & inputs
    foreign = named - set(subtask.reads) - {subtask.name}
    if foreign:
        name = min(foreign)
        said = f"the prompt of '{subtask.name}' names `{name}`, which it does not read"
        raise PackError(f"{where}: {said}; add it to its reads, or take it out")
    if not any(field.is_required() for field in subtask.output.model_fields.values()):
        said = f"the output of '{subtask.name}' has no required field"
        raise PackError(f"{where}: {said}, so that no missing field could ever be noticed; require one")


def _refuse_answer(answer: Mapping[str, Json], task: Task, what: str) -> None:
    outputs = {subtask.name: subtask.output for subtask in task.subtasks}
    for name, value in answer.items():
        if name not in outputs:
            raise PackError(f"{what} holds an output for '{name}', which is no subtask; {nearest(name, outputs)}")
        try:
            outputs[name].model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(str(step) for step in first["loc"]) or "the whole"
            raise PackError(f"{what} does not fit the schema of '{name}' at {path}: {first['msg']}") from error
