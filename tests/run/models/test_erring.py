"""A proposer that errs at a declared rate, and learns from what it is told at rates that are assumed or were measured."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import ValidationError

from bench.common.seeding import draw_for
from bench.record.messages import Message
from bench.run.models.erring import Erring, ErringRepair, Learning, measure_rates, signal_in
from bench.run.models.rejections import COMPLETED, NOT_ACCEPTED, REJECTED
from bench.run.models.simulated import SimulatedModel, SimulatedSettings
from bench.scenario import Output


class Offer(Output):
    product: Literal["fibre", "cable"]
    discount: int


RIGHT: dict[str, Any] = {"product": "fibre", "discount": 20}
LEARNING = Learning({"typed": 0.8, "untyped": 0.4}, "assumed")


def outputs(erring: Erring, signal: Any, times: int = 400) -> list[Any]:
    return [erring.output(RIGHT, Offer, signal, draw_for(number)) for number in range(times)]


def wrong(erring: Erring, signal: Any) -> int:
    return sum(output != RIGHT for output in outputs(erring, signal))


def test_so_many_outputs_are_wrong_and_half_of_them_do_not_fit_their_schema() -> None:
    wrong = [output for output in outputs(Erring(0.3), None) if output != RIGHT]
    misfits = [output for output in wrong if set(output) != set(RIGHT)]
    assert len(wrong) == pytest.approx(120, abs=30) and len(misfits) == pytest.approx(len(wrong) / 2, abs=20)
    for output in wrong:
        if output not in misfits:
            Offer.model_validate(output)


def test_wrong_outputs_that_lack_no_field_fit_their_schema() -> None:
    wrong = [output for output in outputs(Erring(0.3, lacks_a_field=0.0), None) if output != RIGHT]
    assert len(wrong) == pytest.approx(120, abs=30)
    for output in wrong:
        Offer.model_validate(output)


def test_after_a_rejection_the_rate_is_that_of_the_signal_and_without_learning_the_first_one() -> None:
    assert wrong(Erring(0.3, LEARNING), "typed") == pytest.approx(80, abs=25)
    assert wrong(Erring(0.3, LEARNING), "untyped") == pytest.approx(240, abs=30)
    assert wrong(Erring(0.3), "typed") == wrong(Erring(0.3), None)
    assert wrong(Erring(0.0, LEARNING), "typed") == 0


def test_what_is_right_under_the_weaker_signal_is_right_under_the_stronger_one() -> None:
    erring = Erring(0.3, LEARNING)
    pairs = zip(outputs(erring, "typed"), outputs(erring, "untyped"), strict=True)
    assert all(typed == RIGHT for typed, untyped in pairs if untyped == RIGHT)


def test_a_signal_is_heard_from_the_words_of_the_last_message_alone() -> None:
    reasons = {
        "typed": f"{REJECTED}\nReason: 45 is too much",
        "untyped": f"{REJECTED}\nReason: {NOT_ACCEPTED}",
        None: COMPLETED,
    }
    for signal, text in reasons.items():
        assert signal_in([Message("user", f"# Task\nJudge.\n\n{text}")]) == signal


def test_rates_are_read_off_a_bank_of_repairs_and_say_of_what_they_are() -> None:
    replies = [ErringRepair("p", "i", "j", "s", "typed", True, is_right) for is_right in (True, False)]
    learning = measure_rates("repair_bank-x", "x", [*replies, ErringRepair("p", "i", "j", "s", "untyped", False, False)])
    assert learning.right == {"typed": 0.5, "untyped": 0.0}
    assert learning.source == "measured on x in repair_bank-x: typed 1 of 2, untyped 0 of 1"


def test_the_manifest_says_whether_the_rates_are_assumed() -> None:
    plain = SimulatedModel("m", SimulatedSettings(), {})
    learns = SimulatedModel("m", SimulatedSettings(error_rate=0.1, right_after={"typed": 0.5}), {})
    assert "learns" not in plain.parameters and "error_rate" not in plain.parameters
    assert learns.parameters["learns"] == {"right": {"typed": 0.5}, "source": "assumed"}


@pytest.mark.parametrize(
    "settings",
    [
        {"error_rate": 0.1, "bank": "run"},
        {"error_rate": 0.1, "repairs": "run", "right_after": {"typed": 0.5}},
        {"right_after": {"typed": 0.5}},
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"leave out|add error_rate"):
        SimulatedSettings(**settings)
