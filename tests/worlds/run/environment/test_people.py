"""People answer by a declared distribution, and the draws are the same for whoever asks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from little_worlds import ENVIRONMENT, world

from bench.worlds.run.environment import Arrival, World
from bench.worlds.run.environment.people import REVIEWER, Manner

MANAGER = ENVIRONMENT.people["manager"]


def asked(order: int = 2, days: int = 8, **changes: object) -> list[Arrival]:
    shop = world(people={"manager": replace(MANAGER, **changes)})  # type: ignore[arg-type]
    shop.ask("manager", f"order {order}", {"order": order})
    return [arrival for arrival in shop.wait(days=days) if arrival.kind == "answer"]


@pytest.mark.parametrize(("order", "approved"), [(2, True), (3, False)])
def test_a_careful_person_says_what_is_right_after_an_hour(order: int, approved: bool) -> None:
    [answer] = asked(order)
    assert answer.payload == {
        "ticket": f"manager: order {order}",
        "about": f"order {order}",
        "who": "manager",
        "approved": approved,
    }
    assert answer.at.total == 60


def test_one_who_errs_says_the_contrary_and_one_who_is_late_says_it_late() -> None:
    [answer] = asked(wrong=1.0, late=1.0, late_minutes=3000)
    assert (answer.payload["approved"], answer.at.total) == (False, 3000)


def test_one_who_is_silent_never_answers() -> None:
    assert asked(silent=1.0) == []


def test_one_who_contradicts_takes_the_answer_back_under_the_same_ticket() -> None:
    first, second = asked(contradicts=1.0)
    assert (first.payload["approved"], second.payload["approved"]) == (True, False)
    assert first.payload["ticket"] == second.payload["ticket"]


def test_a_question_under_a_known_key_is_not_asked_again() -> None:
    shop = world()
    tickets = {shop.ask("manager", "order 2", {"order": 2}, "key") for _ in range(3)}
    assert len(tickets) == len([arrival for arrival in shop.wait(days=8) if arrival.kind == "answer"]) == 1
    assert shop.ask("manager", "order 2", {"order": 2}) not in tickets


def test_draws_depend_on_the_trial_and_the_question_alone() -> None:
    unsure = replace(ENVIRONMENT, people={"manager": replace(MANAGER, wrong=0.5)}, throttle=0)

    def answers(orders: tuple[int, ...], repetition: int, busy: bool) -> dict[str, bool]:
        shop = World(unsure, drawn_from=(7, "refunds", repetition))
        for order in orders:
            if busy:
                shop.call("read_order", {"order": order})
            shop.ask("manager", f"order {order}", {"order": order})
        payloads = [arrival.payload for arrival in shop.wait(days=8) if arrival.kind == "answer"]
        return {payload["about"]: payload["approved"] for payload in payloads}

    assert answers((1, 2, 3), 1, busy=False) == answers((3, 2, 1), 1, busy=True)
    assert len({tuple(sorted(answers((1, 2, 3), repetition, busy=False).items())) for repetition in range(8)}) > 1


def answered(manner: Manner, **changes: object) -> list[tuple[bool, int]]:
    """What the manager says of a refund that is not right, and when."""
    shop = world(people={"manager": replace(MANAGER, **changes)})  # type: ignore[arg-type]
    shop.ask("manager", "order 3", {"order": 3}, manner=manner)
    return [(arrival.payload["approved"], arrival.at.total) for arrival in shop.wait(days=8) if arrival.kind == "answer"]


def test_a_manner_takes_the_place_of_the_persons_chances() -> None:
    assert answered("") == [(False, 60)]
    assert answered("says_yes", wrong=1.0) == answered("says_yes", wrong=0.0) == [(True, 60)]
    assert answered("answers_late", late_minutes=3000) == [(False, 3000)]
    assert answered("contradicts") == [(False, 60), (True, 120)]
    assert answered("never_answers") == []
    assert answered("model_answers") == [(True, 1), (False, 60)], "a model's yes, and then the person's own answer"


@pytest.mark.parametrize("manner", ["says_yes", "answers_late", "contradicts", "model_answers"])
def test_a_world_that_is_made_again_of_its_journal_has_the_same_answers_still_to_come(manner: Manner) -> None:
    first, again = world(), world()
    first.manners = lambda _: manner
    first.ask("manager", "order 3", {"order": 3})
    again.replay(first.journal())
    assert [arrival.payload for arrival in again.wait(days=8)] == [arrival.payload for arrival in first.wait(days=8)]


@pytest.mark.parametrize(
    ("tool", "arguments", "approved"),
    [
        ("refund", {"order": 1, "amount": 40}, True),
        ("refund", {"order": 4, "amount": 40}, False),
        ("refund", {"order": 99, "amount": 40}, False),
        ("refund", {"amount": 40}, False),
        ("refnd", {"order": 1}, False),
    ],
)
def test_the_reviewer_of_the_house_approves_what_is_done_and_leaves_no_more_damage(
    tool: str, arguments: dict[str, int], approved: bool
) -> None:
    shop = world()
    shop.ask(REVIEWER, "a call", {"tool": tool, "arguments": arguments})
    before = shop.digest()
    [answer] = [arrival for arrival in shop.wait(minutes=60) if arrival.kind == "answer"]
    assert answer.payload["approved"] is approved
    assert shop.digest() == before


def test_the_reviewer_of_the_house_refuses_what_stands_already() -> None:
    shop = world()
    shop.call("refund", {"order": 1, "amount": 40})
    shop.ask(REVIEWER, "a call", {"tool": "refund", "arguments": {"order": 1, "amount": 40}})
    assert not next(arrival for arrival in shop.wait(minutes=60) if arrival.kind == "answer").payload["approved"]
