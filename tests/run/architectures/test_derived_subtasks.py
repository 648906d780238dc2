"""A derived split: the model's parts become subtasks, and a split that cannot be carried out ends in one clear outcome."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_model import ScriptedModel
from trials import ROOTS, calls, conducted, events, stages, verdicts

from bench.record.events import Answered, Called, Judged
from bench.record.ledger import book
from bench.run.architectures.derived_subtasks import MAX_PARTS, derived_subtasks, split_of
from bench.run.experiment.trial import TrialResult
from bench.run.packs import load_pack
from bench.scenario import Json

ORCHARD = load_pack("orchard", ROOTS)
PACK = f"orchard/{ORCHARD.instance}"
ANSWER = "apples+pears+store"
NOTES = {"notes": "twelve crates"}


def part(name: str, *reads: str) -> dict[str, Json]:
    return {"name": name, "instructions": f"Note down what {name} needs.", "reads": list(reads)}


def split(*parts: dict[str, Json], answer_reads: tuple[str, ...] = ()) -> dict[str, Json]:
    return {"parts": list(parts), "answer_reads": list(answer_reads)}


COUNT, SUM = part("count", "apples.txt", "pears.txt"), part("sum", "count")
TWO = split(SUM, COUNT, answer_reads=("pears.txt",))


def trial(script: dict[str, list[Json]] | None = None, **settings: Any) -> tuple[TrialResult, ScriptedModel]:
    model = ScriptedModel({**ORCHARD.reference, "Split": TWO, "count": NOTES, "sum": NOTES}, script)
    return conducted(derived_subtasks, pack=PACK, model=model, **settings), model


FIRST = [("Split", 1, "first"), ("count", 1, "first"), ("sum", 1, "first"), (ANSWER, 1, "first")]


def test_the_models_parts_are_asked_in_the_order_of_their_reads_and_the_answer_last() -> None:
    result, _ = trial()
    assert (result.record.outcome, calls(result)) == ("solved", FIRST)


def test_parts_that_do_not_read_each_other_are_asked_at_the_same_time() -> None:
    parts = split(part("one", "apples.txt"), part("two", "pears.txt"))
    model = ScriptedModel({**ORCHARD.reference, "Split": parts, "one": NOTES, "two": NOTES})
    result = conducted(derived_subtasks, pack=PACK, model=model)
    assert [call.started for call in events(result, Called)] == [0.0, 1.0, 1.0, 2.0]


def test_the_splitter_is_told_every_instruction_and_each_documents_name_and_none_of_its_text() -> None:
    _, model = trial()
    asked = model.requests[0].messages[1].content
    assert all(f"# Output: {subtask.name}\n{subtask.instructions}" in asked for subtask in ORCHARD.task.subtasks)
    assert "- apples.txt, " in asked and ORCHARD.task.documents["apples.txt"] not in asked


def test_a_part_is_told_its_instructions_and_what_it_reads_and_nothing_else() -> None:
    _, model = trial()
    count, add = (request.messages[1].content for request in model.requests[1:3])
    assert "Note down what count needs." in count and ORCHARD.task.documents["pears.txt"] in count
    assert "# Input: count\n" in add and "apples.txt" not in add


def test_the_answer_is_written_from_all_notes_and_from_the_documents_that_the_split_names() -> None:
    _, model = trial()
    asked = model.requests[3].messages[1].content
    assert "# Input: count\n" in asked and "# Input: sum\n" in asked
    assert ORCHARD.task.documents["pears.txt"] in asked and ORCHARD.task.documents["apples.txt"] not in asked


def test_a_rejected_part_and_a_rejected_answer_are_asked_for_again_alone_with_the_reason() -> None:
    result, model = trial({"count": [{}], ANSWER: [{**ORCHARD.reference, "pears": {"crates": 3}}]})
    assert result.record.outcome == "solved"
    assert calls(result) == [*FIRST[:2], ("count", 2, "retry"), *FIRST[2:], (ANSWER, 2, "retry")]
    assert "Reason: notes: Field required" in model.requests[2].messages[1].content
    assert "Reason: trees: Field required" in model.requests[5].messages[1].content


def test_the_split_and_the_parts_are_in_the_lineage_of_the_answer_and_not_in_the_answer() -> None:
    result, _ = trial()
    assert {entry.account for entry in book(result.record.events)} == {"in_answer"}
    [answer] = events(result, Answered)
    assert [name for name, _ in answer.versions] == ["apples", "pears", "store"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (split(), "parts: List should have at least 1 item"),
        (split(part("a", "b"), part("b", "a")), "none of these can be the first, since each waits for another: a, b"),
        (split(part("a", "a")), "none of these can be the first, since each waits for another: a"),
        (split(part("a", "plums.txt")), "part 'a' reads 'plums.txt', which does not exist; it can read "),
        (split(part("a", "store")), "part 'a' reads 'store', which does not exist; it can read "),
        (split(part("a"), answer_reads=("a",)), "the answer reads 'a', which does not exist; it can read "),
        (split(part("store")), "the name 'store' is that of a document or of an output; give the part another"),
        (split(part("a"), part("a")), "2 parts are named 'a'; give each a name of its own"),
        (split(part("Split")), "parts.0.name: String should match pattern"),
        (
            split(*(part(f"p{number}") for number in range(MAX_PARTS + 1))),
            f"there are {MAX_PARTS + 1} parts; make at most {MAX_PARTS}",
        ),
    ],
)
def test_a_split_that_cannot_be_carried_out_is_refused_with_the_reason_and_made_again_alone(
    wrong: dict[str, Json], why: str
) -> None:
    result, model = trial({"Split": [wrong]})
    assert (result.record.outcome, calls(result)) == ("solved", [FIRST[0], ("Split", 2, "retry"), *FIRST[1:]])
    assert why in events(result, Judged)[0].detail
    assert why in model.requests[1].messages[1].content


def test_a_model_that_makes_no_split_that_can_be_carried_out_gives_up_in_one_line() -> None:
    result, _ = trial({"Split": [split(part("a", "b"), part("b", "a"))] * 4})
    assert (result.record.outcome, result.record.reason) == ("gave_up", "Split: no accepted output in 3 attempts")
    assert len(calls(result)) == 3


def test_a_fault_at_an_output_of_the_pack_strikes_the_call_that_writes_the_answer() -> None:
    fault: Any = {"point": "output", "effect": "missing_field", "subtask": "pears", "attempts": [1]}
    result, _ = trial(faults=[fault])
    assert stages(result) == {1: ["planned", "delivered", "detected", "recovered"]}
    assert calls(result)[-1] == (ANSWER, 2, "retry") and ("pears", "schema") in verdicts(result)


def test_a_simulated_model_splits_as_the_pack_does() -> None:
    parts = split_of(ORCHARD.task).parts
    assert [(planned.name, planned.reads) for planned in parts][-1] == ("store_notes", ["apples_notes", "pears_notes"])
