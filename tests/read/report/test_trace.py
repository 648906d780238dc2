"""The trace holds every event and every text of a run once, and the page lets none of it be more than text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from records import called, edit_manifest, experiment, recovered, run_of, smooth, trial, write_run, write_with_texts
from scorecards import lived

import bench
from bench.common.digests import digest_of
from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.read.analysis.merge import merge
from bench.read.analysis.results import Results
from bench.read.analysis.statistics import share_of
from bench.read.render.cells import PublishedNumber, Rate
from bench.read.render.table import Table
from bench.read.report import trace as traces
from bench.read.report.page import page_of
from bench.read.report.page_html import as_html
from bench.read.report.trace import PieceStore, Trace, load_traced, trace_of
from bench.record.events import Called, Judged, Waited, of_kind
from bench.record.world_events import ToolCalled
from bench.rerun.world_views import WorldViews

RESULTS = Path(__file__).parents[3] / "results"
EVIL = "<script>alert(1)</script></script><!--\u2028\ud800</pre>"
SECTIONS = {"ledger": "ledger", "of_others": "more", "comparison-x": "comparison", "claims": "verdicts"}
TABLES = tuple(Table(name, name, ("a", "b"), (("x", 1),), section=section) for name, section in SECTIONS.items())


def unpacked(packed: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def items(pieces: PieceStore) -> list[Any]:
    """All items, after a look whether the pieces are numbered as they say."""
    result: list[Any] = []
    for first, packed in zip(pieces.firsts, pieces.packed, strict=True):
        assert first == len(result)
        result += unpacked(packed)
    return result


def traced(run: Run) -> Trace:
    trace = trace_of(run)
    assert trace is not None
    return trace


def page(run: Run, tables: Sequence[Table] = TABLES) -> str:
    return as_html(page_of(Results(run), tables, ()), trace_of(run))


def test_each_text_is_there_once_and_found_by_its_number(tmp_path: Path) -> None:
    run = write_with_texts(tmp_path / "run", experiment(), {"d1": "prompt", "d2": EVIL})
    trace = traced(run)
    texts = items(trace.texts)
    assert texts == ["prompt", EVIL]
    for shown in items(trace.trials):
        for call in shown["calls"]:
            assert [(role, texts[number]) for role, number in call["messages"]] == [("user", "prompt")]
            assert texts[call["reply"]] == EVIL and call["delivered"] is None


def test_a_trial_is_found_by_its_number_with_the_accounts_that_the_tables_have(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", list(reversed(experiment())))
    trace = traced(run)
    index = unpacked(trace.index)
    assert index["trials"]["id"] == run.trials["trial"].tolist()
    assert index["trials"]["retry_tokens"] == run.trials["retry_tokens"].tolist()
    assert set(index["trials"]["model"]) == {"m (SIMULATED)"}
    packed = items(trace.trials)
    shown = [packed[number] for number in index["trials"]["number"]]
    assert shown != packed, "they were recorded in another order"
    assert [call["account"] for each in shown for call in each["calls"]] == run.calls["account"].tolist()
    assert [each["accounts"]["in_answer"] for each in shown] == run.trials["in_answer"].tolist()


def test_an_event_of_every_kind_is_shown_as_it_was_recorded(tmp_path: Path) -> None:
    events = [Waited("backoff", 0.25, 0.5), *recovered()]
    [shown] = items(traced(run_of(tmp_path / "run", [trial(plan="paper", events=events)])).trials)
    assert [(wait["why"], wait["started"], wait["seconds"]) for wait in shown["waits"]] == [("backoff", 0.25, 0.5)]
    assert [(entry["fault"], entry["stage"], entry["call"]) for entry in shown["faults"]] == [
        *((1, "planned", 2), (1, "delivered", 2), (1, "detected", 2), (1, "recovered", 2))
    ]
    assert [(*verdict["calls"], verdict["view"], verdict["accepted"], verdict["reason"]) for verdict in shown["verdicts"]] == [
        *((1, "told", True, ""), (2, "undamaged", True, ""), (2, "told", False, "schema"), (3, "told", True, ""))
    ]
    assert [(version["subtask"], *version["calls"], version["made_from"]) for version in shown["versions"]] == [
        ("a", 1, []),
        ("b", 3, [["a", 1]]),
    ]
    assert shown["answer"] == [["a", 1], ["b", 1]]
    assert [(call["cause"], call["try_"], call["attempt"]) for call in shown["calls"]] == [
        *(("first", 1, 1), ("first", 1, 1), ("retry", 1, 2))
    ]


def test_a_call_that_was_made_again_says_what_made_it_necessary(tmp_path: Path) -> None:
    events = recovered()
    rejection = next(number for number, event in enumerate(events) if isinstance(event, Judged) and not event.accepted)
    linked = [
        replace(event, caused_by=rejection) if isinstance(event, Called) and event.cause == "retry" else event
        for event in events
    ]
    [shown] = items(traced(run_of(tmp_path / "run", [trial(plan="paper", events=linked)])).trials)
    assert [call["because"] for call in shown["calls"]] == ["", "", "b of call 2 was rejected (schema)"]


def test_a_delivered_reply_stands_beside_the_models_own(tmp_path: Path) -> None:
    events = [replace(called(1, "a"), delivered="d3"), *smooth()[1:]]
    run = write_with_texts(tmp_path / "run", [trial(events=events)], {"d1": "p", "d2": "own", "d3": "changed"})
    trace = traced(run)
    [shown] = items(trace.trials)
    texts = items(trace.texts)
    assert [texts[shown["calls"][0][name]] for name in ("reply", "delivered")] == ["own", "changed"]


def test_of_a_trial_that_was_run_again_the_last_record_is_shown(tmp_path: Path) -> None:
    records = [trial(outcome="error", reason="the first time"), trial()]
    trace = traced(run_of(tmp_path / "run", records))
    [number] = unpacked(trace.index)["trials"]["number"]
    assert items(trace.trials)[number]["reason"] == ""


def test_many_pieces_hold_what_one_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_with_texts(tmp_path / "run", experiment(), {f"d{number}": f"text {number}" for number in range(9)})
    whole = traced(run)
    monkeypatch.setattr(traces, "PIECE_BYTES", 20)
    cut = traced(run)
    assert len(cut.texts.packed) > len(whole.texts.packed) == 1
    assert items(cut.texts) == items(whole.texts) and items(cut.trials) == items(whole.trials)


def test_a_text_that_is_not_in_the_page_stands_as_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "PIECE_BYTES", 1)
    monkeypatch.setattr(traces, "MAX_PACKED_CHARS", 1)
    run = write_with_texts(tmp_path / "run", [trial()], {"d1": "kept", "d2": "one too many"})
    trace = traced(run)
    [shown] = items(trace.trials)
    assert (shown["calls"][0]["messages"], shown["calls"][0]["reply"]) == ([["user", 0]], digest_of("one too many"))
    assert trace.texts_left_out == 1 and "1 texts are left out" in page(run)


def test_a_page_that_is_full_lists_further_trials_without_their_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "PIECE_BYTES", 1)
    monkeypatch.setattr(traces, "MAX_PACKED_CHARS", 1)
    failed = trial(repetition=2, outcome="error", reason="the first time")
    run = run_of(tmp_path / "run", [failed, trial(), trial(repetition=2), trial(repetition=3)])
    trace = traced(run)
    assert unpacked(trace.index)["trials"]["number"] == [None, None, None], "of what was run again the last record is left out"
    assert trace.trials_left_out == 3 and "Of 3 trials only the list is here" in page(run)
    monkeypatch.setattr(traces, "MAX_PACKED_CHARS", trace.trials.characters + 1)
    assert unpacked(traced(run).index)["trials"]["number"] == [1, None, None]


def test_a_report_of_several_runs_shows_the_trials_of_all(tmp_path: Path) -> None:
    run = write_with_texts(tmp_path / "one", [trial()], {"d1": "shared", "d2": "of one"})
    two = write_with_texts(tmp_path / "two", [trial(model="other")], {"d1": "shared", "d3": "of two"})
    trace = traced(merge([run, two]))
    assert unpacked(trace.index)["trials"]["model"] == ["m (SIMULATED)", "other (SIMULATED)"]
    assert items(trace.texts) == ["shared", "of one", "of two"] and len(items(trace.trials)) == 2


def test_a_trace_that_is_made_while_the_frames_are_read_is_that_of_a_second_reading() -> None:
    run, trace = load_traced(RESULTS / "untold-qwen2.5-coder-1.5b-instruct")
    assert trace is not None and trace == trace_of(run) and trace.trials_left_out == 0


def test_a_page_that_is_full_is_the_same_in_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "PIECE_BYTES", 2000)
    monkeypatch.setattr(traces, "MAX_PACKED_CHARS", 4000)
    run, trace = load_traced(RESULTS / "untold-qwen2.5-coder-1.5b-instruct")
    assert trace is not None and trace == trace_of(run) and trace.trials_left_out > 0


def test_a_trial_in_a_world_and_one_that_was_run_again_need_a_second_reading(tmp_path: Path) -> None:
    assert load_traced(write_run(tmp_path / "world", [lived()]))[1] is None
    once = replace(lived(), events=(), tokens=0, outcome="error", grade=None)
    again = replace(once, outcome="gave_up")
    assert load_traced(write_run(tmp_path / "again", [once, again]))[1] is None


def test_a_trial_whose_world_did_not_end_is_shown_as_a_second_reading_shows_it(tmp_path: Path) -> None:
    cut_off = replace(
        lived(), events=(*of_kind(lived().events, ToolCalled),), tokens=0, outcome="error", reason="a bug", grade=None
    )
    run, trace = load_traced(write_run(tmp_path / "alone", [cut_off]))
    assert trace is not None and trace == trace_of(run, WorldViews()) and unpacked(trace.index)["trials"]["number"] == [0]
    assert load_traced(write_run(tmp_path / "beside", [cut_off, lived("tools")]))[1] is None


def test_a_damaged_text_is_named_by_the_check(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [lived()])
    (folder / "texts.jsonl").write_text('{"digest":"d","text":"another"}\n', encoding="utf-8")
    with pytest.raises(ResultsError, match="bench verify"):
        load_traced(folder)


def test_a_run_that_was_read_from_nowhere_has_a_page_without_trials(tmp_path: Path) -> None:
    run = replace(run_of(tmp_path / "run", experiment(repetitions=1)), folder=None)
    assert trace_of(run) is None and 'id="trials"' not in page(run)


def test_a_folder_that_is_gone_is_said_in_one_line(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial()])
    (tmp_path / "run" / "texts.jsonl").unlink()
    with pytest.raises(ResultsError, match=r"texts\.jsonl: cannot be read"):
        trace_of(run)


# The page


def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    texts = {"d1": "prompt", "d2": EVIL}
    first, two = (write_with_texts(tmp_path / name, experiment(), texts) for name in ("one", "two"))
    assert page(first) == page(two)


def test_nothing_that_anybody_said_is_markup(tmp_path: Path) -> None:
    reason = EVIL.replace("\ud800", "")
    record = trial(outcome="error", reason=reason)
    run = write_with_texts(tmp_path / "run", [record], {"d1": EVIL, "d2": EVIL})
    edit_manifest(tmp_path / "run", name=reason)
    text = page(bench.load_run(tmp_path / "run"), [Table("t", reason, (reason,), ((reason,),), (reason,))])
    assert "alert(1)" in text, "the reason is among the warnings"
    assert "<script>alert" not in text and "<!--" not in text and "alert(1)</script>" not in text
    assert page(run).encode(), "no half of a surrogate pair is in it"


def test_the_policy_allows_this_script_and_this_style_and_nothing_from_anywhere(tmp_path: Path) -> None:
    assert_policy_fits(page(run_of(tmp_path / "run", experiment(repetitions=1))))


def test_the_policy_of_a_committed_page_allows_its_script_and_its_style() -> None:
    for path in (Path(__file__).parents[3] / "reports").glob("*qwen*/report.html"):
        assert_policy_fits(path.read_text(encoding="utf-8"))


def assert_policy_fits(text: str) -> None:
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    allowed = dict(part.split(" ", 1) for part in policy.replace("&#39;", "'").split("; "))
    assert allowed.pop("default-src") == "'none'" and allowed.pop("img-src") == "data:"
    for tag in ("script", "style"):
        [source] = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert allowed.pop(f"{tag}-src") == f"'sha256-{digest}'"
    assert set(allowed.values()) == {"'none'"}


def test_verdicts_stand_first_then_tables_and_no_table_is_lost(tmp_path: Path) -> None:
    text = page(run_of(tmp_path / "run", experiment(repetitions=1)))
    places = [
        text.index(f"<caption><span>{name}</span></caption>") for name in ("claims", "comparison-x", "ledger", "of_others")
    ]
    assert places == sorted(places) and places[-1] < text.index('<section id="trials">')


def test_a_cell_is_sorted_by_its_estimate_and_one_without_a_number_by_nothing(tmp_path: Path) -> None:
    rows = (("r", Rate(share_of(3, 4)), 7), ("s", PublishedNumber(None), "text"))
    text = page(run_of(tmp_path / "run", [trial()]), [Table("t", "T", ("a", "b", "c"), rows)])
    assert re.findall(r'<t[hd][^>]* data-value="([^"]*)"', text) == ["", "0.75", "7", "", "", ""]
