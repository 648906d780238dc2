"""The texts of generated programs. A program fills each slot, such as `{limit}`, with a number or with a line of code."""

from __future__ import annotations

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
import functools
import re
import sys
from enum import Enum
from typing import TYPE_CHECKING
import kinds
{standard}
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
PATTERN = re.compile("[{pattern}-8]")
if sys.version_info >= {version}:
    def of_version(): return {of_version}
else:
    of_version = None
@functools.total_ordering
class Kind(Enum):
    LOW = 0
    HIGH = {high}
    {kind}
    {order}
    def label(self): return self.name + str({label})
HIGHEST = Kind.HIGH
class Table(dict):
    __slots__ = ("kept",)
    {table_method}
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
from named import FACTOR
def by_argument(named): return sorted(name for name in vars(named) if not name.startswith("__"))
def by_local():
    named = n
    return sorted(name for name in vars(named) if not name.startswith("__"))
def by_shadow(FACTOR=0):
    class Inner:
        FACTOR = FACTOR
    return vars(Inner)["FAC" + "TOR"]
def by_global(FACTOR=0):
    def inner():
        global FACTOR
        return FACTOR
    return inner()
def by_own(FACTOR=2, OTHER=3): return FACTOR * OTHER + {own}
""",
    "starred.py": """
from named import *
FACTOR_HERE = 1
def star(): return globals().get("FACTOR"), globals().get("extra_name") is None
def direct(): return first(3)
def taken(): return FACTOR
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
def test_by_argument(): return aliased.by_argument(named)
def test_by_local(): return aliased.by_local()
def test_by_shadow(): return aliased.by_shadow()
def test_by_global(): return aliased.by_global()
def test_by_own(): return aliased.by_own()
def test_standard(): return hasattr(named, "math"), hasattr(named, "sqrt")
def test_pattern(): return bool(named.PATTERN.match("4")), named.PATTERN.pattern
def test_version(): return named.of_version and named.of_version()
def test_kind(): return [each.name for each in named.Kind], named.Kind.HIGH.value
def test_highest(): return named.HIGHEST.label(), named.HIGHEST is named.Kind.HIGH
def test_ordered(): return named.Kind.LOW <= named.Kind.HIGH
def test_registered(): return named.kinds.ALL
def test_table(): return len(named.Table()), hasattr(named.Table, "method")
def test_apart(): return {apart}
""",
    "test_four.py": """
import starred
def test_star(): return starred.star()
def test_direct(): return starred.direct()
def test_here(): return starred.FACTOR_HERE
def test_through(): return hasattr(starred, "FACTOR")
def test_taken(): return starred.taken()
def test_more(): return hasattr(starred, "extra_" + "name")
""",
    "register.py": "ALL = []\ndef add(value): ALL.append(value)\n",
    "apart.py": """
import starred
{apart_takes}
OTHER = {apart_other}
def second(): return OTHER
def factor(): return FACTOR + OTHER if "FACTOR" in globals() else OTHER
def through(): return starred.second() if hasattr(starred, "second") else "none"
""",
    "kinds.py": "ALL = []\ndef add(value): ALL.append(value)\n",
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
import apart, needing
def test_second(): return apart.second()
def test_factor(): return apart.factor()
def test_through(): return apart.through()
def test_alone(): return needing.alone()
def test_taken(): return hasattr(needing, "extra_name")
""",
}
"""A module whose names change, come and go, and modules that take its names in all ways."""
PACKAGE = {
    "pack/__init__.py": """
from .user import used
from .between import BETWEEN
from .alone import valued
from .after import AFTER
""",
    "pack/user.py": """
{takes}
TAKEN = {taken}
def used(x={used_default}): return x + {used}
""",
    "pack/between.py": """
import pack
{between}
""",
    "pack/alone.py": """
import math
{effect}
VALUE = {alone_value}
SIDES = {{"one": VALUE}}
def valued(): return VALUE + {valued} + math.floor(1.5)
""",
    "pack/seen.py": "ALL = []\ndef add(value): ALL.append(value)\n",
    "pack/after.py": "AFTER = {after}\n",
    "test_seven.py": """
import pack
from pack import seen, user
def test_used(): return user.used()
def test_taken(): return user.TAKEN
def test_value(): return hasattr(user, "VALUE"), hasattr(user, "taken")
def test_called(): return user.taken() if hasattr(user, "taken") else "none"
def test_listed(): return sorted(name for name in vars(user) if not name.startswith("__"))
def test_valued(): return pack.valued()
def test_between(): return pack.BETWEEN
def test_after(): return pack.AFTER
def test_registered(): return seen.ALL
def test_apart(): return {pack_apart}
""",
    "slow/__init__.py": "",
    "slow/user.py": """
{slow_takes}
def used(): return {slow_used}
""",
    "slow/alone.py": "VALUE = {slow_value}\n",
    "test_eight.py": """
import slow
def test_before():
    from slow import user
    return user.used(), hasattr(slow, "al" + "one")
def test_after():
    from slow import alone, user
    return user.used(), alone.VALUE
""",
}
"""Modules of a package that come to import each other, early or late, with effects or without."""
NAMES |= PACKAGE
MODULES |= NAMES
CHOSEN = {
    "override": ("pass", "sides = {}"),
    "all": ("", "__all__ = ['FACTOR', 'first', 'extra_name'][:{} % 3]"),
    "extra_name": ("", "def extra_name(x): return x + {}"),
    "needs": ("", "from named import extra_name"),
    "method": ("pass", "def method(self): return self.x + {}"),
    "child": ("pass", "level = {}"),
    "standard": ("", "import math", "from math import sqrt", "from math import none", "import math as FACTOR", "import os"),
    "version": ("(3, 2)", "(99,)"),
    "kind": (
        *("pass", "TOP = {}", "LOW = {}", "def __init__(self, value): kinds.add(value)"),
        *("_order_ = 'LOW'", "def again(self): return {}"),
    ),
    "order": (
        *("def __lt__(self, other): return self.value < other.value", "def __lt__(self, other): return {} % 2"),
        *("pass # no order", "def __ge__(self, other): return True"),
    ),
    "table_method": ("pass", "def method(self): return {}", "pass", "kept = {}"),
    "takes": (
        *("", "from .alone import VALUE", "from pack.alone import valued as taken", ""),
        *("from .alone import none", "from . import alone", "from .alone import VALUE as taken"),
    ),
    "effect": ("", "from .seen import add; add({})", "", "from .user import used", "", "import os"),
    "apart_takes": ("", "from named import FACTOR", "from aliased import *", "FACTOR = {}"),
    "between": (
        "BETWEEN = {}",
        'BETWEEN = hasattr(pack, "al" + "one"), {}',
        "from .seen import ALL; BETWEEN = list(ALL)",
        'BETWEEN = hasattr(pack, "alone")',
    ),
    "slow_takes": ("", "from .alone import VALUE"),
    "by_name": (
        "",
        "def __getattr__(name):\n    if name != 'missing': raise AttributeError(name)\n    return name * {}",
    ),
}
"""What stands in a slot's place: the number of the slot says which of these."""
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
FAILING = ("from math import none", "LOW = {}", "_order_ = 'LOW'", "from .alone import none", "pass # no order", "kept = {}")
"""What makes an import fail where it stands in a slot. No program begins with it, but an edit may bring it in."""
