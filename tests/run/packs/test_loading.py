"""A pack loads as it lies in its folder: one scenario, or one for each of its variants and instances."""

from __future__ import annotations

from pathlib import Path

import pytest
from pack_edits import PACKS, copy_of, edit, in_code, refusal
from pydantic import TypeAdapter
from trials import ROOTS

from bench.common.errors import PackError
from bench.common.raised import place_of
from bench.run.packs import PackFolder, find_packs, instances_of, load_instances, load_pack, variants_of
from bench.scenario import MAX_PARTS, Context, Grade, NotRead

TINY = PACKS / "tiny"
SEASONS = ("spring", "summer", "autumn")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return copy_of("tiny", tmp_path)


@pytest.fixture
def orchard(tmp_path: Path) -> Path:
    return copy_of("orchard", tmp_path)


def test_a_pack_is_what_lies_in_its_folder() -> None:
    scenario = load_pack("tiny", ROOTS)
    assert (scenario.name, scenario.variant, scenario.instance) == ("tiny", "paper", "")
    assert list(scenario.task.documents) == ["notes.txt"]
    assert scenario.task.role == "You keep the books of a fruit store."
    assert [[subtask.name for subtask in stage] for stage in scenario.task.stages] == [["gather"], ["total", "review"]]
    assert [wrong.name for wrong in scenario.wrong] == ["eaten_counted", "miscounted"]
    assert {name: len(outputs) for name, outputs in scenario.wrong_outputs.items()} == {"gather": 1, "total": 2}


def test_a_pack_in_another_variant_has_a_name_and_documents_of_its_own() -> None:
    small, large = (load_pack(f"k8s_oomkill:{variant}", ROOTS) for variant in ("paper", "large"))
    assert (small.name, large.name) == ("k8s_oomkill", "k8s_oomkill:large")
    assert sum(map(len, large.task.documents.values())) > sum(map(len, small.task.documents.values()))
    assert variants_of(ROOTS[0] / "k8s_oomkill") == ("paper", "medium", "large", "paper_sized")


def test_two_packs_of_one_name_are_refused_unless_they_are_the_same_folder(tiny: Path) -> None:
    with pytest.raises(PackError, match=r"two packs are named 'tiny': .*; rename one"):
        find_packs([tiny.parent, TINY.parent])
    assert find_packs([tiny.parent, tiny.parent]) == {"tiny": tiny}


def test_two_packs_of_one_name_share_no_module(tiny: Path) -> None:
    edit(tiny / "scenario.py", "SURE = 0.6", "SURE = 0.99")
    copy, original = load_pack("tiny", [tiny.parent]), load_pack("tiny", [TINY.parent])
    weak = [scenario.task.subtasks[0].sufficient for scenario in (copy, original)]
    outputs = [scenario.task.subtasks[0].output.model_validate(scenario.reference["gather"]) for scenario in (copy, original)]
    assert [sufficient and sufficient(output) for sufficient, output in zip(weak, outputs, strict=True)] == [
        "confidence 0.9 is below 0.99",
        None,
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tinny", "unknown scenario 'tinny'; did you mean 'tiny'?"),
        ("tiny:papr", "scenario 'tiny' has no variant 'papr'; did you mean 'paper'?"),
        ("tiny:huge", "scenario 'tiny' has no variant 'huge'; known: paper"),
    ],
)
def test_an_unknown_pack_or_variant_is_refused_with_the_nearest(tiny: Path, name: str, words: str) -> None:
    assert refusal(tiny, name) == words


def test_instances_share_the_packs_name_and_code_and_have_tasks_of_their_own() -> None:
    scenarios = load_instances("orchard", ROOTS)
    assert [scenario.instance for scenario in scenarios] == list(SEASONS) == list(instances_of("orchard", ROOTS))
    assert {scenario.name for scenario in scenarios} == {"orchard"}
    assert len({scenario.task.documents["apples.txt"] for scenario in scenarios}) == 3
    for scenario in scenarios:
        assert scenario.grade_outputs(scenario.reference).correct
        assert not any(scenario.grade_outputs({**scenario.reference, **wrong.outputs}).correct for wrong in scenario.wrong)


def test_the_grader_of_one_instance_refuses_the_answer_of_another() -> None:
    spring, summer, _ = load_instances("orchard", ROOTS)
    assert not spring.grade_outputs(summer.reference).correct


def test_an_instance_is_loaded_by_its_name_and_the_first_where_none_is_named() -> None:
    assert load_pack("orchard", ROOTS, "autumn") == load_instances("orchard", ROOTS)[2]
    assert load_pack("orchard", ROOTS).instance == "spring"


def test_a_pack_of_one_task_has_one_instance_without_a_name() -> None:
    assert instances_of("tiny", ROOTS) == ("",)
    assert instances_of("k8s_oomkill:large", ROOTS) == ("",)
    assert [scenario.instance for scenario in load_instances("tiny", ROOTS)] == [""]


def test_an_unknown_instance_is_refused_with_the_nearest(orchard: Path, tiny: Path) -> None:
    assert refusal(orchard, instance="sprung") == "scenario 'orchard' has no instance 'sprung'; did you mean 'spring'?"
    assert refusal(tiny, instance="spring").startswith("scenario 'tiny' has one task and so no instance 'spring'")


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("None", "returns None; return the names of the instances"),
        ("'spring'", "returns 'spring'; return the names of the instances"),
        ("()", "has no instance"),
        ("('spring', 'spring')", "the instance 'spring' appears twice; rename one"),
        ("('spring', '')", "'' is no name for an instance; use lower-case letters"),
        ("('spring', 7)", "7 is no name for an instance; use lower-case letters"),
        ("(1 / 0 for _ in 'a')", "instances(folder) fails: ZeroDivisionError"),
        ("3", "instances(folder) fails: TypeError"),
    ],
)
def test_instances_that_cannot_be_used_are_refused_in_one_line(orchard: Path, returned: str, words: str) -> None:
    in_code("return SEASONS", f"return {returned}")(orchard)
    assert words in refusal(orchard)


def test_a_pack_must_say_that_it_has_instances_and_take_the_one_that_is_asked_for(orchard: Path) -> None:
    in_code("def instances(", "def seasons(")(orchard)
    assert "`scenario` must take (folder); a pack of several tasks defines instances(folder) as well" in refusal(orchard)


def test_an_instances_scenario_must_take_it(orchard: Path) -> None:
    in_code("def scenario(folder: PackFolder, instance: str)", "def scenario(folder: PackFolder)")(orchard)
    assert "`scenario` must take (folder, instance)" in refusal(orchard)


def test_an_instance_can_have_files_of_its_own_and_never_gets_anothers(tiny: Path) -> None:
    documents = tiny / "documents"
    for day in ("monday", "tuesday"):
        (documents / day).mkdir()
        (documents / day / "notes.txt").write_text(day)
    (documents / "notes.txt").unlink()
    others = frozenset({"tuesday", "friday"})
    assert PackFolder(tiny, "paper", "monday", others).documents() == {"notes.txt": "monday"}
    with pytest.raises(PackError, match=r"has a folder for 'monday' and none for 'friday'; add .*friday"):
        PackFolder(tiny, "paper", "friday", frozenset({"monday", "tuesday"})).documents()


def test_a_variant_that_has_no_folder_never_gets_anothers(tiny: Path) -> None:
    (tiny / "documents" / "long").mkdir()
    (tiny / "documents" / "long" / "notes.txt").write_text("long")
    in_code("SURE = 0.6", 'SURE = 0.6\nVARIANTS = ("paper", "long")')(tiny)
    assert "has a folder for 'long' and none for 'paper'; add " in refusal(tiny)
    assert load_pack("tiny:long", [tiny.parent]).task.documents == {"notes.txt": "long"}


FEWER = """
from dataclasses import replace

from .scenario import scenario as whole

VARIANTS = ("short",)


def scenario(folder):
    all_of_it = whole(folder)
    return replace(all_of_it, task=replace(all_of_it.task, role="You are brief."))
"""


def test_a_variant_that_is_added_in_a_file_of_its_own_changes_nothing_of_those_that_are_there(tiny: Path) -> None:
    before = load_pack("tiny", [TINY.parent])
    (tiny / "variants.py").write_text(FEWER)
    assert variants_of(tiny) == ("paper", "short")
    paper, short = (load_pack(name, [tiny.parent]) for name in ("tiny", "tiny:short"))
    assert (paper.asked, paper.graded_by, paper.task.role) == (before.asked, before.graded_by, before.task.role)
    assert (short.name, short.variant, short.task.role) == ("tiny:short", "short", "You are brief.")
    assert short.asked != paper.asked
    assert load_pack("tiny", [tiny.parent]).task == paper.task, "its import of scenario.py took the pack's function away"


def test_variants_in_two_added_files_change_nothing_of_each_other(tiny: Path) -> None:
    (tiny / "variants.py").write_text(FEWER)
    before = load_pack("tiny:short", [tiny.parent])
    other = copy_of("tiny", tiny.parent / "other")
    (other / "variants.py").write_text(FEWER)
    (other / "variants_terse.py").write_text(FEWER.replace("short", "terse").replace("brief", "terse"))
    assert variants_of(other) == ("paper", "short", "terse")
    short, terse = (load_pack(f"tiny:{name}", [other.parent]) for name in ("short", "terse"))
    assert (short.asked, terse.task.role) == (before.asked, "You are terse.")
    assert terse.asked != short.asked


def test_an_added_variant_is_asked_by_its_own_file_and_by_all_that_this_imports(tmp_path: Path) -> None:
    digests = []
    for number, (file, old, new) in enumerate([("", "", ""), ("variants.py", "brief", "short"), ("scenario.py", "0.6", "0.7")]):
        pack = copy_of("tiny", tmp_path / str(number))
        (pack / "variants.py").write_text(FEWER)
        if file:
            edit(pack / file, old, new)
        digests.append([load_pack(name, [pack.parent]).asked for name in ("tiny", "tiny:short")])
    first, briefer, surer = digests
    assert first[0] == briefer[0] and first[1] != briefer[1]
    assert first[0] != surer[0] and first[1] != surer[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("VARIANTS = ('paper',)", "the variant 'paper' appears twice; rename one"),
        ("VARIANTS = 'short'", "variants.py: VARIANTS is 'short'; write a tuple of names"),
        ("VARIANTS = ('short',)\n1 / 0", "variants.py:2: does not load: ZeroDivisionError: division by zero"),
        ("VARIANTS = ('short',)", "variants.py: defines no function scenario(folder)"),
    ],
)
def test_an_added_file_of_variants_that_cannot_be_used_is_refused_in_one_line(tiny: Path, text: str, words: str) -> None:
    (tiny / "variants.py").write_text(text)
    assert words in refusal(tiny, "tiny:short")


def test_a_byte_order_mark_is_no_part_of_what_a_model_reads(tiny: Path) -> None:
    plain = load_pack("tiny", [tiny.parent])
    for path in (tiny / "documents" / "notes.txt", tiny / "prompts" / "role.md", tiny / "reference" / "answer.json"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    marked = load_pack("tiny", [tiny.parent])
    assert (marked.task.documents, marked.task.role) == (plain.task.documents, plain.task.role)
    assert (marked.reference, marked.asked) == (plain.reference, plain.asked)


def test_the_grader_gets_the_outputs_that_are_the_answer_and_no_others(tiny: Path) -> None:
    in_code('secrets=("forty-two",)', 'answer=("total",)')(tiny)
    in_code("    right = answer", '    assert list(answer) == ["total"]\n    right = answer')(tiny)
    scenario = load_pack("tiny", [tiny.parent])
    assert scenario.task.answer_names == ("total",)
    assert scenario.grade_outputs({"total": scenario.reference["total"]}).correct
    assert scenario.grade_outputs(scenario.reference).correct
    every = {
        subtask.name: subtask.output.model_validate(scenario.reference[subtask.name]) for subtask in scenario.task.subtasks
    }
    assert scenario.grade_answer(every).correct


def test_the_answer_is_every_subtasks_output_where_a_pack_names_none() -> None:
    assert load_pack("tiny", ROOTS).task.answer_names == ("gather", "total", "review")


@pytest.mark.parametrize("score", [-0.1, 1.01, float("nan"), float("inf"), None])
def test_a_score_outside_its_bounds_is_no_grade(score: float) -> None:
    with pytest.raises(ValueError, match=r"`score` is .*; it must be a number from 0 to 1"):
        Grade(False, score, {})
    with pytest.raises(ValueError, match=r"`volume` is .*; it must be a number from 0 to 1"):
        Grade(False, 0.5, {"volume": score})


def test_a_grade_has_no_more_parts_than_its_record_may_hold() -> None:
    most = {f"part {number}": 1.0 for number in range(MAX_PARTS)}
    assert TypeAdapter(Grade).validate_python({"correct": True, "score": 1.0, "parts": most}) == Grade(True, 1.0, most)
    with pytest.raises(ValueError, match="a grade has 1,001 parts; it may have 1,000"):
        Grade(True, 1.0, most | {"one more": 1.0})


def test_a_correct_answer_may_score_less_than_1() -> None:
    assert Grade(True, 0.8, {"style": 0.6}).correct


def test_a_name_that_code_may_not_read_is_told_with_those_that_it_may() -> None:
    context = Context({"notes.txt": "12"}, {"gather": 1})
    with pytest.raises(NotRead) as unread:
        context.outputs["total"]
    assert str(unread.value) == "the subtask does not read the output 'total'; add it to its reads, which now have: gather"
    with pytest.raises(NotRead) as missing:
        context.documents["note.txt"]
    assert str(missing.value) == "there is no document 'note.txt'; the documents are: notes.txt"
    assert context.outputs.get("total") is None


def test_an_error_is_placed_at_the_last_line_of_the_pack_that_it_passed() -> None:
    scenario = load_pack("tiny", ROOTS)
    with pytest.raises(KeyError) as error:
        scenario.grade({}, scenario.truth)
    source = (TINY / "scenario.py").read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if 'answer["total"].total' in text)
    assert place_of(error.value, TINY) == f"scenario.py:{line}"
    assert place_of(error.value, PACKS / "orchard") == ""


def test_the_place_is_where_an_error_was_raised_and_not_where_it_was_called(tmp_path: Path) -> None:
    orchard = copy_of("orchard", tmp_path)
    edit(orchard / "harvest.py", "    rng = Random", "    1 / 0\n    rng = Random")
    source = (orchard / "harvest.py").read_text().splitlines()
    assert refusal(orchard).startswith(
        f"{orchard / 'harvest.py'}:{source.index('    1 / 0') + 1}: scenario(folder, instance) fails"
    )
