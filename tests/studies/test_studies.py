"""Each study's analysis on small cases that can be reckoned by hand, and each shipped config from run to report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from records import accepted, called, committed, config_in, edit_manifest, experiment, fault, rejected, run_of, trial, write_run
from study_runs import run_of_matrix
from trials import AVAILABLE, ROOTS, Fault, matrix_of

import bench
from bench.cli.commands.setup import open_run
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, ResultsError
from bench.read.analysis.frames import Run
from bench.read.render.drawing import style
from bench.read.render.table import markdown
from bench.read.report.studies import STUDIES, require_known, study_pictures, study_tables
from bench.record.events import Answered, Committed, Event
from bench.record.record import TrialRecord
from bench.run.experiment.config import Config, load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.untrusted import permission
from bench.run.packs import load_pack
from bench.scenario import Grade, Output, Scenario, Subtask, Task
from studies.answer_format.study import answer_formats
from studies.break_even.study import failure_rates
from studies.context.study import context
from studies.depth.study import End, depth
from studies.detectability.study import detectability
from studies.repair.study import repair
from studies.repair_policies.study import PricedFailure, first_failure, policies
from studies.validators.prepare import mutants_of
from studies.validators.study import mutation_scores

PLACE = ROOTS[0].parent / "studies"
BOUNDARIES = [f"{strength}_{commit}" for strength in ("none", "business_rule") for commit in ("plain", "compare_and_swap")]
WITHOUT_FIGURE = {"learning", "orchestration", "patching", "written_code"}
"""What these found is a table."""
FEW: Mapping[str, Any] = {
    "exactly_once": {
        "repetitions": 1,
        "architectures": ["state_machine", "state_machine_remedied"],
        "plans": ["none", "unacknowledged_draft"],
    },
    "boundary": {
        "architectures": [f"{cell}_{signal}" for cell in BOUNDARIES for signal in ("typed", "as_success")],
        "models": ["right", "errs_30"],
        "repetitions": 1,
    },
    "momentum": {
        "architectures": ["state_machine", "full"],
        "models": ["right", "errs_40_1", "errs_40_2"],
        "scenarios": ["payment_run:5"],
        "repetitions": 1,
    },
    "pattern_failure": {
        "architectures": ["state_machine", "state_machine_remedied"],
        "plans": ["none", "lost_answer"],
        "scenarios": ["contract_renewal"],
        "repetitions": 1,
    },
    "pattern_failure_children": {
        "architectures": ["two_children", "two_children_remedied"],
        "plans": ["none", "first_child_errs"],
    },
    "pattern_failure_further": {
        "architectures": ["state_machine", "state_machine_remedied"],
        "plans": ["none", "override_missed"],
        "scenarios": ["contract_renewal/case_10"],
    },
    "log_or_row": {"models": ["right"], "plans": ["rings_twice", "rings_once"]},
    "approval": {"models": ["right"], "plans": ["none", "never_answers"], "scenarios": ["contract_renewal"]},
    "reliability_surface": {
        "architectures": ["bare_agent", "state_machine_remedied"],
        "plans": ["none", "rate_limit_30", "mixed_30"],
    },
}
"""Study -> what of its config is run here, where the whole takes too long."""
SHORT: Mapping[str, Any] = {
    "orchestration": {"scenarios": ["incident_response"]},
    "boundary": {"scenarios": ["contract_renewal"]},
    "break_even": {"repetitions": 2},
}
"""Study -> the part of that which the short form runs. The long form has both repetitions of two instances."""
OF_NO_MODEL = ("study-sizes-parity",)
"""Tables of a closed form alone."""
NO_PLANS: Mapping[str, list[Fault]] = {}
MISSING: Fault = {"point": "output", "effect": "missing_field", "attempts": [1]}


def with_plans(
    folder: Path, records: list[TrialRecord], plans: Mapping[str, list[Fault]] = NO_PLANS, study: str | None = None
) -> Run:
    """A run of these records, whose config has these fault plans."""
    write_run(folder, records)
    config = {**config_in(folder), "study": study, "max_attempts": 3}
    written = {
        name: {"faults": [{"attempts": [], "probability": 0.0, "subtask": "*", **each} for each in faults]}
        for name, faults in plans.items()
    }
    edit_manifest(folder, config={**config, "plan": written})
    return bench.load_run(folder)


# The config


def test_an_unknown_study_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match="unknown study 'brake_even'; did you mean 'break_even'"):
        require_known("brake_even")
    require_known("break_even")
    require_known(None)


def test_a_run_of_an_unknown_study_does_not_begin(tmp_path: Path) -> None:
    config = load_config(PLACE / "break_even" / "config.toml", {"repetitions": 1, "study": "brake_even"})
    matrix = build_matrix(config, ROOTS[:1], "code")
    with pytest.raises(ConfigError, match="unknown study 'brake_even'"):
        open_run(Terminal(), tmp_path / "run", matrix, sets_aside=False, permitted=permission(matrix))
    assert not (tmp_path / "run").exists()


def test_a_config_that_says_experiment_for_study_is_told_the_new_name(tmp_path: Path) -> None:
    path = tmp_path / "depth.toml"
    path.write_text((PLACE / "depth" / "config.toml").read_text().replace('study = "depth"', 'experiment = "depth"'))
    with pytest.raises(ConfigError, match="the key 'experiment' is called 'study' now"):
        load_config(path, {})


def without_programs(name: str) -> Sequence[str]:
    """A config's scenarios but for the one whose answers are programs, each of which the sandbox runs, if others are left."""
    every = load_config(PLACE / name / "config.toml", {}).scenarios
    return [each for each in every if each != "multi_file_debugging"] or every


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.endurance)])
@pytest.mark.parametrize("name", STUDIES.names)
def test_each_shipped_config_runs_and_is_reported_with_its_table_and_figure(
    name: str, whole: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    few: dict[str, Any] = {"repetitions": 2, "instances": 2, **FEW.get(name, {})}
    if not whole:
        request.getfixturevalue("undrawn")
        few |= {"instances": 1, "repetitions": 1, "scenarios": without_programs(name), **SHORT.get(name, {})}
    config = load_config(PLACE / name / "config.toml", few)
    if not {scenario.partition(":")[0] for scenario in config.scenarios} <= AVAILABLE.keys():
        pytest.skip("its pack is not here")
    matrix = build_matrix(config, ROOTS[:1], "code")
    assert matrix.config.study == name
    run = run_of_matrix(tmp_path, matrix)
    assert not (run.trials["outcome"] == "error").any()
    assert ("mutants" in run.manifest.prepared) is (name == "validators")
    tables = study_tables(run)
    with style():
        pictures = study_pictures(run)
    assert tables[0].rows and bool(pictures) is (name not in WITHOUT_FIGURE)
    names = [table.name for table in tables] + [picture.name for picture in pictures]
    assert all(name.startswith("study-") for name in names)
    if name not in ("validators", "replay_divergence"):  # about no model, and about two recorded ones
        assert all("SIMULATED" in markdown(table) for table in tables if table.name not in OF_NO_MODEL)
        assert all("SIMULATED" in picture.caption for picture in pictures)


@pytest.mark.parametrize("name", STUDIES.names)
def test_a_run_that_lacks_what_its_experiment_needs_says_so_in_one_line(name: str, tmp_path: Path) -> None:
    run = with_plans(tmp_path / "run", [trial()], study=name)
    [table] = study_tables(run)
    [[message]] = table.texts()
    assert (message.startswith(f"study '{name}': ") and "needs" in message) or "holds no mutants" in message
    assert study_pictures(run) == []


def test_a_run_of_an_experiment_that_this_version_does_not_know_says_so(tmp_path: Path) -> None:
    run = with_plans(tmp_path / "run", [trial()], study="dept")
    assert [table.texts() for table in study_tables(run)] == [[["study 'dept': is unknown; did you mean 'depth'?"]]]


def test_a_run_without_an_experiment_shows_none(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", experiment())
    assert study_tables(run) == []
    assert study_pictures(run) == []


# Break-even


def test_failure_rates_are_of_plans_with_one_chance_at_every_subtask(tmp_path: Path) -> None:
    records = [trial(plan=plan) for plan in ("high", "none", "low", "once", "here")]
    chance = {"point": "output", "effect": "missing_field"}
    plans: dict[str, list[Fault]] = {
        "high": [{**chance, "probability": 0.5}],
        "low": [{**chance, "probability": 0.1}],
        "once": [MISSING],
        "here": [{**chance, "probability": 0.1, "subtask": "b"}],
    }
    assert failure_rates(with_plans(tmp_path / "run", records, plans)) == {"none": 0.0, "low": 0.1, "high": 0.5}


# Detectability


def ended(repetition: int, outcome: Any, *stages: Any) -> TrialRecord:
    calls = [called(1, "a"), called(2, "b")]
    return trial(plan="bad", repetition=repetition, outcome=outcome, events=[*fault("planned", "delivered", *stages), *calls])


def test_each_trial_in_which_the_fault_arrived_has_one_end(tmp_path: Path) -> None:
    records = [
        ended(1, "wrong", "undetected"),
        ended(2, "wrong", "detected", "recovered"),
        ended(3, "gave_up", "detected", "gave_up"),
        ended(4, "solved", "detected", "recovered"),
        ended(5, "solved", "recovered"),  # made again because another output was rejected
        ended(6, "solved", "undetected"),
        ended(7, "error", "detected"),
        ended(9, "wrong", "undetected"),
        trial(plan="bad", repetition=8, events=[*fault("planned", "not_applicable"), called(2, "b")]),
    ]
    [result] = detectability(with_plans(tmp_path / "run", records, {"bad": [MISSING]}))
    assert {end: (share.k, share.n) for end, share in result.ends.items()} == {
        "silently corrupted": (2, 7),
        "wrong otherwise": (1, 7),
        "gave up": (1, 7),
        "recovered": (2, 7),
        "did no harm": (1, 7),
    }
    assert (result.noticed.k, result.noticed.n) == (3, 7)
    assert result.fault == "missing_field at output, attempt 1"


def test_a_retry_alone_fails_where_nobody_looks_again_and_where_the_value_is_plausible(tmp_path: Path) -> None:
    at: Fault = {"subtask": "total", "attempts": [1]}
    plans: dict[str, list[Fault]] = {
        "missing": [{"point": "output", "effect": "missing_field", **at}],
        "lost": [{"point": "state", "effect": "missing_field", **at}],
        "wrong": [{"point": "output", "effect": "wrong_value", **at}],
    }
    run = run_of_matrix(tmp_path, matrix_of(plans=plans, repetitions=4))
    rates = {(each.plan, each.architecture): {end: share.k for end, share in each.ends.items()} for each in detectability(run)}
    assert rates["missing", "runtime_structured"]["recovered"] == 4
    assert rates["lost", "runtime_structured"]["silently corrupted"] == 4
    assert rates["lost", "static"]["recovered"] == 4, "who verifies at a checkpoint looks at what is really there"
    assert rates["wrong", "runtime_structured"]["recovered"] < 4


# Validators


def test_structural_mutants_never_survive_and_plausible_ones_are_graded() -> None:
    tiny = load_pack("tiny", ROOTS)
    by_subtask_and_effect = {(mutant.subtask, mutant.effect): mutant for mutant in mutants_of([tiny], seed=1, draws=12)}
    assert {effect for _, effect in by_subtask_and_effect} >= {
        "missing_field",
        "wrong_value",
        "stale",
        "truncated",
        "empty",
        "refusal",
    }
    for (_, effect), each in by_subtask_and_effect.items():
        assert sum(each.caught.values()) + sum(survivor.times for survivor in each.survivors) == each.made <= 12
        if effect in ("missing_field", "wrong_type", "truncated", "not_json", "empty", "refusal"):
            assert each.survivors == (), effect
    survivors = by_subtask_and_effect["total", "wrong_value"].survivors
    assert survivors and not any(survivor.harmless for survivor in survivors)
    assert all("total: " in survivor.change or "unit: " in survivor.change for survivor in survivors)
    assert mutants_of([tiny], seed=1, draws=12) == list(by_subtask_and_effect.values()), "the same seed makes the same mutants"


def test_a_mutation_score_counts_what_was_drawn(tmp_path: Path) -> None:
    survivors = [
        {"change": "x", "times": 3, "too_weak": "", "harmless": False},
        {"change": "y", "times": 2, "too_weak": "unsure", "harmless": True},
    ]
    plain = {"scenario": "demo", "subtask": "a", "effect": "wrong_value"}
    mutants = [
        {**plain, "made": 10, "caught": {"check": 1, "schema": 2, "cut_off": 2}, "survivors": survivors},
        {**plain, "effect": "stale", "made": 0, "caught": {}, "survivors": []},
    ]
    edit_manifest(write_run(tmp_path / "run", [trial()]), prepared={"mutants": mutants})
    [score] = mutation_scores(bench.load_run(tmp_path / "run"))
    assert (score.caught.k, score.caught.n, score.dangerous.k, score.dangerous.n) == (5, 10, 3, 10)
    assert (score.unreadable, score.by_schema, score.by_check, score.too_weak) == (2, 2, 1, 2)


# Policy


def handed_on(second_c: str = "d") -> list[Event]:
    """c is made from a, d from b and c, e from b; all are handed on, then a is rejected, and a, c and d are made again."""
    first: list[Event] = [
        *(called(1, "a", tokens=(1, 0)), committed(1, "a")),
        *(called(2, "b", tokens=(10, 0)), committed(2, "b", made_from=[("doc", 0)])),
        *(called(3, "c", tokens=(100, 0)), committed(3, "c", made_from=[("a", 1)])),
        *(called(4, "d", tokens=(1000, 0)), committed(4, "d", made_from=[("c", 1), ("b", 1)])),
        *(called(8, "e", tokens=(10000, 0)), committed(8, "e", made_from=[("b", 1)])),
        rejected(1, "a"),
    ]
    again: list[Event] = [
        *(called(5, "a", cause="retry", tokens=(2, 0), attempt=2), committed(5, "a", 2)),
        called(6, "c", cause="rerun", tokens=(200, 0), attempt=2),
        Committed("c", 2, (6,), True, second_c, (("a", 2, "d"),)),
        *(called(7, "d", cause="rerun", tokens=(2000, 0), attempt=2), committed(7, "d", 2, made_from=[("c", 2), ("b", 1)])),
    ]
    return [*first, *again, Answered((("a", 2), ("b", 1), ("c", 2), ("d", 2), ("e", 1)))]


def prices(priced: PricedFailure | None) -> list[int]:
    assert priced is not None
    return list(priced.prices.values())


def test_policies_are_priced_by_the_calls_that_they_would_make_again() -> None:
    result = first_failure(handed_on())
    assert prices(result) == [11111, 11111, 1101, 1, 1], "b and e were not made from a, so nothing invalidates them"
    assert result and (result.standing, result.paid) == (2, 2202)


def test_the_least_holds_what_came_out_different() -> None:
    assert prices(first_failure(handed_on(second_c="other"))) == [11111, 11111, 1101, 1, 101]


def test_without_an_answer_nobody_knows_what_would_have_come_out_different() -> None:
    assert prices(first_failure(handed_on(second_c="other")[:-1]))[-1] == 1


def test_a_call_that_does_all_the_work_is_paid_once_by_every_policy() -> None:
    events: list[Event] = [called(1, "a", "b", tokens=(50, 5)), accepted(1, "a"), rejected(1, "b")]
    assert prices(first_failure(events)) == [55] * 5


def test_what_is_rejected_together_is_mended_together() -> None:
    calls: list[Event] = [called(number, name, tokens=(10**number, 0)) for number, name in ((1, "a"), (2, "b"), (3, "c"))]
    events: list[Event] = [*calls, rejected(2, "b"), rejected(3, "c")]
    assert prices(first_failure(events))[3] == 1100


def test_a_trial_in_which_nothing_was_rejected_has_no_failure() -> None:
    assert first_failure(handed_on()[:10]) is None


def test_static_pays_about_what_a_rerun_from_there_is_priced_at(tmp_path: Path) -> None:
    run = run_of_matrix(tmp_path, matrix_of(plans={"once": [{**MISSING, "subtask": "total"}]}, repetitions=3))
    by_architecture = {each.architecture: each for each in policies(run)}
    there = next(each.mean.mean for each in by_architecture["static"].priced if each.policy == "rerun from there")
    assert there == pytest.approx(by_architecture["static"].paid.mean, rel=0.05)
    alone = next(each for each in by_architecture["runtime_structured"].priced if each.policy == "retry alone")
    assert alone.to_least.ratio == 1.0 and (by_architecture["static"].paid.n, by_architecture["static"].trials) == (3, 3)


class Word(Output):
    word: str


def fork() -> Scenario:
    """Two subtasks read one, a fourth reads both; only the last is a checkpoint."""
    reads = {"root": ("doc",), "left": ("root",), "right": ("root",), "join": ("left", "right")}
    task = Task(
        "fork", "You read.", {"doc": "yes"}, tuple(Subtask(name, "Which word?", of, Word) for name, of in reads.items())
    )
    outputs = {name: {"word": "yes"} for name in reads}
    return Scenario("fork", "paper", task, lambda *_: Grade(True, 1.0, {}), Path(), outputs, (), lambda _: outputs)


def test_in_a_task_that_forks_what_the_change_invalidates_costs_less_than_all_from_there(tmp_path: Path) -> None:
    plan = {"left": {"faults": [{**MISSING, "subtask": "left"}]}}
    model = {"m": {"kind": "simulated", "wrapping": False}}
    arms = {"scenarios": ["fork"], "architectures": ["static"], "models": ["m"], "plans": list(plan), "repetitions": 3}
    config = Config.model_validate({"name": "test", "seed": 7, "model": model, "plan": plan, **arms})
    run = run_of_matrix(tmp_path, build_matrix(config, (), "code", scenarios={"fork": fork()}))
    [result] = policies(run)
    price = {each.policy: each.mean.mean for each in result.priced}
    first = run.calls[run.calls["cause"] == "first"]
    spent = (first["tokens_in"] + first["tokens_out"]).groupby(first["subtask"]).mean()
    assert result.standing.mean == 1, "join alone was made from left"
    assert price["rerun from there"] == spent["left"] + spent["right"] + spent["join"]
    assert price["rerun what it invalidates"] == spent["left"] + spent["join"], "right stands"
    assert price["retry alone"] == spent["left"]


# Depth and context


def test_depth_counts_a_subtask_that_two_plans_strike_once(tmp_path: Path) -> None:
    plans: dict[str, list[Fault]] = {
        name: [{**MISSING, "subtask": {"tiny": subtask}}]
        for name, subtask in (("p1", "gather"), ("p2", "total"), ("p3", "review"), ("p4", "review"))
    }
    positions = depth(run_of_matrix(tmp_path, matrix_of(plans=plans, repetitions=2))).positions
    static = [
        (position.subtask, position.position, position.length, position.ahead)
        for position in positions
        if position.architecture == "static"
    ]
    assert [position.arm.condition.plan for position in positions if position.architecture == "static"] == ["p1", "p2", "p3"]
    assert static == [("gather", 1, 3, 1), ("total", 2, 3, 2), ("review", 3, 3, 1)]
    assert all(position.retry_tokens.n == 2 and position.retry_tokens.mean for position in positions)


def retried(scenario: str, repetition: int, tokens: int, plan: str = "none") -> TrialRecord:
    events = [called(1, "a"), called(2, "a", cause="retry", tokens=(tokens, 0), attempt=2)]
    return trial("static", plan, repetition, scenario=scenario, events=events)


def of_lengths(folder: Path, records: list[TrialRecord], subtasks: Mapping[str, str]) -> Run:
    """A run of scenarios with these subtasks, one a letter; the plan `a` strikes a, and so on."""
    plans: dict[str, list[Fault]] = {name: [{**MISSING, "subtask": name}] for name in "abz"}
    with_plans(folder, records, plans)
    edit_manifest(folder, scenarios={name: {"subtasks": list(letters)} for name, letters in subtasks.items()})
    return bench.load_run(folder)


def test_the_slope_by_length_is_of_the_sizes_that_differ_in_it_at_either_end(tmp_path: Path) -> None:
    between = {"b": (9999, 9999)}
    paid = {
        "demo": {"a": (100, 120), **between, "z": (50, 50)},
        "demo:longer": {"a": (300, 360), **between, "z": (54, 50)},
    }
    records = [
        retried(scenario, repetition, tokens, plan)
        for scenario, by_plan in {**paid, "demo:same": paid["demo"], "other": paid["demo"]}.items()
        for plan, both in by_plan.items()
        for repetition, tokens in enumerate(both, 1)
    ]
    subtasks = {"demo": "abz", "demo:longer": "abcdz", "demo:same": "abz", "other": "abcz"}
    by_end = {length.end: length for length in depth(of_lengths(tmp_path / "run", records, subtasks)).lengths}
    assert list(by_end) == ["first", "last"]
    for each in by_end.values():
        assert (each.pack, each.model, each.architecture) == ("demo", "m", "static")
        assert [(length, arm.condition.scenario) for length, arm in each.lengths] == [(3, "demo"), (5, "demo:longer")]
        assert each.slope.n == 2
    assert by_end["first"].slope.mean == pytest.approx((200 / 2 + 240 / 2) / 2)
    assert by_end["last"].slope.mean == pytest.approx((4 / 2 + 0 / 2) / 2)


def test_depth_shows_the_lengths_where_no_position_varies_and_the_positions_where_no_length_does(tmp_path: Path) -> None:
    records = [retried(scenario, 1, 100, "a") for scenario in ("demo", "demo:longer")]
    lengths = of_lengths(tmp_path / "lengths", records, {"demo": "az", "demo:longer": "abz"})
    assert (depth(lengths).positions, len(depth(lengths).lengths)) == ((), 1)
    records = [retried("demo", 1, 100, plan) for plan in ("a", "z")]
    positions = of_lengths(tmp_path / "positions", records, {"demo": "abz"})
    assert ([position.position for position in depth(positions).positions], depth(positions).lengths) == ([1, 3], ())
    for run, kind in ((lengths, "-length"), (positions, "")):
        edit_manifest(run.folder or tmp_path, config={**config_in(run.folder or tmp_path), "study": "depth"})
        shown = bench.load_run(run.folder or tmp_path)
        assert [table.name for table in study_tables(shown)] == [f"study-depth{kind}"]
        with style():
            assert [picture.name for picture in study_pictures(shown)] == [f"study-depth{kind}-m"]


def test_static_pays_for_all_of_a_chain_or_for_one_by_what_is_struck(tmp_path: Path) -> None:
    plans: dict[str, list[Fault]] = {name: [{**MISSING, "subtask": name}] for name in ("step_1", "closing")}
    matrix = matrix_of(plans=plans, model={"wrapping": False}, scenarios=["chain", "chain:8"])
    by_end_and_architecture = {
        (length.end, length.architecture): length for length in depth(run_of_matrix(tmp_path, matrix)).lengths
    }

    def tokens(end: End, architecture: str) -> list[float]:
        return [arm.mean("retry_tokens").mean or 0.0 for _, arm in by_end_and_architecture[end, architecture].lengths]

    last = tokens("last", "static")
    assert tokens("first", "static") == pytest.approx([4 * last[0], 8 * last[1]], rel=0.02), "all calls are of one price"
    assert tokens("first", "monolithic") == tokens("last", "monolithic"), "one call does all, whatever is struck"
    assert tokens("first", "runtime_structured") == pytest.approx(tokens("last", "runtime_structured"), rel=0.02)
    assert last[0] == pytest.approx(last[1], rel=0.02)


def test_the_slope_is_the_mean_of_the_slopes_of_the_repetitions(tmp_path: Path) -> None:
    records = [retried("demo", 1, 100), retried("demo", 2, 100), retried("demo:big", 1, 300), retried("demo:big", 2, 500)]
    folder = write_run(tmp_path / "run", [*records, retried("demo", 3, 9999)])
    sizes = {"demo": {"document_tokens": 50}, "demo:big": {"document_tokens": 250}}
    edit_manifest(folder, scenarios=sizes)
    [result] = context(bench.load_run(folder))
    assert [tokens for tokens, _ in result.sizes] == [50, 250]
    assert result.slope.n == 2, "repetition 3 lacks a size"
    assert result.slope.mean == pytest.approx((1.0 + 2.0) / 2)


def test_context_needs_to_know_how_large_the_documents_are(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(scenario="demo"), trial(scenario="demo:big")])
    with pytest.raises(ResultsError, match="two sizes or more"):
        context(run)


# Repair


def repaired(architecture: str, repetition: int, mended: bool, prompt: int = 100) -> TrialRecord:
    """The first output of `a` is rejected; the repair is accepted at once, or at the second go."""
    events: list[Event] = [called(1, "a"), rejected(1, "a")]
    if not mended:
        events += [called(2, "a", cause="retry", tokens=(prompt, 20), attempt=2), rejected(2, "a")]
    last, attempt = (2, 2) if mended else (3, 3)
    events += [
        called(last, "a", cause="retry", tokens=(prompt, 20), attempt=attempt),
        accepted(last, "a"),
        committed(last, "a"),
    ]
    return trial(architecture, "none", repetition, events=[*events, Answered((("a", 1),))])


def variants(folder: Path, records: list[TrialRecord], **settings: str) -> Run:
    """A run of these records, whose architectures are variants of static with these repair settings."""
    entries = {name: {"base": "static", "repair": setting, "max_attempts": None} for name, setting in settings.items()}
    write_run(folder, records)
    edit_manifest(folder, config={**config_in(folder), "repair": "reason", "architecture": entries})
    return bench.load_run(folder)


def test_the_first_repair_of_each_trial_is_compared_with_that_of_the_variant_that_is_told_nothing(tmp_path: Path) -> None:
    records = [repaired("mute", 1, False), repaired("mute", 2, False), trial("mute", repetition=3)]
    records += [
        repaired("told", 1, True, prompt=130),
        repaired("told", 2, False, prompt=130),
        repaired("told", 3, True, prompt=130),
    ]
    mute, informed = repair(variants(tmp_path / "run", records, mute="none", told="reason"))
    assert (mute.setting, mute.accepted.k, mute.accepted.n, mute.accepted_less) == ("none", 0, 2, None)
    assert (informed.setting, informed.accepted.k, informed.accepted.n) == ("reason", 2, 3)
    assert informed.accepted_less is not None and (informed.accepted_less.pairs, informed.accepted_less.gained) == (2, 1)
    assert (mute.prompt_tokens.mean, informed.prompt_tokens.mean) == (100, 130)
    assert informed.retry_less is not None and informed.retry_less.difference.mean == pytest.approx(
        (150 - 240 + 300 - 240 + 150) / 3
    )


def test_an_architecture_that_is_no_variant_has_the_experiments_own_setting(tmp_path: Path) -> None:
    records = [repaired("mute", 1, False), repaired("static", 1, True)]
    result = {each.architecture: each.setting for each in repair(variants(tmp_path / "run", records, mute="none"))}
    assert result == {"static": "reason", "mute": "none"}


def test_variants_without_one_that_is_told_nothing_have_nothing_to_be_compared_with(tmp_path: Path) -> None:
    records = [repaired("told", 1, True), repaired("shown", 1, True)]
    with pytest.raises(ResultsError, match="'none' among them"):
        repair(variants(tmp_path / "run", records, told="reason", shown="reason+reply"))


# Answer format


def in_formats(folder: Path, formats: Mapping[str, str], records: list[TrialRecord]) -> Run:
    """A run of these records, whose models were asked in these formats, and are else the same."""
    write_run(folder, records)
    models = {name: {"kind": "openai", **({"answer_format": each} if each != "json" else {})} for name, each in formats.items()}
    edit_manifest(folder, models=models)
    return bench.load_run(folder)


def asked_in(model: str, repetition: int, *reasons: str, tokens: int = 100) -> TrialRecord:
    """One trial whose replies, of two subtasks each, were rejected for these reasons; the last one was accepted."""
    events: list[Event] = []
    for call, reason in enumerate([*reasons, ""], 1):
        events.append(called(call, "a", "b", attempt=call, tokens=(tokens, 0)))
        events += [rejected(call, name, reason) if reason else accepted(call, name) for name in ("a", "b")]
    return trial("static", repetition=repetition, events=events, model=model)


def test_each_format_is_compared_with_json_by_the_same_architecture_and_a_reply_counts_once(tmp_path: Path) -> None:
    records = [asked_in("words", 1, "schema", "check"), asked_in("words", 2), asked_in("blocks", 1, tokens=130)]
    records += [asked_in("blocks", 2, "code_blocks", tokens=130)]
    [[words, blocks]] = answer_formats(in_formats(tmp_path / "run", {"blocks": "fenced", "words": "json"}, records))
    assert (words.answer_format, blocks.answer_format) == ("json", "fenced")
    assert (words.malformed.mean, words.objected.mean, words.tokens.mean) == (0.5, 0.5, 200)
    assert (blocks.malformed.mean, blocks.objected.mean, blocks.tokens.mean) == (0.5, 0.0, 195)
    assert words.tokens_less is None and words.solved_less is None
    assert blocks.tokens_less is not None and blocks.tokens_less.difference.mean == pytest.approx((130 - 300 + 260 - 100) / 2)
    assert blocks.solved_less is not None and blocks.solved_less.pairs == 2


def test_models_that_differ_in_more_than_their_format_are_not_compared(tmp_path: Path) -> None:
    run = in_formats(tmp_path / "run", {"words": "json", "blocks": "fenced"}, [asked_in("words", 1), asked_in("blocks", 1)])
    models = {
        "words": run.parameters_of("words").shown,
        "blocks": {"kind": "openai", "answer_format": "fenced", "temperature": 1.0},
    }
    edit_manifest(tmp_path / "run", models=models)
    with pytest.raises(ResultsError, match="one asked for json and one for another answer_format"):
        answer_formats(bench.load_run(tmp_path / "run"))
