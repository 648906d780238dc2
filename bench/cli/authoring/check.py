"""`bench check`: checks that a pack is sound.

The reference answer must be right, and the wrong answers must be wrong. The verifier must catch faults. No text that a model
sees may contain the answer. Keyword rules must not solve the pack, and every architecture must be able to solve it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from bench.cli.authoring.hooks import HookFailed, TaskHooks
from bench.cli.authoring.soundness import Soundness, checks_of, notes_on
from bench.common.errors import PackError, Unavailable, one_line
from bench.common.files import text_of
from bench.run.packs import find_packs, instances_of, load_pack, variants_of

LOAD_CHECK = "it can be loaded"
"""The title of the check that loads a pack."""
REQUIREMENTS = "requirements.txt"
"""A pack's file that names the packages which its code runs beside this one, as pip reads them."""
MAX_REQUIREMENTS_BYTES, LONGEST_PROBLEM = 65_536, 200
"""The most bytes of a pack's requirements file, and the most characters of a message about the file."""
MAX_LINES, MAX_NAMES = 10, 3
"""How many problems of a check are shown, and how many instances are named for one problem."""
MIN_EXCESS_SHARE = 0.3
"""An excess, such as a right answer of the baseline, is a problem if at least this share of a pack's instances has it."""


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
    """Check a pack, and yield a label and a result for each check and note of each variant, or of the named variant alone.

    A result covers all instances of a variant. Raises PackError if the pack or the variant does not exist.
    """
    pack, _, variant = name.partition(":")
    folder = find_packs(packs).get(pack)
    if folder is None:
        load_pack(name, packs)  # raises, and names what exists
        return
    try:
        if lacking := _missing_packages(folder / REQUIREMENTS):
            needs = f"it needs {', '.join(lacking)}; pip install -r {folder / REQUIREMENTS}"
            yield name, CheckResult(f"not available here: {needs}", is_note=True)
            return
        variants = variants_of(folder)
    except PackError as error:
        yield name, CheckResult(LOAD_CHECK, (str(error),))
        return
    if variant and variant not in variants:
        load_pack(name, packs)  # raises, and names what exists
    for checked in [variant] if variant else variants:
        scenario = pack if checked == variants[0] else f"{pack}:{checked}"
        yield from _check_variant(scenario, folder, packs)


def _missing_packages(path: Path) -> list[str]:
    """Return the packages in a pack's requirements that are not installed in a fitting version. Raises PackError."""
    try:
        lines = text_of(path, MAX_REQUIREMENTS_BYTES).splitlines() if path.is_file() else []
        required = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    except (InvalidRequirement, OSError, ValueError) as error:
        problem = one_line(str(error), LONGEST_PROBLEM)
        raise PackError(f"{path}: {problem}; name one package a line, as pip reads them") from error
    return [str(requirement) for requirement in required if not _is_installed(requirement)]


def _is_installed(requirement: Requirement) -> bool:
    """Whether a package is installed in a version that fits a requirement."""
    return any(requirement.specifier.contains(package.version) for package in distributions(name=requirement.name))


def _check_variant(name: str, folder: Path, packs: Sequence[Path]) -> Iterator[tuple[str, CheckResult]]:
    """Yield the results of all checks of one variant."""
    try:
        instances = instances_of(name, packs)
    except Unavailable as error:
        yield name, CheckResult(f"not available here: {error}", is_note=True)
        return
    except PackError as error:
        yield name, CheckResult(LOAD_CHECK, (str(error),))
        return
    hooks_by_instance: dict[str, TaskHooks] = {}
    load_errors: dict[str, Soundness] = {}
    for instance in instances:
        try:
            hooks_by_instance[instance] = TaskHooks(load_pack(name, packs, instance), folder)
        except PackError as error:
            load_errors[instance] = Soundness((str(error),))
    label = name if instances == ("",) else f"{name} ({len(instances)} instances)"
    if load_errors:
        yield label, _summary(LOAD_CHECK, load_errors, len(instances))
    if hooks_by_instance:
        for title, check in checks_of(next(iter(hooks_by_instance.values())).scenario).items():
            results = {instance: _run_check(check, hooks) for instance, hooks in hooks_by_instance.items()}
            yield label, _summary(title, _judge_excess(results), len(hooks_by_instance))
    for note in dict.fromkeys(note for hooks in hooks_by_instance.values() for note in notes_on(hooks)):
        yield label, CheckResult(note, is_note=True)


def _run_check(check: Callable[[TaskHooks], Soundness], hooks: TaskHooks) -> Soundness:
    """Run a check. If the pack's code fails where the check does not expect an error, return the error as a problem."""
    try:
        soundness: Soundness = hooks.call("the pack", check, hooks)
    except HookFailed as failure:
        return Soundness((str(failure),))
    return soundness


def _judge_excess(results: Mapping[str, Soundness]) -> Mapping[str, Soundness]:
    """Return the results with their `excess` judged. If at least MIN_EXCESS_SHARE of the instances have an excess, each excess
    is a problem. If fewer have one, a detail says how many."""
    excess_count = sum(bool(result.excess) for result in results.values())
    if excess_count >= MIN_EXCESS_SHARE * len(results):
        return {
            name: replace(result, problems=(*result.problems, result.excess)) if result.excess else result
            for name, result in results.items()
        }
    if not excess_count:
        return results
    detail = f"right in {excess_count} of {len(results)}"
    return {name: replace(result, detail=detail) for name, result in results.items()}


def _summary(title: str, results: Mapping[str, Soundness], instance_count: int) -> CheckResult:
    """Return one result for all instances. A problem of several instances becomes one line that names the instances."""
    instances_by_problem: dict[str, list[str]] = {}
    for instance, result in results.items():
        for problem in result.problems:
            instances_by_problem.setdefault(problem, []).append(instance)
    lines = [f"{_name_instances(instances)}{problem}" for problem, instances in instances_by_problem.items()]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} problems more"]
    failed = sum(bool(result.problems) for result in results.values())
    details = {result.detail for result in results.values() if result.detail and not result.problems}
    if failed and instance_count > 1:
        return CheckResult(f"{title} ({failed} of {instance_count} instances fail)", tuple(lines))
    return CheckResult(f"{title} ({details.pop()})" if len(details) == 1 else title, tuple(lines))


def _name_instances(instances: Sequence[str]) -> str:
    """Return the names of the instances with a problem, as the beginning of a line."""
    if instances == [""]:
        return ""
    left_out = len(instances) - MAX_NAMES
    return f"{', '.join(instances[:MAX_NAMES])}{f' and {left_out} more' if left_out > 0 else ''}: "
