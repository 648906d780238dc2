"""What is asked has one digest, what grades another: an edit voids no more than what it touches."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path

import pytest
from pack_edits import PACKS, Edit, copy_of, edit, in_code, in_file
from trials import AVAILABLE, ROOTS

from bench.run.packs import load_instances, load_pack, variants_of
from bench.run.packs.code import code_of
from bench.run.packs.loading import entry_of


@pytest.fixture
def orchard(tmp_path: Path) -> Path:
    return copy_of("orchard", tmp_path)


def digests(pack: Path) -> dict[str, str]:
    scenario = load_pack(pack.name, [pack.parent], "summer" if pack.name == "orchard" else "")
    return {"asked": scenario.asked, "graded_by": scenario.graded_by, "reference": scenario.reference_digest}


def changed(pack: Path, change: Edit) -> set[str]:
    """Which of a scenario's digests an edit changes. The edited copy is loaded from its own folder, as by a new process."""
    copy = Path(shutil.copytree(pack, pack.parent / "edited" / pack.name))
    change(copy)
    before, after = digests(pack), digests(copy)
    return {name for name in before if before[name] != after[name]}


def new_file(name: str, text: str) -> Edit:
    return lambda pack: (pack / name).write_text(text)


NEITHER: dict[str, Edit] = {
    "nothing": lambda _: None,
    "a README": new_file("README.md", "What it is about."),
    "a generator that nothing imports": new_file("generate.py", "print(1)"),
    "Windows line ends": lambda pack: [
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n")) for path in pack.rglob("*.py")
    ],
    "a cache": lambda pack: [
        (pack / "documents" / "__pycache__").mkdir(parents=True),  # type: ignore[func-returns-value]
        (pack / "documents" / "__pycache__" / "x.pyc").write_bytes(b"\0"),
    ],
}


@pytest.mark.parametrize("what", NEITHER)
def test_an_edit_of_what_no_trial_depends_on_changes_no_digest(orchard: Path, what: str) -> None:
    assert changed(orchard, NEITHER[what]) == set()


ASKED: dict[str, Edit] = {
    "a prompt": in_file("prompts/store.md", "State", "Say"),
    "the role": in_file("prompts/role.md", "books", "diary"),
    "a document": in_code("documents=documents(trees)", 'documents={**documents(trees), "apples.txt": "none"}'),
    "a schema": in_code('description="sound crates', 'description="good crates'),
    "a check": in_code("output.trees == 4", "output.trees == 2 + 2"),
    "a helper that checks import": in_file("harvest.py", "class Tree:", "class Tree:  # of the orchard"),
    "a checkpoint": in_code('checkpoint=fruit == "pears"', "checkpoint=False"),
    "what is graded": in_code("grade=grade,", 'grade=grade, answer=("store",),'),
}


@pytest.mark.parametrize("what", ASKED)
def test_an_edit_of_what_a_model_or_a_check_sees_changes_what_is_asked(orchard: Path, what: str) -> None:
    assert changed(orchard, ASKED[what]) == {"asked"}


GRADES: dict[str, Edit] = {
    "a typo in the grader": in_file("grader.py", "wrong: ", "wrng: "),
    "the baseline": in_file("baseline.py", r": (\d+)", r": (\d)"),
}


@pytest.mark.parametrize("what", GRADES)
def test_an_edit_of_what_only_grades_leaves_what_is_asked(orchard: Path, what: str) -> None:
    assert changed(orchard, GRADES[what]) == {"graded_by"}


def files(pack: Path) -> tuple[list[str], list[str]]:
    """The files of the pack's code: those that are asked, and those that only grade."""
    code = code_of(pack, load_instances(pack.name, [pack.parent])[0])
    return [path.name for path in code.asked], [path.name for path in code.grading]


def test_what_only_the_grader_imports_grades(orchard: Path) -> None:
    (orchard / "words.py").write_text('WRONG = "wrong"\n')
    edit(orchard / "grader.py", "from bench.scenario", "from .words import WRONG\nfrom bench.scenario")
    assert changed(orchard, in_file("words.py", "wrong", "false")) == {"graded_by"}
    assert files(orchard) == (["harvest.py", "scenario.py"], ["baseline.py", "grader.py", "words.py"])


HELPER = "\n\nTREES = 4\n"
SHARED: dict[str, Edit] = {
    "by scenario.py": in_code("from .grader import grade", "from .grader import TREES, grade"),
    "by scenario.py, with all else": in_code("from .grader import grade", "from .grader import *"),
    "by scenario.py, as a module": in_code("from .grader import grade", "from . import grader\nfrom .grader import grade"),
    "by a helper": in_file("harvest.py", "from bench.scenario", "from .grader import TREES\nfrom bench.scenario"),
    "inside a function": in_code(
        "    return None if output.trees", "    from .grader import TREES\n    return None if output.trees"
    ),
}


@pytest.mark.parametrize("how", SHARED)
def test_a_graders_file_from_which_more_is_imported_is_asked(orchard: Path, how: str) -> None:
    (orchard / "grader.py").write_text((orchard / "grader.py").read_text() + HELPER)
    SHARED[how](orchard)
    assert changed(orchard, in_file("grader.py", "TREES = 4", "TREES = 5")) == {"asked"}


def test_a_grader_that_stands_in_scenario_py_is_asked(tmp_path: Path) -> None:
    tiny = copy_of("tiny", tmp_path)
    assert changed(tiny, in_code('"miscounted"', '"wrong"')) == {"asked"}
    assert files(tiny) == (["scenario.py"], [])


def test_a_packages_modules_are_followed(orchard: Path) -> None:
    rules = orchard / "rules" / "trees"
    rules.mkdir(parents=True)
    (orchard / "rules" / "__init__.py").write_text("")
    (rules / "__init__.py").write_text("from ..numbers import FOUR\n")
    (orchard / "rules" / "numbers.py").write_text("FOUR = 4\n")
    (orchard / "rules" / "unused.py").write_text("FIVE = 5\n")
    in_code("from .harvest", "from .rules.trees import FOUR\nfrom .harvest")(orchard)
    in_code("output.trees == 4", "output.trees == FOUR")(orchard)
    assert changed(orchard, in_file("rules/numbers.py", "FOUR = 4", "FOUR = 2 + 2")) == {"asked"}
    shutil.rmtree(orchard.parent / "edited")
    assert changed(orchard, in_file("rules/unused.py", "5", "6")) == set()


def test_the_truth_grades_and_the_reference_is_apart_from_both(tmp_path: Path) -> None:
    tiny = copy_of("tiny", tmp_path)
    assert changed(tiny, in_file("reference/truth/total.txt", "42", "43")) == {"graded_by"}
    shutil.rmtree(tiny.parent / "edited")
    assert changed(tiny, in_file("reference/answer.json", "12", "13")) == {"reference"}
    shutil.rmtree(tiny.parent / "edited")
    assert changed(tiny, in_file("reference/wrong/miscounted.json", 'total": {', 'total": {"note": 1, ')) == {"reference"}
    shutil.rmtree(tiny.parent / "edited")
    assert changed(tiny, in_file("reference/wrong/miscounted.json", '"why": "', '"why": "Well: ')) == set()


def test_a_truth_made_in_code_grades(orchard: Path) -> None:
    assert "graded_by" in changed(orchard, in_code("truth=sound(trees)", 'truth={**sound(trees), "plums": 0}'))


def test_values_bound_to_a_check_are_asked_and_those_bound_to_the_grader_grade(orchard: Path) -> None:
    (orchard / "trees.txt").write_text("4")
    in_code("from pydantic", "from functools import partial\nfrom pathlib import Path\nfrom pydantic")(orchard)
    read = 'int((Path(__file__).parent / "trees.txt").read_text())'
    in_code("(output: Harvest, _: Context)", "(output: Harvest, _: Context, most: int = 4)")(orchard)
    in_code("(every_tree_is_counted,)", f"(partial(every_tree_is_counted, most={read}),)")(orchard)
    assert changed(orchard, in_file("trees.txt", "4", "5")) == {"asked"}


def test_what_a_pack_decides_from_a_file_of_its_own_is_asked(orchard: Path) -> None:
    (orchard / "checkpoint.txt").write_text("pears")
    read = '(folder.path / "checkpoint.txt").read_text()'
    in_code('checkpoint=fruit == "pears"', f"checkpoint=fruit == {read}")(orchard)
    assert changed(orchard, in_file("checkpoint.txt", "pears", "apples")) == {"asked"}


def test_each_instance_is_asked_and_graded_by_its_own() -> None:
    scenarios = load_instances("orchard", ROOTS)
    for digest in ("asked", "graded_by", "reference_digest"):
        assert len({getattr(scenario, digest) for scenario in scenarios}) == 3


def test_an_instance_with_a_grader_of_its_own_has_the_same_digests_alone_and_beside_the_others(orchard: Path) -> None:
    shutil.copy(orchard / "grader.py", orchard / "other.py")
    in_code("from .grader import grade\n", "from .grader import grade\nfrom .other import grade as other\n")(orchard)
    in_code("grade=grade", 'grade=grade if instance == "summer" else other')(orchard)
    together = load_instances("orchard", [orchard.parent])
    alone = [load_pack("orchard", [orchard.parent], scenario.instance) for scenario in together]
    assert [(each.asked, each.graded_by) for each in together] == [(each.asked, each.graded_by) for each in alone]


def test_digests_are_the_same_each_time_and_of_every_scenario_apart() -> None:
    every = [scenario for pack in AVAILABLE for scenario in load_instances(pack, ROOTS)]
    last = {scenario.name: scenario for scenario in every}
    for name, scenario in last.items():
        again = load_pack(name, ROOTS, scenario.instance)
        assert (again.asked, again.graded_by) == (scenario.asked, scenario.graded_by)
    assert len({scenario.asked for scenario in every}) == len(every)
    assert all(len(scenario.asked) == 20 for scenario in every)


def test_the_packs_that_ship_keep_their_graders_and_baselines_out_of_what_is_asked() -> None:
    for pack, folder in [(pack, folder) for pack, folder in AVAILABLE.items() if folder.parent == ROOTS[0]]:
        for variant in variants_of(folder):
            scenario = load_pack(f"{pack}:{variant}", ROOTS)
            code = code_of(folder, scenario, entry_of(folder, variant).name)
            asked, grading = ({path.name for path in paths} for paths in (code.asked, code.grading))
            graders = [getattr(function, "func", function) for function in (scenario.grade, scenario.baseline) if function]
            homes = {Path(inspect.getfile(grader)).name for grader in graders}
            assert homes <= grading and not homes & asked, (pack, variant)


MAKER = """
from . import harvest


def made(name):
    trees = harvest.season(name)
    sound = harvest.sound(trees)
    return {"trees": trees, "sound": sound}
"""
FROM_THE_MAKER = "from .forms import SEASONS, documents, outputs, wrong_answers\nfrom .maker import made"


def generated(pack: Path) -> None:
    """The trees of an instance are made by a function in a file of its own, from which nothing else is imported."""
    (pack / "maker.py").write_text(MAKER)
    (pack / "forms.py").write_text((PACKS / "orchard" / "harvest.py").read_text())
    in_code("from .harvest import SEASONS, documents, outputs, season, sound, wrong_answers", FROM_THE_MAKER)(pack)
    in_code("trees = season(instance)", "trees, crates = made(instance).values()")(pack)
    in_code("reference=outputs(sound(trees))", "reference=outputs(crates)")(pack)
    in_code("truth=sound(trees)", "truth=crates,\n        made_by=made")(pack)
    edit(pack / "baseline.py", "from .harvest", "from .forms")


GENERATORS: dict[str, tuple[Edit, set[str]]] = {
    "makes the same": (in_file("harvest.py", "def _line(", "PEEL = 1\n\n\ndef _line("), set()),
    "makes another": (in_file("harvest.py", "randint(10, 30)", "randint(11, 30)"), {"asked", "graded_by", "reference"}),
}


@pytest.mark.parametrize("what", GENERATORS)
def test_an_edit_of_a_generator_voids_what_there_is_only_where_it_makes_something_else(orchard: Path, what: str) -> None:
    generated(orchard)
    change, expected = GENERATORS[what]
    assert changed(orchard, change) == expected


def test_an_edit_of_a_generator_that_is_not_named_as_such_is_asked_whatever_it_makes(orchard: Path) -> None:
    generated(orchard)
    in_code("        made_by=made,\n", "")(orchard)
    assert changed(orchard, GENERATORS["makes the same"][0]) == {"asked"}
