"""A simulated model with a bank of replies errs as the bank does, the same for every architecture."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.common.seeding import draw_for
from bench.run.models.bank import Bank, BankedReply
from bench.scenario import Json
from bench.worlds.run.simulated.bank import replies_in

ROOT = Path(__file__).parents[4]

RIGHT = {"discount": 20, "reason": "the limit"}


def reply(state: str, answer: Json, right: Json = RIGHT, text: str = "") -> BankedReply:
    return BankedReply("renewal", "case_1", "offer", state, 1, right, answer, "", text, ("reason",))


KNOWN = [reply("s", RIGHT), reply("s", {"discount": 90, "reason": "x"}), reply("s", None, text="90%"), reply("s", RIGHT)]
OTHER = [
    reply("t", {"discount": 45, "reason": "y"}),
    reply("t", {"discount": 30, "reason": "z"}, {"discount": 5, "reason": ""}),
]
BANK = Bank("bank", "digest", "small", [*KNOWN, *OTHER])


def drawn(state: str, right: Json, times: int = 300) -> Counter[object]:
    result = (BANK.draw("renewal", "case_1", "offer", state, right, draw_for(n)) for n in range(times))
    return Counter(each if isinstance(each, str) else each["discount"] for each in result)


def test_what_is_only_noted_is_neither_right_nor_wrong() -> None:
    assert reply("s", {"discount": 20, "reason": "another"}).is_right
    assert reply("s", {"discount": 21, "reason": "the limit"}).errors == {"discount": 21}
    assert not reply("s", None).is_right


def test_a_state_that_the_bank_knows_is_answered_by_its_own_replies() -> None:
    replies = drawn("s", RIGHT)
    assert set(replies) == {20, 90, "90%"}
    assert replies[20] == pytest.approx(150, abs=30)


def test_an_unbanked_state_is_answered_with_the_judgments_errors_put_on_what_is_right() -> None:
    replies = drawn("new", {"discount": 10, "reason": "r"})
    assert set(replies) == {10, 90, "90%", 45, 30}
    assert replies[10] == pytest.approx(100, abs=30)


def test_an_error_that_is_right_here_gives_way_to_one_that_is_none() -> None:
    """Else a model would err less often in the one state than in the other."""
    replies = drawn("new", {"discount": 90, "reason": "r"})
    assert replies[90] == pytest.approx(100, abs=30)


def test_a_judgment_that_the_bank_does_not_know_is_answered_rightly() -> None:
    assert BANK.draw("renewal", "case_1", "close", "s", RIGHT, draw_for(1)) == RIGHT


@pytest.mark.parametrize(("model", "right"), [("1.5b", 790), ("0.5b", 269)])
def test_the_committed_banks_are_read(model: str, right: int) -> None:
    replies = [reply for _, reply in replies_in(ROOT / "results" / f"judgment_bank-qwen2.5-coder-{model}-instruct")]
    assert (len(replies), sum(reply.is_right for reply in replies)) == (1160, right)
