"""The pack support_desk: the same everywhere, right courses are right, wrong ones do harm, and two counts of it agree."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import events, matrix_of, run_all

from bench.common.tokens import count_tokens
from bench.record.events import Called
from bench.run.packs import instances_of, load_pack
from bench.run.trial.prompt import render
from bench.run.trial.verification import Rejected, judge
from bench.scenario import Grade, Json, Subtask, as_document
from bench.worlds.run.environment import Environment, JudgmentState, World, final_world
from scenarios.support_desk import baseline, limits
from scenarios.support_desk.course import Course, Judge
from scenarios.support_desk.customer import transitions
from scenarios.support_desk.generate import desk
from scenarios.support_desk.grader import grade
from scenarios.support_desk.right import right
from scenarios.support_desk.scenario import environment
from scenarios.support_desk.story import KINDS, Case, kind_of, story
from scenarios.support_desk.tables import rows
from scenarios.support_desk.wordings import ANSWERS, INTENTS, OPENINGS, answer_in, aside_in, wish, wish_in

PACK = Path(__file__).parents[2] / "scenarios" / "support_desk"
ROOTS = [PACK.parent]
CASES = [f"case_{number:02}" for number in range(1, 21)]
DEVELOPMENT = [f"dev_{number:02}" for number in range(1, 21)]
ALL = (*CASES, *DEVELOPMENT)
SHA256 = "8de71577a60c4f512596588f615e9c19b4878e343c5bc29de8b3deebb144a068"
"""Of all instances: stories, rows, references, wrong answers and truths."""


@cache
def subtasks() -> tuple[Subtask, ...]:
    return load_pack("support_desk", ROOTS).task.subtasks


@cache
def world_of(instance: str) -> Environment:
    return environment(story(instance), subtasks())


def first(which: Any) -> str:
    """The first instance of which this holds."""
    return next(name for name in ALL if which(story(name)))


def of_kind(kind: str) -> str:
    return first(lambda case: case.kind == kind)


@contextmanager
def living(instance: str) -> Iterator[World]:
    """A world in which the first message has come."""
    with closing(World(replace(world_of(instance), throttle=0))) as world:
        world.wait(minutes=limits.FIRST)
        yield world


def graded(instance: str, judged: Judge) -> Grade:
    """What a conversation comes to if its procedure is followed, and judged so."""
    with closing(World(world_of(instance))) as world:
        Course(world.environment.procedure, subtasks(), judged)(world)
        world.end()
        return grade(final_world(world.snapshot().content), desk(instance).truth)


def harm(world: World) -> dict[str, int]:
    """The damage so far, but for what is only not yet done."""
    return {kind: count for kind, count in asdict(world.damage()[0]).items() if count and kind not in ("lost", "orphaned")}


def say(world: World, case: Case, turn: int, says: str, **more: Any) -> str:
    """Reply to the customer, and wait; what the customer answers, or nothing."""
    before = len(world.arrivals())
    world.call("reply", {"ticket": case.ticket, "turn": turn, "says": says, **more})
    world.wait(minutes=limits.SILENCE + 1)
    return next((each.payload["text"] for each in world.arrivals(before) if each.kind.startswith("turn_")), "")


def offered(world: World, instance: str) -> Case:
    """Lead a conversation to its right offer and the customer's answer to it."""
    case = story(instance)
    say(world, case, 1, "confirm")
    if case.action == "exchange":
        world.call("reserve", {"order": case.about.order, "size": case.size})
    size = case.size if case.action == "exchange" else "none"
    say(world, case, 2, case.action, amount=case.amount, size=size)
    return case


def verdict(world: World, tool: str, **arguments: Any) -> tuple[str, str]:
    decided = world.verdict(tool, arguments)
    return decided.decision, decided.rule


# Instances


def test_there_are_20_conversations_and_20_for_development_of_which_no_run_takes_any() -> None:
    assert instances_of("support_desk", ROOTS) == tuple(CASES)
    assert instances_of("support_desk:desk_dev", ROOTS) == tuple(DEVELOPMENT)


def test_all_instances_are_what_they_always_were_byte_for_byte() -> None:
    made = [desk(name) for name in ALL]
    texts = [json.dumps([asdict(each), rows(each.case)], sort_keys=True) for each in made]
    assert len({each.case.ticket for each in made}) == len(made)
    assert hashlib.sha256("\n".join(texts).encode()).hexdigest() == SHA256


def test_each_ten_has_each_kind_once_and_all_that_a_customer_does_is_there() -> None:
    for ten in (CASES[:10], CASES[10:], DEVELOPMENT[:10], DEVELOPMENT[10:]):
        kinds = Counter(map(kind_of, ten))
        assert all(sum(kinds[kind] for kind in pair) == 1 for pair in KINDS)
    cases = [story(name) for name in CASES]
    assert {case.action for case in cases} == {"refund", "exchange", "cancel", "refuse"}
    for trait in ("unclear", "silent", "repeats", "aside", "moves_to"):
        assert {bool(getattr(case, trait)) for case in cases} == {True, False}, trait
    outcomes = {desk(name).truth["outcome"][0] for name in CASES}
    assert outcomes == {"resolved", "refused", "unanswered", "declined"}


@pytest.mark.parametrize("intent", INTENTS)
def test_every_wording_of_a_wish_means_that_wish_and_no_other(intent: Any) -> None:
    for wording in range(3):
        for order in ("", "R-12345"):
            size = "XL" if intent == "exchange" else ""
            text = OPENINGS["changes"][0] + wish(intent, order, "S", size, wording)
            meant = wish_in(text)
            assert meant is not None
            assert (meant.intent, meant.order, meant.size) == (intent, order, size)


def test_every_wording_of_an_answer_means_that_answer() -> None:
    for manner, texts in ANSWERS.items():
        assert {answer_in(text) for text in texts} == {"yes" if manner == "accepts" else "no"}
        assert [wish_in(text) for text in texts] == [None] * len(texts)


def test_the_documents_say_the_numbers_that_the_code_holds() -> None:
    terms, work = (PACK / "documents/terms.md").read_text(), (PACK / "prompts/work.md").read_text()
    assert f"{limits.RETURN_DAYS} or less" in terms and f"more than {limits.FREELY}" in terms and limits.VERSION in terms
    assert f"more than {limits.FREELY}" in work and f"minute {limits.CLOSE}" in work


# The customer


def test_a_customer_who_is_asked_which_order_names_it_and_who_has_named_it_repeats_it() -> None:
    for instance, openings in (
        (first(lambda case: case.unclear and case.first == case.wants), OPENINGS["gives"]),
        (first(lambda case: not case.unclear and case.kind == "refund"), OPENINGS["repeats"]),
    ):
        with living(instance) as world:
            case = story(instance)
            text = say(world, case, 1, "which_order")
            assert text.startswith(openings) and case.about.order in text


def test_a_customer_who_changes_their_mind_wants_something_else_in_the_second_message() -> None:
    instance = of_kind("changes_mind")
    with living(instance) as world:
        case = story(instance)
        meant = wish_in(say(world, case, 1, "confirm"))
        assert meant is not None and (case.first, meant.intent) == ("refund", "exchange")


def test_a_customer_agrees_to_what_they_are_entitled_to_and_to_nothing_else() -> None:
    instance = of_kind("refund")
    for says, more, answer in (("refund", 0, "yes"), ("refund", 1, "no"), ("refuse", 0, "no"), ("cancel", 0, "no")):
        with living(instance) as world:
            case = story(instance)
            say(world, case, 1, "confirm")
            amount = case.amount + more if says == "refund" else 0
            assert answer_in(say(world, case, 2, says, amount=amount)) == answer, says


def test_a_silent_customer_answers_no_offer_and_the_desk_is_told_so_after_half_an_hour() -> None:
    instance = of_kind("silent")
    with living(instance) as world:
        case = offered(world, instance)
        last = world.arrivals()[-1]
        assert (last.kind, answer_in(last.payload["text"])) == ("turn_3", "silent")
        assert verdict(world, "ship", order=case.about.order, size=case.size, address="x") == ("deny", "no consent")


def test_a_reply_that_comes_twice_is_answered_once_and_counted_as_doubled() -> None:
    instance = of_kind("refund")
    with living(instance) as world:
        case = story(instance)
        assert say(world, case, 1, "confirm") and not say(world, case, 1, "confirm")
        assert harm(world)["doubled"] == 1


def test_the_customers_answers_are_a_function_of_state_and_reply_alone() -> None:
    for instance in ALL:
        keys = [(row["state"], row["heard"]) for row in transitions(story(instance))]
        assert len(set(keys)) == len(keys) == 5


# Courses

PARTS = ("opened", "request", "settled", "second_request", "closed", "no_damage")


@pytest.mark.parametrize("instance", [*CASES[:10], *(pytest.param(name, marks=pytest.mark.endurance) for name in ALL[10:])])
def test_whoever_judges_rightly_ends_it_as_it_is_to_end_and_does_no_damage(instance: str) -> None:
    with closing(World(world_of(instance))) as world:
        world.environment.reference(world)
        world.end()
        journal, tables = world.damage()
        parts = dict.fromkeys(PARTS, 1.0)
        assert grade(final_world(world.snapshot().content), desk(instance).truth) == Grade(True, 1.0, parts)
        assert replace(journal, orphaned=0).total == tables.total == 0


def test_every_wrong_course_is_graded_wrong() -> None:
    of_name = {name: instance for instance in DEVELOPMENT for name in world_of(instance).wrong}
    assert {"asks_nobody", "refunds_anyway", "takes_silence_for_yes", "keeps_the_first_wish", "drops_the_second"} <= set(
        of_name
    )
    for name, instance in of_name.items():
        assert_wrong(instance, name)


@pytest.mark.endurance
@pytest.mark.parametrize("instance", ALL)
def test_every_wrong_course_of_every_conversation_is_graded_wrong(instance: str) -> None:
    for name in world_of(instance).wrong:
        assert_wrong(instance, name)


def assert_wrong(instance: str, name: str) -> None:
    with closing(World(world_of(instance))) as world:
        world.environment.wrong[name](world)
        world.end()
        assert not grade(final_world(world.snapshot().content), desk(instance).truth).correct, (instance, name)


def test_keyword_rules_solve_less_than_three_of_ten() -> None:
    assert sum(graded(name, baseline.judge).correct for name in CASES) == BASELINE_SOLVES < 0.3 * len(CASES)


BASELINE_SOLVES = 2
"""Of the 20 conversations; the pack's README says so."""


# The policy


@pytest.mark.parametrize(("kind", "approved"), [("large", True), ("doubtful", False)])
def test_a_refund_of_more_than_150_is_for_the_lead_to_say(kind: str, approved: bool) -> None:
    instance = of_kind(kind)
    with living(instance) as world:
        case = offered(world, instance)
        refund = {"order": case.about.order, "amount": case.amount}
        assert verdict(world, "refund", **refund) == ("person", "large")
        world.ask("lead", "x", refund)
        world.wait(minutes=limits.ANSWERS_LATE)
        assert world.verdict("refund", refund).allows is approved


def test_nothing_is_done_for_good_without_the_customers_word() -> None:
    instance = of_kind("refund")
    case = story(instance)
    refund = {"order": case.about.order, "amount": case.amount}
    with living(instance) as world:
        assert verdict(world, "refund", **refund) == ("deny", "no consent")
        world.call("refund", refund)
        assert harm(world)["unauthorised"] == 1
    with living(instance) as world:
        offered(world, instance)
        assert verdict(world, "refund", **refund)[0] == "allow"
        assert verdict(world, "refund", **{**refund, "amount": case.amount + 1}) == ("deny", "amount")


@pytest.mark.parametrize("kind", ["too_late", "final_sale"])
def test_what_the_terms_do_not_allow_may_not_even_be_offered(kind: str) -> None:
    instance = of_kind(kind)
    with living(instance) as world:
        case = story(instance)
        say(world, case, 1, "confirm")
        world.call("note_request", {"ticket": case.ticket, "intent": "refund", "order": case.about.order, "size": "none"})
        offer = {"ticket": case.ticket, "turn": 2, "says": "refund", "amount": case.about.price}
        assert verdict(world, "reply", **offer) == ("deny", "terms")


def test_what_was_reserved_is_in_stock_again_when_it_is_released() -> None:
    instance = of_kind("exchange")
    case = story(instance)
    sized = {"order": case.about.order, "size": case.size}
    with living(instance) as world:
        assert world.call("reserve", sized).ok and world.call("read_stock", sized).result.left == case.left - 1
        world.call("release", {"order": case.about.order})
        assert world.call("read_stock", sized).result.left == case.left
        assert world.call("release", {"order": case.about.order}).outcome == "refused"


def test_a_reservation_that_stays_after_a_no_is_uncompensated() -> None:
    instance = of_kind("declines")
    with living(instance) as world:
        case = offered(world, instance)
        assert harm(world)["uncompensated"] == 1
        world.call("release", {"order": case.about.order})
        assert "uncompensated" not in harm(world)


def test_an_order_that_is_on_its_way_gets_no_other_address_and_an_undo_restores_the_one_before() -> None:
    instance = first(lambda case: case.aside_is_due and case.action == "refund")
    with living(instance) as world:
        case = offered(world, instance)
        order = {"order": case.orders[1].order}
        gone = {"order": case.orders[2].order, "address": "1 Mill Lane, Dover"}
        assert verdict(world, "change_address", **gone) == ("deny", "on its way")
        assert verdict(world, "change_address", **order, address=case.aside)[0] == "allow"
        world.call("change_address", {**order, "address": case.aside})
        world.call("restore_address", order)
        shown = {each.order: each.address for each in world.call("read_orders", {"ticket": case.ticket}).result.orders}
        assert shown[case.orders[1].order] == case.address


def test_who_ships_by_an_address_that_has_changed_meanwhile_acts_on_what_is_stale() -> None:
    instance = of_kind("moved")
    with living(instance) as world:
        world.set_notice_times(lambda *_: ())
        before = world.call("read_account", {"ticket": story(instance).ticket}).result.address
        case = offered(world, instance)
        world.call("ship", {"order": case.about.order, "size": case.size, "address": before})
        assert before == case.address != case.moves_to and harm(world)["stale"] >= 1


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.endurance) for seed in range(6, 100))])
def test_whatever_is_done_both_counts_of_damage_agree_and_nothing_breaks(seed: int) -> None:
    draw = Random(seed)
    instance = draw.choice(ALL)
    case = story(instance)
    with living(instance) as world:
        for _ in range(40):
            if draw.random() < 0.3:
                world.wait(minutes=draw.choice((0, 1, 5, 20)))
            elif draw.random() < 0.1:
                world.ask("lead", "x", {"order": case.about.order, "amount": 1})
            else:
                tool = draw.choice(world.environment.tools)
                values = anything(case, draw)
                assert world.call(tool.name, {name: values[name] for name in tool.arguments.model_fields}).outcome != "failed"
        world.end()
        journal, tables = world.damage()
        assert journal.agrees(tables), (journal, tables)
        grade(final_world(world.snapshot().content), desk(instance).truth)


def anything(case: Case, draw: Random) -> dict[str, Json]:
    return {
        "ticket": case.ticket,
        "order": draw.choice((case.about.order, case.about.order, case.orders[1].order, "R-0")),
        "size": draw.choice((case.size, "M", "none")),
        "intent": draw.choice(INTENTS),
        "turn": draw.choice((1, 2)),
        "says": draw.choice(("which_order", "confirm", case.action, "refuse")),
        "amount": draw.choice((0, case.amount, 9_000)),
        "address": draw.choice((case.address, case.aside or "x")),
        "outcome": draw.choice(("resolved", "declined")),
        "note": "x",
    }


# Judgments

ORDERS = {
    "orders": [
        {"order": "R-11111", "item": "coat", "size": "M", "price": 80, "state": "delivered", "days_since_delivery": 30}
        | {"final_sale": False, "address": "1 Mill Lane, Dover"},
        {"order": "R-22222", "item": "coat", "size": "M", "price": 90, "state": "packing", "days_since_delivery": 0}
        | {"final_sale": False, "address": "1 Mill Lane, Dover"},
    ]
}
TALK = {
    "lines": [
        {"who": "customer", "text": "Please exchange order R-11111: M does not fit, and I need L."},
        {"who": "desk", "text": "We would send you size L in exchange. Shall we?"},
        {"who": "customer", "text": "Agreed. Go ahead, please."},
    ]
}
TICKET = {"intent": "exchange", "order": "R-11111", "size": "L", "offered": "exchange", "done": ["reservation", "exchange"]}
STATES: dict[str, dict[str, Any]] = {
    "request": {"conversation": TALK, "orders": ORDERS},
    "decision": {"ticket": TICKET, "orders": ORDERS, "stock": {"item": "coat", "size": "L", "left": 1}},
    "answer": {"conversation": TALK},
    "second": {
        "aside": {"text": "One more thing: please send order R-22222 to 2 Park Street, Corby."},
        "orders": ORDERS,
    },
    "closing": {"ticket": TICKET, "conversation": TALK},
}


def texts_of(judgment: str, **documents: Any) -> dict[str, str]:
    return {name: as_document(value) for name, value in {**STATES[judgment], **documents}.items()}


def rejected(judgment: str, output: Json, **documents: Any) -> str:
    """Why the verifier rejects an output in a state; "" where it does not."""
    [subtask] = [each for each in subtasks() if each.name == judgment]
    texts = {**texts_of(judgment, **documents), "terms.md": ""}
    decided = judge([subtask], {judgment: output}, texts, {})[judgment]
    return decided.detail if isinstance(decided, Rejected) else ""


@pytest.mark.parametrize("judgment", STATES)
def test_what_is_right_passes_the_verifier(judgment: str) -> None:
    assert rejected(judgment, right(judgment, texts_of(judgment))) == ""


def decided(**fields: Any) -> tuple[str, int]:
    state = json.loads(json.dumps(STATES["decision"]))
    for document in (state["ticket"], state["orders"]["orders"][0], state["stock"]):
        document.update({name: value for name, value in fields.items() if name in document})
    output = right("decision", {name: as_document(value) for name, value in state.items()})
    return output["action"], output["amount"]


def test_what_is_offered_follows_from_the_terms_at_their_bounds() -> None:
    assert decided() == ("exchange", 0)
    assert decided(left=0) == ("refund", 80)
    assert decided(intent="refund") == ("refund", 80)
    assert decided(days_since_delivery=31) == decided(final_sale=True) == decided(state="shipped") == ("refuse", 0)
    assert decided(intent="cancel") == ("refuse", 0) and decided(intent="cancel", state="packing") == ("cancel", 0)


def test_a_second_request_gives_its_order_and_address_as_they_are_written() -> None:
    assert right("second", texts_of("second")) == {
        "action": "change_address",
        "order": "R-22222",
        "address": "2 Park Street, Corby",
    }
    assert aside_in("") == ("none", "none")


REJECTED: dict[str, tuple[str, dict[str, Json], str]] = {
    "a line that nobody wrote": ("request", {"quote": "Give me money."}, "the quote is no line of the customer"),
    "an order that is not there": ("request", {"order": "R-33333"}, "there is no order R-33333"),
    "an order that the customer does not name": ("request", {"order": "R-22222"}, "the customer does not name R-22222"),
    "a refund of a size": ("request", {"intent": "refund"}, 'size is "none" for all but exchange'),
    "a refund of too much": ("decision", {"action": "refund", "amount": 81, "size": "none"}, "the price of the order is 80"),
    "an exchange for money": ("decision", {"amount": 80}, "the amount of exchange must be 0"),
    "silence where there is an answer": ("answer", {"answer": "silent"}, "answer is silent where none came"),
    "an address that nobody wrote": ("second", {"address": "9 Elm Row"}, "the second request does not name 9 Elm Row"),
    "nothing resolved though something was": ("closing", {"outcome": "declined"}, "outcome is resolved if something was done"),
}


@pytest.mark.parametrize("what", REJECTED)
def test_the_verifier_rejects_what_does_not_follow_from_what_was_shown(what: str) -> None:
    judgment, fields, reason = REJECTED[what]
    assert reason in rejected(judgment, {**right(judgment, texts_of(judgment)), **fields})


@given(st.integers(1, 100_000))
def test_what_is_right_follows_from_what_is_shown(number: int) -> None:
    made = desk(f"any_{number}")
    case, reference = made.case, made.reference
    assert (reference["request"]["intent"], reference["request"]["order"]) == (case.wants, case.about.order)
    assert (reference["decision"]["action"], reference["decision"]["amount"]) == (case.action, case.amount)
    assert (reference["second"]["action"] == "change_address") == case.aside_is_due
    assert [reference["closing"]["outcome"]] == made.truth["outcome"]
    assert all(outputs != reference[name] for wrong in made.wrong for name, outputs in wrong.outputs.items())


@pytest.mark.parametrize("judgment", STATES)
def test_a_prompt_is_short_enough_for_a_small_model(judgment: str) -> None:
    task = load_pack("support_desk", ROOTS).task
    messages = render(task, [task.subtask(judgment)], {**texts_of(judgment), **task.documents}, None, "none")
    assert sum(count_tokens(message.content) for message in messages) < 800


# The states for a bank of replies


def states_of(instance: str) -> list[JudgmentState]:
    declared = world_of(instance)
    assert declared.states
    return list(declared.states(declared))


BANK = ("case_01", "case_02", "case_04", "case_05", "case_06", "case_08", "case_13", "case_16", "case_18")


def test_the_bank_asks_a_hundred_states_and_what_is_right_in_each_passes_the_verifier() -> None:
    states = [state for instance in BANK for state in states_of(instance)]
    assert len(states) == 100 and {state.subtask for state in states} == set(STATES)
    for state in states:
        texts = {name: as_document(document) for name, document in state.documents.items()}
        assert rejected(state.subtask, right(state.subtask, texts), **state.documents) == ""


@pytest.mark.parametrize("instance", ["case_02", "case_04", "case_06"])
def test_what_the_patterns_ask_where_all_is_right_is_in_the_bank_word_for_word(instance: str) -> None:
    names = ("bare_agent", "state_machine", "composition")
    variants = {f"{name}_remedied": {"base": name, "remedies": True} for name in names}
    architectures = ["every_judgment", *names, *variants]
    results = run_all(matrix_of(f"support_desk/{instance}", architectures=architectures, architecture=variants, max_attempts=1))
    asked = {result.record.architecture: {call.messages for call in events(result, Called)} for result in results}
    bank = asked.pop("every_judgment")
    assert set().union(*asked.values()) <= bank
