"""Small generated programs with tests, edited at random: what is kept after an edit must be what a full run gives."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from program_modules import CHOSEN, FAILING, FILES, MODULES, NAMES

from bench_code.present import Present
from bench_code.reach import NameChange, Reach
from bench_code.record import Execution, ExecutionContext, Fact
from bench_code.recorder import Recorder
from bench_code.surface import Surface, surface_of
from bench_code.units import parse

Slots = dict[str, int]


def slots_of(draw: random.Random) -> Slots:
    """The values of a fresh program."""
    names = {name for text in (*MODULES.values(), *FILES.values()) for name in _names(text)}
    slots = {name: draw.randrange(1, 9) for name in sorted(names | set(FILES) | {"PROGRAM_SETTING"})}
    return slots | {name: 0 for name, chosen in CHOSEN.items() if chosen[slots[name] % len(chosen)] in FAILING}


def _names(text: str) -> Iterator[str]:
    for part in text.split("{")[1:]:
        yield part.split("}")[0]


def edited(slots: Slots, draw: random.Random) -> tuple[Slots, str]:
    """The slots with one or two of them changed, half the time of those of names, and what was changed."""
    changed = dict(slots)
    of_names = sorted({name for text in NAMES.values() for name in _names(text)})
    names = draw.sample(draw.choice((sorted(slots), of_names)), draw.choice((1, 1, 2)))
    for name in names:
        changed[name] = slots[name] + 1
    return changed, ", ".join(names)


def write(root: Path, slots: Slots) -> None:
    """Bring a folder to what the slots say."""
    values: dict[str, object] = {**slots}
    values |= {name: chosen[slots[name] % len(chosen)].format(slots[name]) for name, chosen in CHOSEN.items()}
    wanted = {path: text.format(**values) for path, text in MODULES.items()}
    wanted |= {path: text.format(**values) for path, text in FILES.items() if slots[path] % 2}
    if "data/two.txt" not in wanted and slots["two"] % 4:  # it is missed by an import, at times
        wanted["data/two.txt"] = "fallback"
    for path in (*MODULES, *FILES):
        (root / path).parent.mkdir(exist_ok=True)
        if path not in wanted:
            (root / path).unlink(missing_ok=True)
        elif not (root / path).exists() or (root / path).read_text() != wanted[path]:
            (root / path).write_text(wanted[path])


def environment_of(slots: Slots) -> dict[str, str]:
    return {"PROGRAM_SETTING": str(slots["PROGRAM_SETTING"])} if slots["PROGRAM_SETTING"] % 3 else {}


def run(root: Path, environment: dict[str, str], only: Iterable[str] | None = None) -> list[Execution]:
    """Run a program's tests, or some, each under record, in a process of their own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException), os.fdopen(writing, "wb") as pipe:
            os.environ.pop("PROGRAM_SETTING", None)
            os.environ.update(environment)
            pickle.dump(_run_here(root, set(only) if only is not None else None), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    os.waitpid(child, 0)
    executions: list[Execution] = pickle.loads(content)
    return executions


def _run_here(root: Path, only: set[str] | None) -> list[Execution]:
    os.chdir(root)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(root))
    recorder = Recorder(root)
    done = []
    files = sorted(path.stem for path in root.glob("test_*.py"))  # to list them is no part of any test
    with recorder.recording():
        for file in files:
            collection = ExecutionContext("collection", f"{file}.py")
            tests = {}
            with recorder.context(collection):
                try:
                    module = importlib.import_module(file)
                    tests = {name: each for name, each in vars(module).items() if name.startswith("test_")}
                except Exception as error:
                    tests = {"import": _raising(error)}
            for name, test in tests.items():
                if only is not None and f"{file}::{name}" not in only:
                    continue
                context = ExecutionContext("test", f"{file}::{name}", uses={collection})
                recorder.forget()
                with recorder.context(context):
                    try:
                        outcome, detail = "passed", repr(test())
                    except Exception as error:
                        outcome, detail = "failed", f"{type(error).__name__}: {error}"
                done.append((context, outcome, detail))
    executions = []
    for context, outcome, detail in done:
        records, volatile = recorder.records.of(context)
        executions.append(Execution("test", context.name, outcome, detail, 0.0, tuple(records), volatile))
    return executions


def _raising(error: Exception):  # type: ignore[no-untyped-def]
    def test() -> None:
        raise error

    return test


def surfaces_of(root: Path) -> dict[str, Surface]:
    """The surface of each module by its skeleton's digest."""
    surfaces = {parse(file.read_bytes()).skeleton: surface_of(file.read_bytes()) for file in root.rglob("*.py")}
    return {skeleton: surface for skeleton, surface in surfaces.items() if surface is not None}


def invalid_among(
    executions: Iterable[Execution], stale: set[Fact], present: Present, surfaces: Mapping[str, Surface]
) -> set[str]:
    """The names of the executions that must run again, as the execution state decides it."""
    bodies: dict[str, frozenset[str]] = {}
    for surface in surfaces.values():
        bodies |= surface.bodies
    skeletons = [fact for fact in stale if fact.kind == "skeleton"]
    after = {fact: surfaces.get(present.value("skeleton", fact.name)) for fact in skeletons}
    changes = {fact: NameChange(fact.name, surfaces.get(fact.value), after[fact]) for fact in skeletons}
    reach = Reach(changes, surfaces.get, bodies.get)
    return {
        execution.name
        for execution in executions
        if execution.volatile or execution.facts & (stale - reach.named) or reach.touches(execution.records)
    }


def mismatches(root: Path, seed: int) -> tuple[list[str], int, int]:
    """Write a program, run it, edit it, and compare what is kept and run selectively with a full run.

    Returns:
        What differs, each with the edit; how many results were kept; and how many there were.
    """
    draw = random.Random(seed)
    slots = slots_of(draw)
    write(root, slots)
    before = {execution.name: execution for execution in run(root, environment_of(slots))}
    surfaces = surfaces_of(root)
    slots, edit = edited(slots, draw)
    write(root, slots)
    environment = environment_of(slots)
    present = Present(root.resolve(), environment | {k: v for k, v in os.environ.items() if k != "PROGRAM_SETTING"})
    stale = present.stale({fact for execution in before.values() for fact in execution.facts})
    invalid = invalid_among(before.values(), stale, present, surfaces | surfaces_of(root))
    full = {execution.name: (execution.outcome, execution.detail) for execution in run(root, environment)}
    kept = {name: (execution.outcome, execution.detail) for name, execution in before.items() if name not in invalid}
    again = {
        execution.name: (execution.outcome, execution.detail) for execution in run(root, environment, set(full) - set(kept))
    }
    selective = {**kept, **again}
    wrong = [
        f"{edit}: {name}: {selective.get(name)} instead of {full.get(name)}"
        for name in {*selective, *full}
        if selective.get(name) != full.get(name)
    ]
    return wrong, len(kept), len(full)


def main(count: int = 10_000, first: int = 0, *, to: str = "") -> int:
    """Try programs, and print each mismatch and what was kept.

    Args:
        count: How many programs are tried.
        first: The seed of the first of them.
        to: A CSV file that gets a row more of what came out.

    Returns:
        1 if there is a mismatch, else 0.
    """
    result, kept, results = 0, 0, 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            wrong, of_kept, of_all = mismatches(Path(folder), seed)
        for mismatch in wrong:
            print(f"seed {seed}: {mismatch}", flush=True)
        result, kept, results = result + len(wrong), kept + of_kept, results + of_all
        done = seed + 1 - first
        if done % 500 == 0 or done == count:
            print(f"{done} programs: {result} mismatches, {kept} of {results} results kept", flush=True)
    if to:
        new = not Path(to).exists()
        with Path(to).open("a", encoding="utf-8") as file:
            file.write(
                ("first,programs,mismatches,kept,results\n" if new else "") + f"{first},{count},{result},{kept},{results}\n"
            )
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3]), to="".join(sys.argv[3:4])))
