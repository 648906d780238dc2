"""The tests that are offered for a module that answers wrongly. One of them fails on it and passes on what is right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .expected import TESTED, UNKNOWN, answer, evaluated
from .repository import FilesOf, library, module_text
from .story import NEARLY, PARTS, Case, part_of, shuffled
from .written import Assertion, asserts_of

ADDED = "_more"
"""It ends the name of a file that holds an added test."""
NOTHING = "it raises"
"""What a module answers that raises: no test expects it."""


def offered_tests(case: Case) -> dict[str, tuple[int, Any]]:
    """Letter -> the order that a test asks for, and what it expects. Beside the right one stand a test that passes on both
    versions, one that fails on both, and one that holds the mistake as right (where the mistake raises, a second that passes
    on both)."""
    module = case.modules[0]
    orders = [*(int(row["id"]) for row in case.orders), UNKNOWN]
    right = {order: answer(case, module, order) for order in orders}
    present = module_text(case, module, module.wrong[NEARLY])
    wrong = {order: answered(present, case.library, library(case, 1), case.orders, order) for order in orders}
    differs = next(order for order in orders if wrong[order] != right[order])
    neither = next(value for value in right.values() if value not in (right[differs], wrong[differs]))
    plain, plain_too = TESTED
    held = (plain_too, right[plain_too]) if wrong[differs] == NOTHING else (differs, wrong[differs])
    tests = [(differs, right[differs]), (plain, right[plain]), (differs, neither), held]
    return dict(zip("abcd", shuffled(tests, case.name, "tests"), strict=True))


def right_test(case: Case) -> str:
    """Return the letter of the test that fails on the mistake, and passes on what is right; where it is written, its text."""
    module = case.modules[0]
    present, mended = (module_text(case, module, line) for line in (module.wrong[NEARLY], module.right))
    if case.is_written:
        return written_test(present, mended, case.library, library(case, 1), case.orders)
    return telling_test(offered_tests(case), present, mended, case.library, library(case, 1), case.orders)


def telling_test(
    tests: Mapping[str, tuple[int, Any]],
    present: str,
    mended: str,
    library_name: str,
    library_text: str,
    rows: Iterable[Mapping[str, Any]],
) -> str:
    """Return the letter of the one test that fails on the present text of a module, and passes on the mended."""
    kept = list(rows)

    def passes(text: str, order: int, expects: Any) -> bool:
        return bool(answered(text, library_name, library_text, kept, order) == expects)

    [letter] = [letter for letter, test in tests.items() if passes(mended, *test) and not passes(present, *test)]
    return letter


def answered(text: str, library_name: str, library_text: str, rows: Iterable[Mapping[str, Any]], order: int) -> Any:
    """Return what a module of this text answers, or that it raises."""
    try:
        return evaluated(text, library_name, library_text, rows, order)
    except Exception:
        return NOTHING


def written_test(
    present: str, mended: str, library_name: str, library_text: str, rows: Iterable[Mapping[str, Any]], telling: bool = True
) -> str:
    """Return the text of a test of what a mended module answers: for the first order on which the present one differs, for the
    first of each other answer, and for no order. Without `telling`, only where both answer alike."""
    kept = list(rows)
    orders = [*(int(row["id"]) for row in kept), UNKNOWN]
    right, wrong = (
        {order: answered(text, library_name, library_text, kept, order) for order in orders} for text in (mended, present)
    )
    differing, alike = ([order for order in orders if (right[order] != wrong[order]) == differs] for differs in (True, False))
    asked = [*differing[:3], *alike[:2]] if telling else alike[:3]
    return "\n".join(Assertion(None, order, right[order]).text for order in asked)


def next_library() -> str:
    """Return all functions that any library of the cases offers in its next version: a case's own are among them."""
    functions = (part_of(part)["after"].strip("\n") for part in PARTS)
    return "from decimal import Decimal\n\n\n" + "\n\n\n".join(functions)


def with_test(case: Case, files: FilesOf, letter: str) -> dict[str, str]:
    """Return these files with an offered test among them, or with a test that was written: its text stands for the letter."""
    name = case.modules[0].name
    if case.is_written:
        asserts = "\n".join(f"    {each.text.replace('answer', f'{name}.answer', 1)}" for each in asserts_of(letter))
        return {**files, test_file(name): f"import {name}\nfrom orders import ROWS\n\n\ndef test_written():\n{asserts}\n"}
    order, expects = offered_tests(case)[letter]
    test = f"def test_order_{order}():\n    assert {name}.answer(ROWS, {order}) == {expects!r}\n"
    return {**files, test_file(name): f"import {name}\nfrom orders import ROWS\n\n\n{test}"}


def test_file(module: str) -> str:
    """Return the path of the file that an offered test of a module is put into."""
    return f"tests/test_{module}{ADDED}.py"
