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

from bench.codebase.present import Present
from bench.codebase.reach import NameChange, Reach
from bench.codebase.record import Execution, ExecutionContext, Fact
from bench.codebase.recorder import Recorder
from bench.codebase.surface import Surface, surface_of
from bench.codebase.units import parse

Slots = dict[str, int]

MODULES = {
    "base.py": """
import functools
import os
LIMIT = {limit}
def scaled(by={default}):
    def wrap(function):
        @functools.wraps(function)
        def inner(*given):
            return function(*given) * by + {inner}
        return inner
    return wrap
def helper(x):
    "{doc}"
    # {comment}
    return x + {helper}
@functools.lru_cache
def kept(x):
    return helper(x) * {kept}
def numbers(n):
    for one in range(n):
        yield one + {numbers}
TABLE = [helper(one) for one in range({table})]
def setting():
    return os.environ.get("PROGRAM_SETTING", "none") + str({setting})
""",
    "shapes.py": """
from base import LIMIT, scaled
import base
class Shape:
    sides = {sides}
    def __init__(self, size=1):
        self.size = size
    def area(self):
        return self.size * self.sides + {area}
    @property
    def bounded(self):
        return min(self.area(), LIMIT) + {bounded}
class Square(Shape):
    {override}
    @scaled({factor})
    def double(self):
        return self.area() + {double}
class Meta(type):
    def __new__(mcs, name, bases, members):
        made = super().__new__(mcs, name, bases, members)
        made.marked = base.helper({marked})
        return made
class Marked(metaclass=Meta):
    pass
if {branch} % 2:
    def chosen(x): return x + {chosen}
else:
    def chosen(x): return x - {chosen}
lambdas = [lambda x: x * {lambda_}, lambda x: base.helper(x)]
""",
    "outside.py": """
import importlib
import os
from pathlib import Path
HERE = Path(__file__).parent
def data():
    try:
        return (HERE / "data" / "one.txt").read_text() + str({data})
    except FileNotFoundError:
        return "no data"
def listed():
    return sorted(name for name in os.listdir(HERE / "data"))
def override():
    return "overridden" if os.path.exists(HERE / "data" / "override.txt") else "plain"
def size():
    return os.stat(HERE / "data" / "two.txt").st_size
def plugged(name):
    try:
        return importlib.import_module("plugin_" + name).value({plugged})
    except ImportError:
        return "no plugin"
def optional():
    try:
        import extra
    except ImportError:
        return {optional}
    return extra.value(1)
AT_IMPORT = (HERE / "data" / "two.txt").read_text()
""",
    "test_one.py": """
import base, shapes
def test_helper(): return base.helper({argument})
def test_limit(): return base.LIMIT
def test_kept(): return base.kept(3), base.kept(3)
def test_kept_again(): return base.kept(3)
def test_kept_indirectly(): return [base.kept(one) for one in (3, 4)]
def test_table(): return base.TABLE
def test_numbers(): return sum(base.numbers(4))
def test_unconsumed(): return type(base.numbers(4)).__name__
def test_area(): return shapes.Shape(2).area(), shapes.Square(3).area()
def test_sides(): return shapes.Square.sides
def test_bounded(): return shapes.Shape(5).bounded
def test_double(): return shapes.Square(2).double()
def test_marked(): return shapes.Marked.marked
def test_chosen(): return shapes.chosen(10)
def test_lambdas(): return [each(3) for each in shapes.lambdas]
def test_doc(): return base.helper.__doc__
def test_defaults(): return base.scaled.__defaults__
def test_raises(): return 1 // (base.helper(0) - {raises})
""",
    "test_two.py": """
import outside
from base import setting
def test_setting(): return setting()
def test_data(): return outside.data()
def test_listed(): return outside.listed()
def test_override(): return outside.override()
def test_size(): return outside.size()
def test_plugged(): return outside.plugged("a"), outside.plugged("b")
def test_optional(): return outside.optional()
def test_at_import(): return outside.AT_IMPORT
def test_plain(): return {plain}
def test_source():
    import inspect
    return inspect.getsource(outside.data)
def test_thread():
    import threading, base
    found = []
    thread = threading.Thread(target=lambda: found.append(base.helper(7)))
    thread.start()
    thread.join()
    return found
""",
}
NAMES = {
    "named.py": """
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    HIDDEN = {hidden}
{all}
FACTOR = {of_factor}
OTHER = FACTOR + {other}
WORDS = {{"one": {words}, "two": OTHER}}
def first(x, by={first_default}):
    return x * by + FACTOR
def second(x: Kind{annotated} = None):
    "{second_doc}"
    return {second}
{extra_name}
class Plain:
    level = {level}
    def __init__(self):
        self.x = {plain}
    def get(self, more={get_default}):
        return self.x + more + self.level
    {method}
class Child(Plain):
    {child}
    def get(self, more=2, before=Plain.get):
        return before(self, more)
def made(kind=Plain):
    return kind().get()
TABLES = [first, second]
HANDLERS = {{"a": first}}
{by_name}
""",
    "aliased.py": """
import importlib
import sys
import named as n
from named import first as f, OTHER
KEPT = n
RAISED = OTHER
def by_alias(): return n.FACTOR, RAISED
def by_name(name): return getattr(n, name, "none")
def by_word(): return getattr(KEPT, "FAC" + "TOR"), getattr(n, "extra_" + "name", None) is None
def by_module(): return sorted(name for name in vars(KEPT) if not name.startswith("__"))
def by_text(): return vars(importlib.import_module("named"))["FACTOR"]
def by_system(): return sys.modules["na" + "med"].__dict__["OTH" + "ER"]
def called(): return f(2)
""",
    "starred.py": """
from named import *
FACTOR_HERE = 1
def star(): return globals().get("FACTOR"), globals().get("extra_name") is None
def direct(): return first(3)
""",
    "computed.py": """
import named
import register
COUNTED = named.first({counted})
register.add(named.FACTOR)
def counted(): return COUNTED
def unrelated(): return {unrelated}, register.ALL
""",
    "test_three.py": """
import named, aliased
def test_factor(): return named.FACTOR
def test_other(): return named.OTHER
def test_words(): return named.WORDS
def test_first(): return named.first(2)
def test_second(): return named.second()
def test_doc(): return named.second.__doc__
def test_defaults(): return named.first.__defaults__
def test_annotations(): return named.second.__annotations__
def test_has_extra(): return hasattr(named, "extra_name")
def test_extra(): return named.extra_name(1)
def test_plain(): return named.Plain().get()
def test_child(): return named.Child().get()
def test_level(): return named.Child.level
def test_has_method(): return hasattr(named.Plain, "method")
def test_method(): return named.Child().method()
def test_made(): return named.made()
def test_tables(): return [each(1) for each in named.TABLES]
def test_handlers(): return named.HANDLERS["a"](1)
def test_missing(): return named.missing
def test_missing_word(): return getattr(named, "miss" + "ing", None)
def test_listed(): return sorted(name for name in vars(named) if not name.startswith("__"))
def test_hidden(): return hasattr(named, "HIDDEN")
def test_all(): return getattr(named, "__all__", None)
def test_subclasses(): return [each.__name__ for each in named.Plain.__subclasses__()]
def test_by_alias(): return aliased.by_alias()
def test_by_name(): return aliased.by_name("FACTOR"), aliased.by_name("extra_name") == "none"
def test_by_word(): return aliased.by_word()
def test_by_module(): return aliased.by_module()
def test_by_text(): return aliased.by_text()
def test_by_system(): return aliased.by_system()
def test_called(): return aliased.called()
def test_apart(): return {apart}
""",
    "test_four.py": """
import starred
def test_star(): return starred.star()
def test_direct(): return starred.direct()
def test_here(): return starred.FACTOR_HERE
def test_through(): return hasattr(starred, "FACTOR")
""",
    "register.py": "ALL = []\ndef add(value): ALL.append(value)\n",
    "needing.py": """
from named import first
{needs}
def alone(): return {alone}
""",
    "test_five.py": """
import computed
def test_counted(): return computed.counted()
def test_unrelated(): return computed.unrelated()
""",
    "test_six.py": """
import needing
def test_alone(): return needing.alone()
def test_taken(): return hasattr(needing, "extra_name")
""",
}
"""A module whose names change, come and go, and modules that take its names in all ways."""
MODULES |= NAMES
CHOSEN = {
    "override": ("pass", "sides = {}"),
    "all": ("", "__all__ = ['FACTOR', 'first', 'extra_name'][:{} % 3]"),
    "extra_name": ("", "def extra_name(x): return x + {}"),
    "needs": ("", "from named import extra_name"),
    "method": ("pass", "def method(self): return self.x + {}"),
    "child": ("pass", "level = {}"),
    "by_name": ("", "def __getattr__(name): return name * {} if name == 'missing' else int(name)"),
}
"""What stands in a slot's place where it is even, and where it is odd."""
FILES = {
    "plugin_a.py": "import base\ndef value(x): return base.helper(x) + {plugin_a}\n",
    "plugin_b.py": "VALUE = {plugin_b}\ndef value(x): return VALUE\n",
    "extra.py": "def value(x): return {extra}\n",
    "data/one.txt": "one {one}\n",
    "data/two.txt": "two {two}\n",
    "data/override.txt": "x",
    "data/more.txt": "{more}",
}
"""Files that are there where their slot, called by their path, is odd."""


def slots_of(draw: random.Random) -> Slots:
    """The values of a fresh program."""
    names = {name for text in (*MODULES.values(), *FILES.values()) for name in _names(text)}
    return {name: draw.randrange(1, 9) for name in sorted(names | set(FILES) | {"PROGRAM_SETTING"})}


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
    values |= {name: chosen[slots[name] % 2].format(slots[name]) for name, chosen in CHOSEN.items()}
    wanted = {path: text.format(**values) for path, text in MODULES.items()}
    wanted |= {path: text.format(**values) for path, text in FILES.items() if slots[path] % 2}
    if "data/two.txt" not in wanted and slots["two"] % 4:  # it is missed by an import, at times
        wanted["data/two.txt"] = "fallback"
    (root / "data").mkdir(exist_ok=True)
    for path in (*MODULES, *FILES):
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
    with recorder.recording():
        for file in (path.stem for path in sorted(root.glob("test_*.py"))):
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
    surfaces = {parse(file.read_bytes()).skeleton: surface_of(file.read_bytes()) for file in root.glob("*.py")}
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


def main(count: int = 10_000, first: int = 0) -> int:
    """Try so many programs from a first seed on, and print each mismatch and what was kept; exits with 1 where one is."""
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
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
