"""How much fruit is stored? For the tests: three instances made in code; two subtasks side by side, and one that joins them."""

from __future__ import annotations

from pydantic import Field

from bench.run.packs import PackFolder
from bench.scenario import Context, Output, Scenario, Subtask

from .baseline import baseline
from .grader import grade
from .harvest import SEASONS, documents, outputs, season, sound, wrong_answers


class Harvest(Output):
    crates: int = Field(ge=0, description="sound crates of all trees")
    trees: int = Field(ge=1)


class Store(Output):
    apples: int = Field(ge=0)
    pears: int = Field(ge=0)
    crates: int = Field(ge=0, description="the sum of the two")


def every_tree_is_counted(output: Harvest, _: Context) -> str | None:
    return None if output.trees == 4 else f"there are 4 trees, not {output.trees}"


def store_is_what_was_harvested(output: Store, context: Context) -> str | None:
    for fruit in ("apples", "pears"):
        crates = context.outputs[fruit].crates
        if getattr(output, fruit) != crates:
            return f"{fruit} is {getattr(output, fruit)}, but `{fruit}` says {crates}"
    return None if output.crates == output.apples + output.pears else "crates is not the sum of the two"


def instances(_: PackFolder) -> tuple[str, ...]:
    return SEASONS


def scenario(folder: PackFolder, instance: str) -> Scenario:
    trees = season(instance)
    apples, pears = (
        Subtask(fruit, folder.prompt(fruit), (f"{fruit}.txt",), Harvest, (every_tree_is_counted,), checkpoint=fruit == "pears")
        for fruit in ("apples", "pears")
    )
    store = Subtask("store", folder.prompt("store"), ("apples", "pears"), Store, (store_is_what_was_harvested,))
    return folder.scenario(
        (apples, pears, store),
        grade=grade,
        baseline=baseline,
        documents=documents(trees),
        reference=outputs(sound(trees)),
        wrong=wrong_answers(trees),
        truth=sound(trees),
    )
