"""Which tests a change of a module's outside reaches."""

from __future__ import annotations

from pathlib import Path

import pytest
from repositories import impact, repository, write

from bench.codebase import ExecutionState

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
        (("RATE = 2", "RATE = 2\nfrom typing import TYPE_CHECKING"), EVERY),
        (("RATE = 2", "RATE = len('ab')"), EVERY),
        (("RATE = 2", "RATE = none"), EVERY),
        (("LIMIT = 3\nRATE = 2", "RATE = 2\nLIMIT = 3"), EVERY),
        (("by=1):", "by=1):\n    'Multiply.'\n"), ["module", "total"]),
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
