"""Which tests a change of a module's outside reaches."""

from __future__ import annotations

from pathlib import Path

import pytest
from repositories import impact, repository, write

from bench_code import ExecutionState
from bench_code.reach import NameChange
from bench_code.surface import surface_of

PRICES = "LIMIT = 3\nRATE = 2\ndef total(x, by=1):\n    return x * by\n"
TEST = (
    "import prices\ndef test_limit(): assert prices.LIMIT\ndef test_total(): assert prices.total(1)\ndef test_apart(): pass\n"
    "def test_module(): assert len(vars(prices)) > 3\n"
)
EVERY = ["apart", "limit", "module", "total"]


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (("LIMIT = 3", "LIMIT = 4"), ["limit", "module"]),
        (("by=1", "by=2"), ["module", "total"]),
        (("RATE = 2\n", ""), ["module"]),
        (("RATE = 2", "RATE = 2\nfrom typing import Any"), ["module"]),
        (("RATE = 2", "RATE = 2\nfrom typing import none"), EVERY),
        (("RATE = 2", "RATE = len('ab')"), EVERY),
        (("RATE = 2", "RATE = none"), EVERY),
        (("LIMIT = 3\nRATE = 2", "RATE = 2\nLIMIT = 3"), EVERY),
        (("by=1):", "by=1):\n    'Multiply.'\n"), []),
    ],
)
def test_a_change_reaches_the_tests_that_mention_the_name(tmp_path: Path, change: tuple[str, str], again: list[str]) -> None:
    root = repository(tmp_path, {"prices.py": PRICES, "test_prices.py": TEST})
    impact(root)
    write(root, {"prices.py": PRICES.replace(*change)})
    state = ExecutionState.open(root)
    names = [f"test_prices.py::test_{name}" for name in again]
    assert sorted(state.invalid()) == names
    assert [name for name in sorted({*names, "test_prices.py::test_apart"}) if state.why(name)] == names


def test_a_change_reaches_through_what_other_modules_make_of_a_name(tmp_path: Path) -> None:
    shop = "from prices import LIMIT as MOST\nHANDLERS = {'most': [MOST]}\ndef most():\n    return HANDLERS['most'][0]\n"
    test = "import shop\ndef test_most(): assert shop.most()\ndef test_apart(): pass\n"
    root = repository(tmp_path, {"prices.py": PRICES, "shop.py": shop, "test_shop.py": test})
    impact(root)
    write(root, {"prices.py": PRICES.replace("LIMIT = 3", "LIMIT = 4")})
    assert ExecutionState.open(root).invalid() == ["test_shop.py::test_most"]
    write(root, {"prices.py": PRICES.replace("LIMIT = 3\n", "")})
    assert len(ExecutionState.open(root).invalid()) == 2, "the import fails now"


def test_a_changed_outside_of_a_module_that_pytest_collects_reaches_all_its_tests(tmp_path: Path) -> None:
    root = repository(tmp_path, {"test_prices.py": f"ANY = 1\n{TEST}", "prices.py": PRICES})
    impact(root)
    write(root, {"test_prices.py": f"ANY = 2\n{TEST}"})
    assert len(ExecutionState.open(root).invalid()) == 4


@pytest.mark.parametrize(
    ("shop", "change"),
    [
        ("import prices\nKEPT = []\nKEPT.append(prices.LIMIT)\n", ("LIMIT = 3", "LIMIT = 4")),
        ("import prices\nif prices.LIMIT:\n    KEPT = [1]\n", ("LIMIT = 3", "LIMIT = 4")),
        ("from prices import LIMIT\nKEPT = [1]\n", ("LIMIT = 3\n", "")),
        ("from prices import *\nKEPT = [1]\n", ("LIMIT = 3", "LIMIT = 3\n__all__ = ['RATE']")),
        ("from prices import *\nKEPT = [1]\n", ("LIMIT = 3", "LIMIT = 3\nlen = 4")),
    ],
)
def test_a_change_reaches_all_that_uses_a_module_whose_import_may_come_to_do_another_thing(
    tmp_path: Path, shop: str, change: tuple[str, str]
) -> None:
    test = "import shop\ndef test_kept(): assert shop.KEPT\ndef test_apart(): pass\n"
    root = repository(tmp_path, {"prices.py": PRICES, "shop.py": shop, "test_shop.py": test})
    impact(root)
    write(root, {"prices.py": PRICES.replace(*change)})
    assert len(ExecutionState.open(root).invalid()) == 2


PACKAGE = {
    "shop/__init__.py": "from .till import paid\nfrom .rates import RATE\n",
    "shop/till.py": "def paid(x):\n    return x\n",
    "shop/rates.py": "import re\nRATE = 2\nWORD = re.compile('a')\n",
    "test_shop.py": (
        "import shop\nfrom shop import till\ndef test_paid(): assert till.paid(1)\n"
        "def test_rate(): assert hasattr(till, 'RATE') in (True, False)\n"
        "def test_loaded(): assert hasattr(shop, 'rates')\n"
    ),
}


@pytest.mark.parametrize(
    ("files", "again"),
    [
        ({"shop/till.py": "from .rates import RATE\ndef paid(x):\n    return x\n"}, ["loaded", "rate"]),
        ({"shop/till.py": "from shop.rates import RATE\ndef paid(x):\n    return x\n"}, ["loaded", "rate"]),
        ({"shop/till.py": "from .rates import none\ndef paid(x):\n    return x\n"}, ["loaded", "paid", "rate"]),
        ({"shop/till.py": "from . import rates\ndef paid(x):\n    return x\n"}, ["loaded", "paid", "rate"]),
        ({"shop/till.py": "from other.rates import RATE\ndef paid(x):\n    return x\n"}, ["loaded", "paid", "rate"]),
    ],
)
def test_a_new_import_of_a_plain_module_of_the_package_reaches_what_mentions_its_name(
    tmp_path: Path, files: dict[str, str], again: list[str]
) -> None:
    root = repository(tmp_path, PACKAGE)
    impact(root)
    write(root, files)
    assert sorted(ExecutionState.open(root).invalid()) == [f"test_shop.py::test_{name}" for name in again]


def test_a_new_import_of_a_module_that_does_more_than_bind_names_reaches_all_that_uses_the_module(tmp_path: Path) -> None:
    root = repository(tmp_path, PACKAGE | {"shop/rates.py": "print()\nRATE = 2\n"})
    impact(root)
    write(root, {"shop/till.py": "from .rates import RATE\ndef paid(x):\n    return x\n"})
    assert len(ExecutionState.open(root).invalid()) == 3


def test_a_name_without_a_dot_is_of_its_module_alone(tmp_path: Path) -> None:
    shop = "LIMIT = 7\ndef most():\n    return LIMIT\n"
    test = "import prices, shop\ndef test_most(): assert shop.most()\ndef test_limit(): assert prices.LIMIT\n"
    root = repository(tmp_path, {"prices.py": PRICES, "shop.py": shop, "test_shop.py": test})
    impact(root)
    write(root, {"prices.py": PRICES.replace("LIMIT = 3", "LIMIT = 4")})
    assert ExecutionState.open(root).invalid() == ["test_shop.py::test_limit"]


def test_a_module_that_git_ignores_is_read_as_well(tmp_path: Path) -> None:
    root = repository(tmp_path, {".gitignore": "prices.py\n", "prices.py": PRICES, "test_prices.py": TEST})
    impact(root)
    write(root, {"prices.py": PRICES.replace("LIMIT = 3", "LIMIT = 4")})
    assert sorted(ExecutionState.open(root).invalid()) == ["test_prices.py::test_limit", "test_prices.py::test_module"]


def test_a_star_takes_only_the_names_that_a_module_lists(tmp_path: Path) -> None:
    prices = f"__all__ = ['LIMIT']\n{PRICES}"
    test = "import shop\ndef test_limit(): assert shop.LIMIT\ndef test_apart(): pass\n"
    root = repository(tmp_path, {"prices.py": prices, "shop.py": "from prices import *\n", "test_shop.py": test})
    impact(root)
    write(root, {"prices.py": prices + "MORE = 1\n"})
    assert ExecutionState.open(root).invalid() == []
    write(root, {"prices.py": prices.replace("LIMIT = 3\n", "")})
    assert len(ExecutionState.open(root).invalid()) == 2


def test_a_parameter_of_one_function_hides_no_name_from_another_of_equal_body(tmp_path: Path) -> None:
    shop = "def listed(prices):\n    assert vars(prices)\n"
    test = "import prices, shop\ndef test_module():\n    assert vars(prices)\ndef test_listed():\n    shop.listed(prices)\n"
    root = repository(tmp_path, {"prices.py": PRICES, "shop.py": shop, "test_shop.py": test})
    impact(root)
    write(root, {"prices.py": PRICES.replace("LIMIT = 3", "LIMIT = 4")})
    assert sorted(ExecutionState.open(root).invalid()) == ["test_shop.py::test_listed", "test_shop.py::test_module"]


STACK = (
    "import reprlib\nclass Stack:\n    'Things.'\n    def put(self, x, at=0):\n        'Put it.'\n        return at\n"
    "    @reprlib.recursive_repr()\n    def __repr__(self): return 'stack'\n    def __init__(self, most=3): self.most = most\n"
    "    def size(self): return 0\n"
)
STACKED = (
    "from stack import Stack\ndef test_put(): assert Stack().put(1) == 0\ndef test_size(): assert Stack().size() == 0\n"
    "def test_doc(): assert Stack.put.__doc__\ndef test_apart(): pass\n"
)


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (("at=0", "at=1"), ["doc", "put"]),
        (("most=3", "most=4"), ["doc", "put", "size"]),
        (("'Put it.'", "'Add it.'"), ["doc"]),
        (("'Things.'", "'Many things.'"), ["doc"]),
        (("def put(self, x, at=0)", "def put(self, x, at=None or 0)"), ["apart", "doc", "put", "size"]),
    ],
)
def test_a_default_and_a_docstring_in_any_class_reach_only_those_that_read_them(
    tmp_path: Path, change: tuple[str, str], again: list[str]
) -> None:
    root = repository(tmp_path, {"stack.py": STACK, "test_stack.py": STACKED})
    impact(root)
    write(root, {"stack.py": STACK.replace(*change)})
    assert sorted(ExecutionState.open(root).invalid()) == [f"test_stack.py::test_{name}" for name in again]


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ("def f(a=1, *, b=2): pass", "def f(a=2, *, b=1): pass", {"f"}),
        ("class A:\n def f(a=1): 'A'\n def f(a=2): 'B'", "class A:\n def f(a=2): 'B'\n def f(a=1): 'A'", {"", "A.f"}),
        ("def f(a=1): 'A'\ndef g(b=1): pass", "def f(a=1): pass\ndef g(b=2): pass", {"", "g"}),
    ],
)
def test_parts_that_only_change_places_have_changed(before: str, after: str, parts: set[str]) -> None:
    change = NameChange("a.py", surface_of(before.encode()), surface_of(after.encode()))
    assert not change.names
    assert change.parts == parts


def test_a_default_reaches_code_that_calls_its_function_only_if_the_call_runs(tmp_path: Path) -> None:
    lib = "import functools\n\n\ndef f(x=1):\n    return x\n\n\ndef central(far):\n    return f() if far else 0\n\n\n"
    lib += "def handed():\n    return functools.partial(f)\n\n\nclass Base:\n    def g(self, y=1):\n        return y\n"
    test = (
        "import lib\nclass Kid(lib.Base):\n    def g(self): return super().g()\n"
        "def test_near(): assert lib.central(False) == 0\ndef test_far(): assert lib.central(True) == 1\n"
        "def test_handed(): assert lib.handed().func\ndef test_text(): assert getattr(lib, 'f')\n"
        "def test_kid(): assert Kid().g() == 1\n"
    )
    root = repository(tmp_path, {"lib.py": lib, "test_lib.py": test})
    impact(root)
    for before, after, again in (("x=1", "x=2", ["far", "handed", "text"]), ("y=1", "y=2", ["kid", "text"])):
        write(root, {"lib.py": lib.replace(before, after)})
        assert sorted(ExecutionState.open(root).invalid()) == [f"test_lib.py::test_{name}" for name in again]


def test_a_default_that_an_import_uses_reaches_all_tests(tmp_path: Path) -> None:
    lib = "SEEN = []\ndef note(x=1):\n    SEEN.append(x)\nnote()\n"
    test = "import lib\ndef test_apart(): pass\n"
    root = repository(tmp_path, {"lib.py": lib, "test_lib.py": test, "test_b.py": "def test_b(): pass\n"})
    impact(root)
    write(root, {"lib.py": lib.replace("x=1", "x=2")})
    assert len(ExecutionState.open(root).invalid()) == 2


def test_a_draw_and_a_clock_at_the_top_of_a_module_condemn_only_who_uses_what_they_gave(tmp_path: Path) -> None:
    lib = (
        "import random, time\nfrom datetime import date\nBEGAN = time.time()\n_draw = random.Random().randrange\nLOG = []\n"
        "def drawn(): return _draw(3)\ndef fixed(): return 3\n"
    )
    test = (
        "import lib\ndef test_drawn(): assert lib.drawn() < 3\ndef test_fixed(): assert lib.fixed() == 3\n"
        "def test_began(): assert lib.BEGAN\n"
    )
    root = repository(tmp_path, {"lib.py": lib, "test_lib.py": test})
    impact(root)
    again = ["test_lib.py::test_began", "test_lib.py::test_drawn"]
    state = ExecutionState.open(root)
    assert sorted(state.invalid()) == again
    assert "draws unseeded chance at lib.py:4" in {fact.value for fact in state.why(again[1])}
    write(root, {"lib.py": lib.replace("LOG = []", "LOG = [time.time()]")})
    impact(root)
    write(root, {"lib.py": lib.replace("LOG = []", "LOG = []\nLOG.append(time.time())")})
    impact(root)
    assert len(state.invalid()) == 3, "such a statement may do more than bind a name"
