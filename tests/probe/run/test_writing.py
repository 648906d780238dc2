"""A probe's run is a run: what is written is verified, read and gone on with as any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_probe import PAY, PROBED, cell, cells, write

from bench.common.errors import ResultsError
from bench.probe.run.secrets import Secrets
from bench.probe.run.writing import CellRun, ProbeWriter
from bench.read.analysis.frames import load_run
from bench.record.events import Called, of_kind
from bench.record.origin import CodeVersion
from bench.record.probe_events import CellJudged, GatewayCall
from bench.record.reading import are_probes, read_manifest, read_trials
from bench.record.verify import verify

SECRET = "a-canary-in-each-text"


def test_the_run_of_a_probe_is_sound_and_says_that_it_is_a_probe(tmp_path: Path) -> None:
    folder = write(tmp_path / "shop-probe")
    checked = verify(folder)
    assert checked.defects == () and checked.ending == "complete" and checked.trials == len(list(cells()))
    manifest = read_manifest(folder)
    assert manifest.probe == PROBED and are_probes(folder)
    assert {record.plan for record in read_trials(folder)} == set(manifest.config.plans)


def test_outcomes_tokens_and_dollars_are_those_of_the_cells(tmp_path: Path) -> None:
    run = load_run(write(tmp_path / "shop-probe"), check=True)
    wrong = run.trials.loc[run.trials["outcome"] == "wrong", "plan"]
    assert sorted(set(wrong)) == [f"{PAY}.lost", f"{PAY}.unacknowledged"]
    assert set(run.trials["outcome"]) == {"solved", "wrong"}
    assert set(run.trials["cost"].round(9)) == {round((100 * 1.0 + 20 * 2.0) / 1e6, 9)}


def test_each_request_to_the_model_is_booked_as_a_call(tmp_path: Path) -> None:
    first = next(iter(read_trials(write(tmp_path / "shop-probe"))))
    (call,) = of_kind(first.events, Called)
    assert (call.tokens_in, call.tokens_out, call.cause) == (100, 20, "first") and first.tokens == 120
    assert len(of_kind(first.events, GatewayCall)) == 3


def test_a_probe_goes_on_where_it_stopped_and_refuses_another_subject(tmp_path: Path) -> None:
    each = list(cells())
    folder = write(tmp_path / "shop-probe", *each[:5], complete=False)
    writer = ProbeWriter(folder, "shop", PROBED, Secrets(()), read_manifest(folder).models["small"], CodeVersion())
    assert [record.plan for record in writer.recorded] == [made.plan for made in each[:5]] and not writer.is_complete
    writer.close()
    write(folder, *each[5:])
    assert verify(folder).defects == () and verify(folder).trials == len(each)
    again = ProbeWriter(folder, "shop", PROBED, Secrets(()), read_manifest(folder).models["small"], CodeVersion())
    assert again.is_complete
    again.close()
    with pytest.raises(ResultsError, match="another version of what is asked by the scenario 'shop'"):
        write(folder, *each[:1], probed=PROBED.model_copy(update={"subject": "6" * 20}))


def test_a_cell_that_could_not_be_run_is_an_error_and_is_run_again(tmp_path: Path) -> None:
    problem = CellRun(f"{PAY}.lost", 0, (), {}, 1.0, problem="a service did not get ready")
    folder = write(tmp_path / "shop-probe", problem, complete=False)
    (record,) = read_trials(folder)
    assert (record.outcome, record.reason) == ("error", "a service did not get ready")
    write(folder, cell(f"{PAY}.lost", 0), complete=False)
    assert [record.outcome for record in read_trials(folder)] == ["error", "solved"] and verify(folder).defects == ()


def test_a_call_first_met_in_a_cell_is_named_in_the_manifest(tmp_path: Path) -> None:
    folder = write(tmp_path / "shop-probe", *cells(), cell("shop.refund#1.lost", 0), complete=False)
    assert "shop.refund#1.lost" in read_manifest(folder).config.plans and verify(folder).defects == ()


def test_no_file_of_a_run_holds_a_secret(tmp_path: Path) -> None:
    made = next(iter(cells()))
    texts = {digest: f"{text} {SECRET}" for digest, text in made.texts.items()}
    events = [event for event in made.events if not isinstance(event, CellJudged)]
    judged = CellJudged("", None, "", None, None, "no_verdict", True, None, why=f"because of {SECRET}")
    run = CellRun("clean", 0, (*events, judged), texts, 1.0)
    problem = CellRun("clean", 1, (), {}, 1.0, problem=f"{SECRET} was refused")
    folder = write(tmp_path / "shop-probe", run, problem, secrets=Secrets([SECRET]), complete=False)
    files = [path for path in folder.iterdir() if SECRET in path.read_text()]
    assert files == [] and verify(folder).defects == ()
    assert "***" in (folder / "trials.jsonl").read_text() and "***" in (folder / "texts.jsonl").read_text()
