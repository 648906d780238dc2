"""What objects hold is told the same in each process, and nothing is told of what cannot be told whole."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from bench_code.contents import digest_of

TOLD = """
import collections, decimal, enum, functools, re, types, weakref
class Plain:
    def __init__(self, x): self.x = x
class Slot:
    __slots__ = ("y",)
    def __init__(self, y): self.y = y
class Listed(list): pass
def make(x): return lambda y=x: (x, y)
def ordered(*keys):
    made = collections.OrderedDict.fromkeys("ab")
    for key in keys: made.move_to_end(key)
    return made
KINDS = {
    "text": lambda x: str(x), "object": Plain, "slot": Slot, "list": lambda x: [1, x], "set": lambda x: {"a", "b", x},
    "function": make, "class": lambda x: type("K", (), {"x": x}), "match": lambda x: re.match(".", str(x)),
    "number": decimal.Decimal, "partial": lambda x: functools.partial(make, x), "order": lambda x: ordered("ab"[x]),
    "default": lambda x: collections.defaultdict(make(x)), "listed": lambda x: Listed([x]), "buffer": lambda x: bytearray([x]),
    "mock": lambda x: __import__("unittest.mock").mock.Mock(a=x), "module": lambda x: types.SimpleNamespace(x=x),
    "reference": lambda x: weakref.ref(Plain, make(x)),
    "method": lambda x: Plain(x).__init__, "deque": lambda x: collections.deque([], x),
}
if __name__ == "__main__":
    from bench_code.contents import digest_of
    print({name: [digest_of([make(x)], {}) for x in (0, 1)] for name, make in KINDS.items()})
"""


def test_what_objects_hold_is_told_the_same_in_each_process_and_differs_by_each_part() -> None:
    tables = [
        subprocess.run((sys.executable, "-c", TOLD), capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    assert tables[0].stdout == tables[1].stdout
    for name, (first, other) in eval(tables[0].stdout).items():
        assert first and other and first != other, name


def test_an_object_is_told_by_its_name_if_it_has_one() -> None:
    held: list[object] = []
    assert digest_of([held], {id(held): "store.L"}) != digest_of([[]], {id(held): "store.L"})
    assert digest_of([[held, held]], {}) != digest_of([[held, []]], {})


class OfProject:
    """Pickling such an object may run the project's code."""

    def __reduce__(self) -> str:
        raise AssertionError


@pytest.mark.parametrize("value", [(x for x in [1]), threading.Lock(), KeyError(1), OfProject()])
def test_what_cannot_be_told_whole_is_not_told(value: object) -> None:
    assert not digest_of([[value]], {})
