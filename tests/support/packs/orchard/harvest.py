"""Makes the instances: what each tree bore in a season, drawn from the season's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from bench.scenario import Json, WrongAnswer

SEASONS = ("spring", "summer", "autumn")
FRUITS = ("apples", "pears")


@dataclass(frozen=True)
class Tree:
    picked: int
    spoiled: int


Season = Mapping[str, Sequence[Tree]]


def season(name: str) -> Season:
    rng = Random(f"orchard {name}")
    return {fruit: [Tree(rng.randint(10, 30), rng.randint(1, 9)) for _ in range(4)] for fruit in FRUITS}


def documents(trees: Season) -> dict[str, str]:
    return {f"{fruit}.txt": "".join(map(_line, range(1, 5), trees[fruit])) for fruit in FRUITS}


def _line(number: int, tree: Tree) -> str:
    return f"tree {number}: {tree.picked} crates picked, {tree.spoiled} of them spoiled\n"


def sound(trees: Season) -> dict[str, int]:
    return {fruit: sum(tree.picked - tree.spoiled for tree in trees[fruit]) for fruit in FRUITS}


def outputs(crates: Mapping[str, int]) -> dict[str, Json]:
    """The outputs of all subtasks, where so many crates of each fruit are stored."""
    return {
        **{fruit: {"crates": crates[fruit], "trees": 4} for fruit in FRUITS},
        "store": {**crates, "crates": sum(crates.values())},
    }


def wrong_answers(trees: Season) -> tuple[WrongAnswer, ...]:
    picked = {fruit: sum(tree.picked for tree in trees[fruit]) for fruit in FRUITS}
    first = {fruit: trees[fruit][0].picked - trees[fruit][0].spoiled for fruit in FRUITS}
    late = {fruit: crates - first[fruit] for fruit, crates in sound(trees).items()}
    return (
        WrongAnswer("spoiled_counted", "spoiled crates are not stored", outputs(picked)),
        WrongAnswer("first_tree_left_out", "the first tree bore as well", outputs(late)),
    )
