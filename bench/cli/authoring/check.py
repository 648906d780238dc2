"""`bench check`: is a pack sound? Its reference answer must be right and its wrong answers wrong. Its verifier must catch
faults, and nothing that a model sees may give the answer away. Keyword rules must not solve it, and every architecture must be
able to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from bench.cli.authoring.hooks import TaskHooks
from bench.cli.authoring.soundness import Soundness, checks_of, notes_on
from bench.cli.hooks import HookFailed
from bench.common.errors import PackError, Unavailable, one_line
from bench.common.files import text_of
from bench.run.packs import find_packs, instances_of, load_pack, variants_of

LOADS = "it can be loaded"
REQUIREMENTS = "requirements.txt"
"""A pack's file that names the packages which its code runs beside this one, as pip reads them."""
MOST_BYTES, MOST_SHOWN = 65_536, 200
"""Of a pack's requirements; characters of what is wrong with them."""
MOST_LINES, MOST_NAMES = 10, 3
"""How many problems of a check are shown, and how many instances are named for one problem."""
TOO_MANY = 0.3
"""An excess, such as a baseline that is right, is a problem from this share of a pack's instances on."""


@dataclass(frozen=True)
class CheckResult:
    """The result of one check. `problems` has a line for each problem; it is empty if the check holds. A note cannot fail."""

    what: str
    problems: tuple[str, ...] = ()
    is_note: bool = False

    @property
    def status(self) -> str:
        return "FAILED" if self.problems else "note" if self.is_note else "ok"


def check_pack(name: str, packs: Sequence[Path]) -> Iterator[tuple[str, CheckResult]]:
    """Check a pack, and yield (label, result) for each check and note of each variant, or of the named variant alone.

    A result covers all instances of a variant. Raises PackError if the pack or the variant does not exist.
    """
    pack, _, variant = name.partition(":")
    folder = find_packs(packs).get(pack)
    if folder is None:
        load_pack(name, packs)  # raises, and names what exists
        return
    try:
        if lacking := _lacking(folder / REQUIREMENTS):
            needs = f"it needs {', '.join(lacking)}; pip install -r {folder / REQUIREMENTS}"
            yield name, CheckResult(f"not available here: {needs}", is_note=True)
            return
        variants = variants_of(folder)
    except PackError as error:
        yield name, CheckResult(LOADS, (str(error),))
        return
    if variant and variant not in variants:
        load_pack(name, packs)
    for each in [variant] if variant else variants:
        yield from _check_variant(pack if each == variants[0] else f"{pack}:{each}", folder, packs)


def _lacking(path: Path) -> list[str]:
    """Return the packages of a pack's requirements that are not installed in a version that it takes. Raises PackError."""
    try:
        lines = text_of(path, MOST_BYTES).splitlines() if path.is_file() else []
        required = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    except (InvalidRequirement, OSError, ValueError) as error:
        raise PackError(f"{path}: {one_line(str(error), MOST_SHOWN)}; name one package a line, as pip reads them") from error
    return [
        str(each)
        for each in required
        if not any(each.specifier.contains(package.version) for package in distributions(name=each.name))
    ]


def _check_variant(name: str, folder: Path, packs: Sequence[Path]) -> Iterator[tuple[str, CheckResult]]:
    try:
        instances = instances_of(name, packs)
    except Unavailable as error:
        yield name, CheckResult(f"not available here: {error}", is_note=True)
        return
    except PackError as error:
        yield name, CheckResult(LOADS, (str(error),))
        return
    loaded: dict[str, TaskHooks] = {}
    refused: dict[str, Soundness] = {}
    for instance in instances:
        try:
            loaded[instance] = TaskHooks(load_pack(name, packs, instance), folder)
        except PackError as error:
            refused[instance] = Soundness((str(error),))
    label = name if instances == ("",) else f"{name} ({len(instances)} instances)"
    if refused:
        yield label, _summary(LOADS, refused, len(instances))
    if loaded:
        for what, check in checks_of(next(iter(loaded.values())).scenario).items():
            results = {instance: _safely(check, hooks) for instance, hooks in loaded.items()}
            yield label, _summary(what, _weigh(results), len(loaded))
    for note in dict.fromkeys(note for hooks in loaded.values() for note in notes_on(hooks)):
        yield label, CheckResult(note, is_note=True)


def _safely(check: Callable[[TaskHooks], Soundness], hooks: TaskHooks) -> Soundness:
    """Run a check, and report it as a problem if code of the pack fails where no check expects that."""
    try:
        soundness: Soundness = hooks.call("the pack", check, hooks)
    except HookFailed as failure:
        return Soundness((str(failure),))
    return soundness


def _weigh(results: Mapping[str, Soundness]) -> Mapping[str, Soundness]:
    """Return the results. If too many instances have a defect, it is a problem; else it is a detail of the whole pack."""
    having, of = sum(bool(result.excess) for result in results.values()), len(results)
    if having >= TOO_MANY * of:
        return {
            name: replace(result, problems=(*result.problems, result.excess)) if result.excess else result
            for name, result in results.items()
        }
    return (
        {name: replace(result, detail=f"right in {having} of {of}") for name, result in results.items()} if having else results
    )


def _summary(what: str, results: Mapping[str, Soundness], of: int) -> CheckResult:
    """Return one result for all instances. A problem of several instances is one line that names them."""
    having: dict[str, list[str]] = {}
    for instance, result in results.items():
        for problem in result.problems:
            having.setdefault(problem, []).append(instance)
    lines = [f"{_name_instances(instances)}{problem}" for problem, instances in having.items()]
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"and {len(lines) - MOST_LINES} problems more"]
    failed = sum(bool(result.problems) for result in results.values())
    details = {result.detail for result in results.values() if result.detail and not result.problems}
    if failed and of > 1:
        return CheckResult(f"{what} ({failed} of {of} instances fail)", tuple(lines))
    return CheckResult(f"{what} ({details.pop()})" if len(details) == 1 else what, tuple(lines))


def _name_instances(instances: Sequence[str]) -> str:
    if instances == [""]:
        return ""
    more = len(instances) - MOST_NAMES
    return f"{', '.join(instances[:MOST_NAMES])}{f' and {more} more' if more > 0 else ''}: "
