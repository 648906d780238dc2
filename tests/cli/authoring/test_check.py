"""`bench check` passes a sound pack and says of an unsound one what is wrong and where; it ends in no traceback."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from commands import bench
from pack_edits import PACKS, Edit, copy_of, edit, in_code, in_file

from bench.cli.authoring.check import CheckResult, check_pack
from bench.cli.authoring.new import new_scenario
from bench.cli.authoring.scaffold import check_command
from bench.common.errors import PackError
from bench.common.registry import LoadedParts
from bench.run.trial.effects import EFFECTS, TextEffect

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def results(folder: Path) -> dict[str, CheckResult]:
    """What was checked, without what was measured -> its result."""
    return {result.what.partition(" (")[0]: result for _, result in check_pack(folder.name, [folder.parent])}


def problems(folder: Path) -> list[str]:
    lines = [line for result in results(folder).values() for line in result.problems]
    assert not any("\n" in line for line in lines)
    return lines


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return new_scenario("demo", tmp_path)


@pytest.fixture
def orchard(tmp_path: Path) -> Path:
    return copy_of("orchard", tmp_path)


def test_a_new_pack_is_sound_as_it_is_and_nothing_need_be_noted(pack: Path) -> None:
    assert {result.status for result in results(pack).values()} == {"ok"}


@pytest.mark.parametrize("name", [pytest.param("multi_file_debugging", marks=pytest.mark.endurance), "k8s_oomkill"])
def test_the_packs_that_ship_are_sound_in_every_variant_and_refuse_six_wrong_answers_or_more(name: str) -> None:
    assert [result.problems for _, result in check_pack(name, [SCENARIOS]) if result.problems] == []
    assert len(list((SCENARIOS / name / "reference" / "wrong").glob("*.json"))) >= 6


@pytest.mark.parametrize(
    ("requirements", "reason"),
    [
        ("# what it runs\n\npydantic>=2\n", ""),
        ("pydantic\nno-such-package>=3\n", "not available here: it needs no-such-package>=3; pip install -r "),
        ("pydantic<1\n", "not available here: it needs pydantic<1; pip install -r "),
    ],
)
def test_a_pack_whose_packages_are_not_installed_is_not_available_and_fails_nothing(
    pack: Path, requirements: str, reason: str
) -> None:
    (pack / "requirements.txt").write_text(requirements)
    made = [result for _, result in check_pack(pack.name, [pack.parent])]
    assert not any(result.problems for result in made)
    if reason:
        assert [(result.status, result.what) for result in made] == [("note", f"{reason}{pack / 'requirements.txt'}")]
    else:
        assert {result.status for result in made} == {"ok"}


def test_requirements_that_cannot_be_read_are_a_problem_of_the_pack(pack: Path) -> None:
    (pack / "requirements.txt").write_text("two words\n")
    [line] = problems(pack)
    assert line.startswith(f"{pack / 'requirements.txt'}: ") and line.endswith("name one package a line, as pip reads them")


def test_a_wrong_answer_that_the_grader_lets_pass_is_named(pack: Path) -> None:
    right = {"volume": "archive", "days_left": 6, "confidence": 0.9}
    (pack / "reference" / "wrong" / "right.json").write_text(json.dumps({"why": "no reason", "outputs": {"decide": right}}))
    assert problems(pack) == ["'right' is graded correct, though no reason"]


def test_a_reference_that_its_own_grader_refuses_is_named(pack: Path) -> None:
    (pack / "reference" / "truth" / "truth.json").write_text('{"volume": "root", "days_left": 6}')
    assert "not root in 6" in problems(pack)


def test_a_reference_that_its_own_verifier_rejects_is_named(pack: Path) -> None:
    edit(pack / "documents" / "volumes.txt", "archive", "attic")
    assert "measure: volumes.txt has no volume 'archive'" in problems(pack)


def test_a_prompt_that_says_a_secret_is_named(pack: Path) -> None:
    edit(pack / "prompts" / "decide.md", "Which volume", "Since the archive is full: which volume")
    assert problems(pack) == ["the prompt of 'decide' says 'archive is full'"]


def test_a_baseline_that_is_right_makes_the_pack_too_easy(pack: Path) -> None:
    edit(pack / "baseline.py", '"volume": fullest[0], "days_left": 1', '"volume": "archive", "days_left": 6')
    assert problems(pack) == ["the baseline is graded correct: the pack is too easy to tell anything"]


def test_a_reference_that_seems_too_weak_costs_a_retry_and_is_named(pack: Path) -> None:
    edit(pack / "reference" / "answer.json", '"confidence": 0.9', '"confidence": 0.1')
    assert problems(pack) == [
        "decide: too weak: confidence is below 0.6",
        "derived_subtasks: gave_up measure + decide: no accepted output in 3 attempts",
        "runtime_structured: gave_up decide: no accepted output in 3 attempts",
    ]


def test_a_pack_without_wrong_answers_is_not_sound(pack: Path) -> None:
    for path in (pack / "reference" / "wrong").glob("*.json"):
        path.unlink()
    assert len(problems(pack)) == 1


@pytest.mark.parametrize("name", ["Demo", "1demo", "de mo", "../demo", ""])
def test_a_name_that_is_no_identifier_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PackError, match="cannot be the name"):
        new_scenario(name, tmp_path)


def test_a_new_pack_never_overwrites_one(pack: Path) -> None:
    with pytest.raises(PackError, match="exists already"):
        new_scenario("demo", pack.parent)


BY_THE_GRADER = (
    "the reference answer is graded correct",
    "every wrong answer is graded wrong",
    "keyword rules alone do not solve it",
)
BY_THE_CHECKS = ("the reference answer passes every schema and check", "every wrong answer is graded wrong")
WEAK = in_code(
    '    return f"confidence is below {MIN_CONFIDENCE}" if output.confidence < MIN_CONFIDENCE else None',
    "    return output.confidence < 0",
)
BROKEN: dict[str, tuple[Edit, str, tuple[str, ...]]] = {
    "grader that raises": (
        in_file("grader.py", 'answer["decide"]', 'answer["decide"].boo'),
        "grader.py:25: the grader raises AttributeError: 'Decision' object has no attribute 'boo'",
        BY_THE_GRADER,
    ),
    "grader that exits": (
        in_file("grader.py", "    decision", "    raise SystemExit(3)\n    decision"),
        "grader.py:25: the grader raises SystemExit: 3",
        BY_THE_GRADER,
    ),
    "grader of nothing": (
        in_file("grader.py", "    return Grade(", "    Grade("),
        "grader.py:17: the grader returns None; it must return a bench.scenario.Grade",
        BY_THE_GRADER,
    ),
    "grader of an output that is not there": (
        in_file("grader.py", 'answer["decide"]', 'answer["decid"]'),
        "grader.py:25: the grader raises NotRead: the answer has no output 'decid'; it has: measure, decide",
        BY_THE_GRADER,
    ),
    "score of more than all": (
        in_file("grader.py", "sum(parts.values()) / len(parts), parts", "2.5, parts"),
        "grader.py:29: the grader raises ValueError: a grade's `score` is 2.5; it must be a number from 0 to 1",
        BY_THE_GRADER,
    ),
    "check that raises": (
        in_code("    volumes = [", "    context.boo\n    volumes = ["),
        "scenario.py:43: the check `volume_was_read` of 'decide' raises "
        "AttributeError: 'Context' object has no attribute 'boo'",
        BY_THE_CHECKS,
    ),
    "check that returns a bool": (
        in_code("    return None if output.volume in volumes else", "    return output.volume in volumes or"),
        "scenario.py:41: the check `volume_was_read` of 'decide' returns True; it must return None, "
        "or a text that says what is wrong",
        BY_THE_CHECKS,
    ),
    "check of what its subtask does not read": (
        in_code('context.outputs["measure"]', 'context.outputs["volumes"]'),
        "scenario.py:43: the check `volume_was_read` of 'decide' raises NotRead: the subtask does not read the "
        "output 'volumes'; add it to its reads, which now have: measure",
        BY_THE_CHECKS,
    ),
    "check of a document that is not there": (
        in_code('context.documents["volumes.txt"]', 'context.documents["volume.txt"]'),
        "scenario.py:37: the check `each_volume_exists` of 'measure' raises NotRead: there is no document "
        "'volume.txt'; the documents are: volumes.txt",
        BY_THE_CHECKS,
    ),
    "sufficient that returns a bool": (
        WEAK,
        "scenario.py:47: `sufficient` of 'decide' returns False; it must return None, or a text that says what is wrong",
        BY_THE_CHECKS,
    ),
    "skip that raises": (
        in_code("sufficient=unsure", 'skip=lambda outputs: outputs["measured"]'),
        "`skip` of 'decide' raises NotRead: the subtask does not read the output 'measured'; "
        "add it to its reads, which now have: measure",
        BY_THE_CHECKS,
    ),
    "skip of a dict": (
        in_code("sufficient=unsure", 'skip=lambda outputs: {"volume": "archive"}'),
        "`skip` of 'decide' returns {'volume': 'archive'}; it must return None, or the output to commit, a Decision",
        BY_THE_CHECKS,
    ),
    "finds of a name": (
        in_code("sufficient=unsure", 'finds=lambda output: "measure"'),
        "`finds` of 'decide' returns 'measure'; it must return None, or a Finding against an earlier subtask (measure)",
        BY_THE_CHECKS,
    ),
    "baseline that raises": (
        in_file("baseline.py", "    fullest =", "    rows[99]\n    fullest ="),
        "baseline.py:14: the baseline raises IndexError: list index out of range",
        BY_THE_GRADER[2:],
    ),
    "baseline of nothing": (
        in_file("baseline.py", '    return {"measure"', '    {"measure"'),
        "baseline.py:10: the baseline returns None; it must return an output for each subtask, by its name",
        BY_THE_GRADER[2:],
    ),
    "baseline without an output": (
        in_file("baseline.py", '"measure": {"readings": readings}, ', ""),
        "the baseline's answer has no output for 'measure'",
        BY_THE_GRADER[2:],
    ),
    "baseline that does not fit": (
        in_file("baseline.py", '"days_left": 1', '"days_left": -1'),
        "the baseline's answer does not fit the schema of 'decide': days_left: Input should be greater than or equal to 0",
        BY_THE_GRADER[2:],
    ),
}
"""What is broken -> how, the line that says so, and in which checks it stands."""


@pytest.mark.parametrize("what", BROKEN)
def test_code_of_a_pack_that_fails_is_one_line_with_its_place_and_the_other_checks_go_on(pack: Path, what: str) -> None:
    corrupt, line, failing = BROKEN[what]
    corrupt(pack)
    checked = results(pack)
    assert len(checked) == 7
    assert {name for name, result in checked.items() if any(line in problem for problem in result.problems)} == set(failing)
    assert all(len([problem for problem in result.problems if line in problem]) <= 1 for result in checked.values())
    assert checked["no prompt gives the answer away"].status == "ok"


def test_a_pack_that_cannot_be_loaded_has_failed_and_the_next_one_is_checked(pack: Path) -> None:
    edit(pack / "scenario.py", "MIN_CONFIDENCE = 0.6", "MIN_CONFIDENCE = 1 / 0")
    [result] = results(pack).values()
    assert (result.status, result.what) == ("FAILED", "it can be loaded")
    assert result.problems == (f"{pack / 'scenario.py'}:13: does not load: ZeroDivisionError: division by zero",)


@pytest.mark.parametrize("name", ["demmo", "demo:large"])
def test_a_pack_or_variant_that_is_not_there_is_the_users_mistake(pack: Path, name: str) -> None:
    with pytest.raises(PackError, match=r"unknown scenario 'demmo'|has no variant 'large'"):
        list(check_pack(name, [pack.parent]))


def test_a_pack_without_a_checkpoint_is_told_so_and_has_not_failed(pack: Path) -> None:
    edit(pack / "scenario.py", "checkpoint=True", "checkpoint=False")
    [note] = [result for result in results(pack).values() if result.status != "ok"]
    assert note.status == "note" and not note.problems
    assert "set checkpoint=True on a subtask where it should verify" in note.what


def test_an_effect_that_the_decoder_undoes_is_to_blame_and_not_the_pack(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = TextEffect("listed", lambda target, _: f"[{target.text}]", points=("output",), breaks_form=True)
    loaded = LoadedParts({**EFFECTS.by_key, ("listed", "output"): listed}, [*EFFECTS, listed], [])
    monkeypatch.setitem(EFFECTS.__dict__, "_parts", loaded)
    assert not problems(pack)
    [note] = [result for result in results(pack).values() if result.status != "ok"]
    assert note.is_note and note.what.startswith("the effect 'listed' says breaks_form")


def test_an_effect_that_is_not_applicable_to_a_reply_is_a_note_and_neither_passes_nor_fails(
    pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = TextEffect("never", lambda *_: None, points=("output",), breaks_form=True)
    seldom = TextEffect("seldom", lambda _, draw: "{" if draw.random() < 0.3 else None, points=("output",), breaks_form=True)
    parts = {**EFFECTS.by_key, ("never", "output"): never, ("seldom", "output"): seldom}
    monkeypatch.setitem(EFFECTS.__dict__, "_parts", LoadedParts(parts, [*EFFECTS, never, seldom], []))
    assert not problems(pack)
    notes = [result for result in results(pack).values() if result.status != "ok"]
    assert notes and all(note.is_note and note.what.startswith("never is not applicable to the reply to") for note in notes)


def test_a_pack_whose_grader_stands_in_what_is_asked_is_told_so() -> None:
    [note] = [result for result in results(PACKS / "tiny").values() if result.status != "ok"]
    assert note.status == "note"
    assert note.what.startswith("the grader stands in scenario.py, which is part of what is asked")


def test_many_instances_are_one_line_a_check(orchard: Path) -> None:
    lines = list(check_pack("orchard", [orchard.parent]))
    assert {scenario for scenario, _ in lines} == {"orchard (3 instances)"}
    assert [result.status for _, result in lines] == ["ok"] * 7


@pytest.mark.parametrize(("tenths", "status"), [(2, "ok"), (3, "FAILED")])
def test_a_baseline_that_is_right_in_three_of_ten_instances_makes_the_pack_too_easy(
    orchard: Path, tenths: int, status: str
) -> None:
    in_file("harvest.py", '("spring", "summer", "autumn")', "tuple(f'year_{number}' for number in range(10))")(orchard)
    easy = f"{{f'year_{{number}}' for number in range({tenths})}}"
    in_file("harvest.py", "rng.randint(1, 9)", f"rng.randint(1, 9) * (name not in {easy})")(orchard)
    in_code("wrong=wrong_answers(trees)", "wrong=wrong_answers(trees)[1:]")(orchard)
    [result] = [result for result in results(orchard).values() if result.what.startswith("keyword rules")]
    words = f"right in {tenths} of 10" if status == "ok" else f"{tenths} of 10 instances fail"
    assert (result.status, words in result.what) == (status, True)


def test_what_several_instances_have_in_common_is_told_once_and_what_one_has_alone_by_its_name(orchard: Path) -> None:
    in_code("truth=sound(trees)", 'truth={"apples": 0, "pears": 0} if instance != "spring" else sound(trees)')(orchard)
    in_file("grader.py", "f\"wrong: {', '.join(wrong)}\"", '"wrong"')(orchard)
    graded = results(orchard)["the reference answer is graded correct"]
    assert graded.what.endswith("(2 of 3 instances fail)")
    assert graded.problems == ("summer, autumn: wrong",)


def test_an_instance_that_cannot_be_loaded_leaves_the_others_checked(orchard: Path) -> None:
    in_code("    trees = season(instance)", '    trees = season(instance) if instance != "summer" else 1 / 0')(orchard)
    checked = results(orchard)
    assert len(checked["it can be loaded"].problems) == 1
    assert checked["it can be loaded"].problems[0].startswith("summer: ")
    assert "fails: ZeroDivisionError" in checked["it can be loaded"].problems[0]
    assert [result.status for result in checked.values()] == ["FAILED", *["ok"] * 7]


def test_a_check_with_many_problems_shows_the_first_ones(pack: Path) -> None:
    right = {"volume": "archive", "days_left": 6, "confidence": 0.9}
    for number in range(20):
        wrong = {"why": f"of reason {number}", "outputs": {"decide": right}}
        (pack / "reference" / "wrong" / f"right_{number}.json").write_text(json.dumps(wrong))
    lines = results(pack)["every wrong answer is graded wrong"].problems
    assert len(lines) == 11
    assert lines[-1] == "and 10 problems more"


@pytest.mark.parametrize("into", ["scenarios", "my packs"])
def test_the_command_that_a_new_pack_advises_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, into: str) -> None:
    monkeypatch.chdir(tmp_path)
    bench, check, name, *where = shlex.split(check_command(new_scenario("demo", Path(into))))
    assert (bench, check, name) == ("bench", "check", "demo")
    folder = Path(where[1]) if where else Path("scenarios")
    assert where[:1] in ([], ["--scenarios"]) and (folder / name / "scenario.py").is_file()


def test_a_pack_that_lacks_its_data_is_a_note_and_is_listed_with_what_it_lacks(pack: Path) -> None:
    lacking = 'def instances(folder: PackFolder) -> tuple[str, ...]:\n    raise Unavailable("fetch the volumes")\n\n\n'
    edit(pack / "scenario.py", "def scenario(folder: PackFolder)", f"{lacking}def scenario(folder: PackFolder)")
    edit(
        pack / "scenario.py",
        "from bench.run.packs import",
        "from bench.common.errors import Unavailable\nfrom bench.run.packs import",
    )
    assert [(result.status, result.what) for result in results(pack).values()] == [
        ("note", "not available here: fetch the volumes")
    ]
    code, out, _ = bench(pack.parent, "list", "packs", "--scenarios", ".")
    assert code == 0 and "  demo  (variants: paper; not available here: fetch the volumes)\n" in out
