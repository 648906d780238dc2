"""A pack loads as it lies in its folder, and one that cannot be used is refused in one line that says what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from trials import ROOTS

from bench.errors import PackError
from bench.packs import PackFolder, find_packs, load_pack, variants_of

TINY = ROOTS[1] / "tiny"


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A copy of the tiny pack, to be corrupted."""
    return Path(shutil.copytree(TINY, tmp_path / "tiny", ignore=shutil.ignore_patterns("__pycache__")))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def refusal(pack: Path, name: str = "tiny") -> str:
    with pytest.raises(PackError) as refused:
        load_pack(name, [pack.parent])
    said = str(refused.value)
    assert "\n" not in said
    return said


def in_code(old: str, new: str) -> Callable[[Path], object]:
    return lambda pack: edit(pack / "scenario.py", old, new)


def before_the_end(code: str) -> Callable[[Path], object]:
    return in_code("    return folder.scenario(", f"{code}    return folder.scenario(")


def in_file(name: str, old: str, new: str) -> Callable[[Path], object]:
    return lambda pack: edit(pack / name, old, new)


def test_a_pack_is_what_lies_in_its_folder() -> None:
    scenario = load_pack("tiny", ROOTS)
    assert (scenario.name, scenario.size) == ("tiny", "paper")
    assert list(scenario.task.documents) == ["notes.txt"]
    assert scenario.task.role == "You keep the books of a fruit store."
    assert [[subtask.name for subtask in stage] for stage in scenario.task.stages] == [["gather"], ["total", "review"]]
    assert [wrong.name for wrong in scenario.wrong] == ["eaten_counted", "miscounted"]
    assert {name: len(outputs) for name, outputs in scenario.wrong_outputs.items()} == {"gather": 1, "total": 2}


def test_a_pack_in_another_size_has_a_name_and_documents_of_its_own() -> None:
    small, large = (load_pack(f"k8s_oomkill:{size}", ROOTS) for size in ("paper", "large"))
    assert (small.name, large.name) == ("k8s_oomkill", "k8s_oomkill:large")
    assert sum(map(len, large.task.documents.values())) > sum(map(len, small.task.documents.values()))
    assert variants_of(ROOTS[0] / "k8s_oomkill") == ("paper", "medium", "large")


def test_a_digest_is_of_every_name_and_byte_but_of_no_cache(pack: Path) -> None:
    def digest() -> str:
        return PackFolder(pack, "paper").digest()

    seen = {digest()}
    (pack / "__pycache__").mkdir()
    (pack / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert digest() in seen
    edit(pack / "documents" / "notes.txt", "12", "13")
    assert digest() not in seen
    seen.add(digest())
    (pack / "documents" / "notes.txt").rename(pack / "documents" / "other.txt")
    assert digest() not in seen
    assert load_pack("tiny", ROOTS).digest == PackFolder(TINY, "paper").digest()


def test_two_packs_of_one_name_are_refused_unless_they_are_the_same_folder(pack: Path) -> None:
    with pytest.raises(PackError, match=r"two packs are named 'tiny': .*; rename one"):
        find_packs([pack.parent, TINY.parent])
    assert find_packs([pack.parent, pack.parent]) == {"tiny": pack}


def test_two_packs_of_one_name_share_no_module(pack: Path) -> None:
    edit(pack / "scenario.py", "SURE = 0.6", "SURE = 0.99")
    copy, original = load_pack("tiny", [pack.parent]), load_pack("tiny", [TINY.parent])
    weak = [scenario.task.subtasks[0].sufficient for scenario in (copy, original)]
    outputs = [scenario.task.subtasks[0].output.model_validate(scenario.reference["gather"]) for scenario in (copy, original)]
    assert [sufficient and sufficient(output) for sufficient, output in zip(weak, outputs, strict=True)] == [
        "confidence 0.9 is below 0.99",
        None,
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tinny", "unknown scenario 'tinny'; did you mean 'tiny'?"),
        ("tiny:papr", "scenario 'tiny' has no variant 'papr'; did you mean 'paper'?"),
        ("tiny:huge", "scenario 'tiny' has no variant 'huge'; known: paper"),
    ],
)
def test_an_unknown_pack_or_size_is_refused_with_the_nearest(pack: Path, name: str, said: str) -> None:
    assert refusal(pack, name) == said


UNUSABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "cycle": (
        in_code('reads=("notes.txt",)', 'reads=("notes.txt", "review")'),
        "subtask 'gather' reads 'review', but the reads form a cycle: gather -> review -> gather",
    ),
    "reads itself": (in_code('reads=("gather",)', 'reads=("gather", "total")'), "form a cycle: total -> total"),
    "order": (
        before_the_end("    subtasks = (subtasks[0], subtasks[2], subtasks[1])\n"),
        "subtask 'review' reads 'total', but 'total' stands after it; change their order",
    ),
    "unknown read": (
        in_code('reads=("gather",)', 'reads=("gathr",)'),
        "reads 'gathr', which does not exist; did you mean 'gather'?",
    ),
    "unread document": (
        lambda pack: (pack / "documents" / "more.txt").write_text("more"),
        "no subtask reads the document 'more.txt'; let one read it, or remove it",
    ),
    "foreign name in a prompt": (
        in_file("prompts/total.md", "`gather`", "`notes.txt`"),
        "the prompt of 'total' names `notes.txt`, which it does not read; add it to its reads, or take it out",
    ),
    "duplicate subtask": (in_code('"review",', '"total",'), "the name 'total' stands twice among its subtasks and documents"),
    "subtask named as a document": (
        lambda pack: (pack / "documents" / "notes.txt").rename(pack / "documents" / "gather"),
        "the name 'gather' stands twice",
    ),
    "no subtask": (before_the_end("    subtasks = ()\n"), "has no subtask"),
    "nothing required": (
        in_code("approved: bool\n    problems: list[str]", "approved: bool = True\n    problems: list[str] = []"),
        "the output of 'review' has no required field, so that no missing field could ever be noticed; require one",
    ),
    "module that does not load": (in_code("from __future__", "import nowhere\nfrom __future__"), "does not load: "),
    "function that fails": (
        before_the_end("    1 / 0\n"),
        "fails: ZeroDivisionError",
    ),
    "no function": (in_code("def scenario(folder", "def scenery(folder"), "defines no function scenario(folder)"),
    "function of something else": (
        in_code("return folder.scenario(subtasks, ", "return dict("),
        "must return a bench.scenario.Scenario",
    ),
    "missing prompt": (lambda pack: (pack / "prompts" / "total.md").unlink(), "prompts/total.md: cannot be read"),
    "missing reference": (lambda pack: (pack / "reference" / "answer.json").unlink(), "answer.json: cannot be read"),
    "reference that is no JSON": (in_file("reference/answer.json", "{", "("), "answer.json: is no JSON"),
    "reference that is a list": (
        lambda pack: (pack / "reference" / "answer.json").write_text("[]"),
        "answer.json: must be an object with one output per subtask",
    ),
    "reference that does not fit": (
        in_file("reference/answer.json", '"apples": 12', '"apples": 0'),
        "the reference answer does not fit the schema of 'gather' at deliveries.0.apples: ",
    ),
    "reference that lacks an output": (
        lambda pack: (
            (pack / "reference" / "answer.json").write_text(json.dumps({"gather": {"deliveries": [], "confidence": 1}}))
            and None
        ),
        "the reference answer must hold an output for each of gather, total, review",
    ),
    "wrong answer without a why": (
        in_file("reference/wrong/miscounted.json", '"why"', '"how"'),
        'must be an object with "why"',
    ),
    "wrong answer for no subtask": (
        in_file("reference/wrong/miscounted.json", '"total":', '"totl":'),
        "the wrong answer 'miscounted' holds an output for 'totl', which is no subtask; did you mean 'total'?",
    ),
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_pack_that_cannot_be_used_is_refused_in_one_line_that_says_why(pack: Path, what: str) -> None:
    corrupt, said = UNUSABLE[what]
    corrupt(pack)
    assert said in refusal(pack)
