"""`bench verify` says of each line what became of it, and a report is made of what is sound alone."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import bench
from experiment_runs import chained_anew, config, run, without
from trials import ROOTS

from bench.common.errors import ResultsError
from bench.read.analysis.frames import load_run
from bench.record.archive import MEMBERS
from bench.record.files import GRADES, MANIFEST, RESPONSES, TEXTS, TRIALS, runs_in
from bench.record.reading import read_manifest, read_records, read_trials
from bench.record.record import NewGrade, Regrade, SessionRecord
from bench.record.store import RunWriter, append_grades, writing
from bench.record.verify import require_sound, sources, verify, whole_digest
from bench.run.experiment.regrade import regrade
from bench.scenario import Grade

Lines = list[bytes]
COMMITTED = runs_in(Path("results"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of eight trials, one of them graded anew."""
    folder = tmp_path_factory.mktemp("verify") / "run"
    trials = run(config({"kind": "simulated"}, repetitions=2, plans=["none", "early"]), folder)
    again = NewGrade(trials[0].id, "wrong", Grade(False, 0.5, {}))
    append_grades(folder, [Regrade("2026-01-01T00:00:00+00:00", "tiny", "9ade", 1, 1), again])
    return folder


def changed(whole: Path, name: str, change: Callable[[Lines], Lines]) -> Path:
    folder = whole.with_name("changed")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    lines = (folder / name).read_bytes().splitlines(keepends=True)
    (folder / name).write_bytes(b"".join(change(lines)))
    return folder


def defects_of(folder: Path) -> list[str]:
    return [defect.text.removeprefix(f"{folder}/") for defect in verify(folder).defects]


def outcome_changed(line: bytes) -> bytes:
    return re.sub(rb'"tokens":(\d)', rb'"tokens":1\1', line, count=1)


def link_changed(line: bytes) -> bytes:
    return line[:-5] + (b"00" if line[-5:-3] != b"00" else b"11") + line[-3:]


DAMAGES: dict[str, tuple[str, Callable[[Lines], Lines], list[str]]] = {
    "nothing": (TRIALS, lambda lines: lines, []),
    "a value": (
        TRIALS,
        lambda lines: [*lines[:2], outcome_changed(lines[2]), *lines[3:]],
        [
            "trials.jsonl: line 3 was changed, or lines before it are lost",
            "trials.jsonl: line 3 contradicts itself: it says 1615 tokens, and its calls have 615",
        ],
    ),
    "a broken line": (
        TRIALS,
        lambda lines: [*lines[:2], lines[2][:40] + b"\n", *lines[3:]],
        [
            "trials.jsonl: line 3 was changed: it is not a record any more",
            "trials.jsonl: line 10 says that the run is complete with 8 trials: 1 of them are lost",
        ],
    ),
    "a link": (
        TRIALS,
        lambda lines: [*lines[:2], link_changed(lines[2]), *lines[3:]],
        ["trials.jsonl: line 3 was changed: its link is another"],
    ),
    "a lost line": (
        TRIALS,
        lambda lines: [*lines[:2], *lines[3:]],
        [
            "trials.jsonl: line 3 was changed, or lines before it are lost",
            "trials.jsonl: line 9 says that the run is complete with 8 trials: 1 of them are lost",
        ],
    ),
    "a doubled line": (
        TRIALS,
        lambda lines: [*lines[:5], lines[2], *lines[5:]],
        ["trials.jsonl: line 6 appears twice: it is line 3 again"],
    ),
    "a moved line": (
        TRIALS,
        lambda lines: [*lines[:2], *lines[3:6], lines[2], *lines[6:]],
        [
            "trials.jsonl: line 3 is in another place: it belongs behind line 6",
            "trials.jsonl: line 6 is in another place: it belongs behind line 2",
            "trials.jsonl: line 7 is in another place: it belongs behind line 5",
        ],
    ),
    "the last responses": (
        RESPONSES,
        lambda lines: lines[:-1],
        [
            "responses.jsonl: lacks responses that were there when the run was complete",
            "responses.jsonl: lacks 1 responses of the trial in line 9 of trials.jsonl",
        ],
    ),
    "a text's letter": (
        TEXTS,
        lambda lines: [lines[0].replace(b"a", b"b"), *lines[1:]],
        ["texts.jsonl: line 1 was changed: its text does not fit its digest"],
    ),
    "a doubled text": (
        TEXTS,
        lambda lines: [*lines, lines[3]],
        ["texts.jsonl: line {last} appears twice: its text is that of line 4"],
    ),
    "texts in another order": (TEXTS, lambda lines: lines[::-1], []),
    "a grade of another run": (
        GRADES,
        lambda lines: [lines[0], re.sub(rb'"trial":"\w{20}', b'"trial":"' + b"0" * 20, lines[1])],
        ["grades.jsonl: line 2 was changed, or lines before it are lost"],
    ),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_what_became_of_a_line_is_named(whole: Path, what: str) -> None:
    name, change, expected = DAMAGES[what]
    folder = changed(whole, name, change)
    last = (folder / name).read_bytes().count(b"\n")
    lines = defects_of(folder)
    assert lines[: len(expected)] == [line.format(last=last) for line in expected]
    assert all(re.search("lacks the text|grades the trial", line) for line in lines[len(expected) :]), lines


def test_a_lost_text_is_named_with_the_line_that_names_it(whole: Path) -> None:
    defects = defects_of(changed(whole, TEXTS, lambda lines: lines[1:]))
    assert len(defects) == 1 and re.fullmatch(
        r"texts\.jsonl: lacks the text \w{20}, which line 2 of trials\.jsonl names", defects[0]
    )


def test_lost_trials_are_found_where_the_rest_was_chained_anew(whole: Path) -> None:
    folder = changed(whole, TRIALS, lambda lines: lines)
    without(folder / TRIALS, lambda record: record.get("repetition") == 2)
    assert defects_of(folder) == ["trials.jsonl: line 6 says that the run is complete with 8 trials: 4 of them are lost"]
    assert sources(folder) != sources(whole)


def plain_copy(whole: Path, to: Path) -> Path:
    """The same run, of which nothing was graded anew."""
    shutil.copytree(whole, to)
    (to / GRADES).unlink()
    return to


def test_grades_that_no_regrade_left_are_found(whole: Path, tmp_path: Path) -> None:
    first, other = [trial.id for trial in read_trials(whole)][:2]
    graded: dict[str, list[Regrade | NewGrade]] = {
        "without a regrade": [NewGrade(first, "wrong", Grade(False, 0.0, {}))],
        "of another scenario": [Regrade("2026", "other", "9ade", 1, 1), NewGrade(first, "wrong", Grade(False, 0.0, {}))],
        "more than it says": [
            Regrade("2026", "tiny", "9ade", 1, 1),
            *(NewGrade(id_, "wrong", Grade(False, 0.0, {})) for id_ in (first, other)),
        ],
    }
    for name, records in graded.items():
        folder = plain_copy(whole, tmp_path / name)
        append_grades(folder, records)
        place = f"grades.jsonl: line {len(records)} "
        assert defects_of(folder) == [f"{place}grades a trial anew, and stands behind no regrade of its scenario that says so"]


def test_a_regrade_that_lost_its_grades_is_found_until_it_is_made_again(whole: Path, tmp_path: Path) -> None:
    folder = plain_copy(whole, tmp_path / "run")
    first, other = [trial.id for trial in read_trials(whole)][:2]
    append_grades(folder, [Regrade("2026", "tiny", "9ade", 8, 2), NewGrade(first, "wrong", Grade(False, 0.0, {}))])
    lost = "grades.jsonl: line 1 says that 2 grades changed, and 1 of them are lost; `bench more regrade` makes them again"
    assert defects_of(folder) == [lost]
    append_grades(folder, [Regrade("2026", "tiny", "9ade", 8, 1), NewGrade(other, "wrong", Grade(False, 0.0, {}))])
    assert defects_of(folder) == []


def test_an_outcome_that_contradicts_its_grade_is_found(whole: Path, tmp_path: Path) -> None:
    folder = plain_copy(whole, tmp_path / "run")
    trial = next(read_trials(folder))
    wrong = (b'"outcome":"solved"', b'"outcome":"wrong"')
    chained_anew(folder / TRIALS, lambda lines: [lines[0], lines[1].replace(*wrong), *lines[2:]])
    assert defects_of(folder) == ["trials.jsonl: line 2 contradicts itself: its outcome is wrong, its grade means solved"]
    append_grades(folder, [Regrade("2026", "tiny", "9ade", 8, 1), NewGrade(trial.id, "solved", Grade(False, 0.0, {}))])
    assert "grades.jsonl: line 2 contradicts itself: its outcome is solved, its grade means wrong" in defects_of(folder)


def cut(folder: Path, name: str, lines: int) -> None:
    """Cut lines off the end of a file."""
    kept = (folder / name).read_bytes().splitlines(keepends=True)
    (folder / name).write_bytes(b"".join(kept[:-lines]))


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_a_complete_run_whose_last_lines_are_cut_off_is_refused(whole: Path, tmp_path: Path, lines: int) -> None:
    folder = plain_copy(whole, tmp_path / "results" / "run")
    assert bench(tmp_path, "verify", "run")[0] == 0
    cut(folder, TRIALS, lines)
    code, out, _ = bench(tmp_path, "verify", "run")
    assert (code, out) == (
        1,
        "results/run: has no end: its last session began with 8 of 8 trials to run; it was killed, or lines are cut off its "
        "end: run it again, or restore it from a copy\n",
    )


def test_a_run_that_is_being_written_is_not_refused_for_its_missing_end(whole: Path, tmp_path: Path) -> None:
    folder = plain_copy(whole, tmp_path / "results" / "run")
    cut(folder, TRIALS, 4)
    with writing(folder):
        code, out, _ = bench(tmp_path, "verify", "run")
    assert code == 0 and "sound: 5 trials" in out and "; not complete: no end: its last session began with 8 of 8" in out


def test_responses_and_trials_cut_off_together_are_missed_by_the_mark_of_the_end(whole: Path, tmp_path: Path) -> None:
    folder = plain_copy(whole, tmp_path / "run")
    without(folder / TRIALS, lambda record: record.get("repetition") == 2)
    cut(folder, RESPONSES, len((folder / RESPONSES).read_bytes().splitlines()) // 2)
    assert "responses.jsonl: lacks responses that were there when the run was complete" in defects_of(folder)


def test_a_run_that_goes_on_is_complete_again_at_its_new_end(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "run"
    run(config({"kind": "simulated"}, repetitions=1), folder)
    run(config({"kind": "simulated"}, repetitions=1), folder)
    ends = [record.mark for record in read_records(folder) if isinstance(record, SessionRecord) and record.what == "ended"]
    assert len(ends) == 2 and ends[0] == ends[1] and ends[0] is not None and verify(folder).ending == "complete"
    cut(folder, TRIALS, 1)
    assert not verify(folder).has_end and bench(tmp_path, "verify", "run")[0] == 1


def test_a_run_that_lost_all_its_trials_and_kept_their_responses_is_not_sound(whole: Path, tmp_path: Path) -> None:
    folder = plain_copy(whole, tmp_path / "results" / "run")
    (folder / TRIALS).write_bytes(b"")
    code, out, _ = bench(tmp_path, "verify", "run")
    assert code == 1 and "has no session, but " in out
    (folder / RESPONSES).write_bytes(b"")
    (folder / TEXTS).write_bytes(b"")
    assert bench(tmp_path, "verify", "run")[0] == 0


def test_a_published_digest_tells_a_changed_run_from_the_one_that_was_made_anew(whole: Path, tmp_path: Path) -> None:
    folder = plain_copy(whole, tmp_path / "results" / "run")
    digest = whole_digest(folder)
    assert f"digest {digest}\n" in bench(tmp_path, "verify", "run")[1]
    assert bench(tmp_path, "verify", "run", "--digest", digest)[0] == 0
    assert bench(tmp_path, "verify", "run", "--digest", "")[0] == 2
    append_grades(folder, [Regrade("2026", "tiny", "9ade", 8, 0)])
    code, out, _ = bench(tmp_path, "verify", "run", "--digest", digest)
    assert code == 1 and "and its digest is another: it was made anew, or it went on" in out
    lines = (folder / TRIALS).read_bytes().splitlines(keepends=True)
    (folder / TRIALS).write_bytes(b"".join([lines[0], outcome_changed(lines[1]), *lines[2:]]))
    code, out, _ = bench(tmp_path, "verify", "run", "--digest", digest)
    assert code == 1 and "results/run: it has changed since its digest was made" in out
    assert bench(tmp_path, "verify", "--digest", digest)[2] == "bench: --digest belongs to one run; name that run alone\n"


def test_the_digest_of_a_run_is_the_one_that_sha256sum_makes(whole: Path) -> None:
    names = [name for name in MEMBERS if (whole / name).exists()]
    listed = subprocess.run(["sha256sum", *names], cwd=whole, capture_output=True, check=True).stdout
    assert hashlib.sha256(listed).hexdigest() == whole_digest(whole)


def test_many_defects_of_one_kind_are_counted_and_not_listed(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.record.verify.MAX_DEFECTS", 5)
    defects = defects_of(changed(whole, TEXTS, lambda _: []))
    assert len(defects) == 5 and re.search(r"lacks the text .*; and \d+ more such$", defects[4])


def test_a_file_of_broken_lines_is_read_up_to_the_first_few_of_them(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.record.verify.MAX_DEFECTS", 5)
    defects = defects_of(changed(whole, TEXTS, lambda lines: [line.replace(b'"text": "', b'"text": "!') for line in lines]))
    assert len([line for line in defects if "does not fit" in line]) == 5
    assert defects[5:] == ["texts.jsonl: line 6 and all behind it were not checked: too many before it are broken"]


@pytest.mark.parametrize("name", [TRIALS, TEXTS, RESPONSES, GRADES])
def test_many_lines_of_a_stranger_take_little_memory_and_time(whole: Path, name: str) -> None:
    folder = changed(whole, name, lambda lines: [*lines, b"x\n" * 100_000])
    began = time.process_time()
    tracemalloc.start()
    defects = verify(folder).defects
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(defects) < 30 and any("were not checked" in defect.text for defect in defects)
    assert peak < 24 * 2**20 and time.process_time() - began < 5


def test_the_place_of_a_long_line_is_searched_among_few_others(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.record.verify.SEARCHED", 2**24)
    long = b'{"text":"' + b"a" * 2**20 + b'","chain":"' + b"0" * 20 + b'"}\n'
    folder = changed(whole, TRIALS, lambda lines: [*lines, long, *[b"{}\n"] * 10_000])
    began = time.process_time()
    assert verify(folder).defects and time.process_time() - began < 5


Forged = Callable[[Any], Any]
FORGERIES: dict[str, tuple[Forged, str]] = {
    "another outcome": (
        lambda trial: {**trial, "outcome": "gave_up", "grade": None},
        r"is another record of the trial \w{20}, which had ended in line 2",
    ),
    "an error": (
        lambda trial: {**trial, "outcome": "error", "grade": None},
        r"is another record of the trial \w{20}, which had ended in line 2",
    ),
    "another id": (lambda trial: {**trial, "id": "0" * 20}, "is a second trial of what an earlier line did"),
    "another instance": (
        lambda trial: {**trial, "id": "0" * 20, "instance": "other"},
        r"is a trial that manifest\.json does not name",
    ),
    "another model": (lambda trial: {**trial, "id": "0" * 20, "model": "o"}, r"is a trial that manifest\.json does not name"),
}


def forged(whole: Path, to: Path, forge: Forged) -> Path:
    """The run with its first trial once more, forged, and a session's two lines: what stood there before is as it was."""
    folder = plain_copy(whole, to)
    before = (folder / TRIALS).read_bytes()
    chained_anew(folder / TRIALS, lambda lines: [*lines, json.dumps(forge(json.loads(lines[1]))).encode(), lines[0], lines[-1]])
    assert (folder / TRIALS).read_bytes().startswith(before)
    return folder


@pytest.mark.parametrize("name", FORGERIES)
def test_a_trial_that_no_run_of_the_config_has_is_a_defect(whole: Path, tmp_path: Path, name: str) -> None:
    forge, words = FORGERIES[name]
    first, *more = defects_of(forged(whole, tmp_path / "run", forge))[::-1]
    assert re.match(rf"trials\.jsonl: line 11 {words}", first), first
    assert all(re.search("says that the run is complete|lacks 5 responses", line) for line in more), more


@pytest.mark.parametrize("name", ["another outcome", "an error"])
def test_no_reader_takes_a_second_record_of_a_trial_that_had_ended(whole: Path, tmp_path: Path, name: str) -> None:
    folder = forged(whole, tmp_path / "results" / "run", FORGERIES[name][0])
    words = r"holds another record of the trial \w{20}, which had ended; `bench verify .*run` names its line"
    for read in (load_run, lambda folder: RunWriter(folder, read_manifest(folder)), lambda folder: regrade(folder, ROOTS)):
        with pytest.raises(ResultsError, match=words):
            read(folder)
    code, _, err = bench(tmp_path, "report", "run")
    assert code == 2 and "is another record of the trial" in err and err.count("\n") == 1


def test_the_tokens_of_a_trial_are_those_of_its_calls(whole: Path, tmp_path: Path) -> None:
    folder = plain_copy(whole, tmp_path / "run")
    chained_anew(folder / TRIALS, lambda lines: [*lines[:2], outcome_changed(lines[2]), *lines[3:]])
    assert defects_of(folder) == ["trials.jsonl: line 3 contradicts itself: it says 1615 tokens, and its calls have 615"]


def of_events(change: Callable[[list[Any]], list[Any]]) -> Callable[[Lines], Lines]:
    """A change of the events of every trial, with the tokens that its calls then have."""

    def changed(line: bytes) -> bytes:
        record = json.loads(line)
        if "events" not in record:
            return line
        events = change(record["events"])
        tokens = sum(event["tokens_in"] + event["tokens_out"] for event in events if event["kind"] == "call")
        return json.dumps({**record, "events": events, "tokens": tokens}).encode()

    return lambda lines: list(map(changed, lines))


EMPTIED: dict[str, tuple[Callable[[list[Any]], list[Any]], str]] = {
    "no event": (lambda _: [], "trials.jsonl: line 2 contradicts itself: it has a grade, and its events have no answer"),
    "no commit": (
        lambda events: [event for event in events if event["kind"] != "commit"],
        "trials.jsonl: line 2 contradicts itself: its answer has version 1 of 'gather', which no event commits",
    ),
    "no call": (
        lambda events: [event for event in events if event["kind"] in ("commit", "answer")],
        "responses.jsonl: line 1 is of the trial in line 2 of trials.jsonl, which has no call",
    ),
}


@pytest.mark.parametrize("name", EMPTIED)
def test_a_graded_trial_has_an_answer_that_was_committed_and_a_response_has_a_call(
    whole: Path, tmp_path: Path, name: str
) -> None:
    change, expected = EMPTIED[name]
    folder = plain_copy(whole, tmp_path / "run")
    chained_anew(folder / TRIALS, of_events(change))
    assert expected in defects_of(folder)


def test_trials_that_a_complete_run_did_not_have_are_counted_as_more(whole: Path, tmp_path: Path) -> None:
    folder = plain_copy(whole, tmp_path / "run")
    chained_anew(folder / TRIALS, lambda lines: [*lines[:-1], lines[-1].replace(b'"trials":8', b'"trials":7')])
    assert defects_of(folder) == ["trials.jsonl: line 10 says that the run is complete with 7 trials: 1 more stand before it"]


def test_a_run_that_is_not_sound_makes_no_report_and_the_line_names_place_and_command(whole: Path) -> None:
    folder = changed(whole, TEXTS, lambda lines: lines[1:])
    with pytest.raises(ResultsError) as caught:
        require_sound(folder)
    assert re.fullmatch(rf".*lacks the text .*; see `bench verify {re.escape(str(folder))}`; restore.*", str(caught.value))
    code, _, err = bench(folder.parent, "report", "changed")
    assert code == 2 and "bench verify changed" in err and err.count("\n") == 1
    assert not (folder.parent / "reports").exists()


def test_the_command_says_of_each_run_whether_it_is_sound_and_what_a_report_is_made_from(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "results" / "sound")
    code, out, _ = bench(tmp_path, "verify")
    assert (code, out.count("\n")) == (0, 1) and "results/sound: sound: 8 trials, " in out and sources(whole) in out
    shutil.copytree(changed(whole, TRIALS, lambda lines: lines[1:]), tmp_path / "results" / "unsound")
    code, out, _ = bench(tmp_path, "verify")
    assert code == 1 and "results/unsound/trials.jsonl: line 1 was changed, or lines before it are lost" in out
    assert bench(tmp_path, "verify", "sound")[0] == 0 and bench(tmp_path, "verify", "nothing") == (
        2,
        "",
        "bench: results/nothing: holds no run; known: sound, unsound\n",
    )


def test_a_report_carries_the_digests_of_what_it_was_made_from(whole: Path, tmp_path: Path) -> None:
    again = shutil.copytree(whole, tmp_path / "again")
    before = load_run(again).sources
    assert before == sources(whole) and before.count(",") == 2
    manifest = json.loads((again / MANIFEST).read_text())
    (again / MANIFEST).write_text(json.dumps({**manifest, "started": "2020"}))
    assert load_run(again).sources.partition(",")[0] != before.partition(",")[0]


@pytest.mark.parametrize("folder", COMMITTED, ids=lambda folder: folder.name)
def test_the_committed_runs_are_sound(folder: Path) -> None:
    assert verify(folder).defects == () and len(list(read_trials(folder))) == verify(folder).records


def test_a_converted_run_says_that_its_chain_was_made_anew(tmp_path: Path) -> None:
    code, out, _ = bench(tmp_path, "verify", str(COMMITTED[0].resolve()))
    assert code == 0 and "; chained anew when it was converted from format 3; " in out
