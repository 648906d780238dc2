"""The tests that are offered for a module with a wrong answer. Only one of them fails on the module and passes on the fixed
module."""

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
    """Return the offered tests by letter: the order that a test asks for, and the expected answer. Besides the right test, one
    passes on both versions, one fails on both, and one expects the mistake (if the mistake raises an exception, a second test
    passes on both)."""
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
    """Return the letter of the test that fails on the mistake and passes on the fixed module; if the model writes the test, a
    text of it."""
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
    """Return the letter of the only test that fails on the present text of a module and passes on the fixed text."""
    kept = list(rows)

    def passes(text: str, order: int, expects: Any) -> bool:
        return bool(answered(text, library_name, library_text, kept, order) == expects)

    [letter] = [letter for letter, test in tests.items() if passes(mended, *test) and not passes(present, *test)]
    return letter


def answered(text: str, library_name: str, library_text: str, rows: Iterable[Mapping[str, Any]], order: int) -> Any:
    """Return the answer of a module with this text, or the exception that it raises."""
    try:
        return evaluated(text, library_name, library_text, rows, order)
    except Exception:
        return NOTHING


def written_test(
    present: str, mended: str, library_name: str, library_text: str, rows: Iterable[Mapping[str, Any]], telling: bool = True
) -> str:
    """Return the text of a test with the fixed module's answers: on up to three orders on which the present module differs, and
    up to two on which both agree. Without `telling`, only on orders on which both agree."""
    kept = list(rows)
    orders = [*(int(row["id"]) for row in kept), UNKNOWN]
    right, wrong = (
        {order: answered(text, library_name, library_text, kept, order) for order in orders} for text in (mended, present)
    )
    differing, alike = ([order for order in orders if (right[order] != wrong[order]) == differs] for differs in (True, False))
    asked = [*differing[:3], *alike[:2]] if telling else alike[:3]
    return "\n".join(Assertion(None, order, right[order]).text for order in asked)


def next_library() -> str:
    """Return the functions of the next library versions of all cases. They include those of each single case."""
    functions = (part_of(part)["after"].strip("\n") for part in PARTS)
    return "from decimal import Decimal\n\n\n" + "\n\n\n".join(functions)


def with_test(case: Case, files: FilesOf, letter: str) -> dict[str, str]:
    """Return these files with an offered test added. A test that the model wrote is given by its text instead of a letter."""
    name = case.modules[0].name
    if case.is_written:
        asserts = "\n".join(f"    {each.text.replace('answer', f'{name}.answer', 1)}" for each in asserts_of(letter))
        return {**files, test_file(name): f"import {name}\nfrom orders import ROWS\n\n\ndef test_written():\n{asserts}\n"}
    order, expects = offered_tests(case)[letter]
    test = f"def test_order_{order}():\n    assert {name}.answer(ROWS, {order}) == {expects!r}\n"
    return {**files, test_file(name): f"import {name}\nfrom orders import ROWS\n\n\n{test}"}


def test_file(module: str) -> str:
    """Return the path at which an offered test of a module is added."""
    return f"tests/test_{module}{ADDED}.py"
