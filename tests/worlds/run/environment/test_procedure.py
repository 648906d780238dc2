"""A procedure whose steps could never all be done is refused in one line."""

from __future__ import annotations

import pytest

from bench.common.errors import PackError
from bench.worlds.run.environment import Moment, ProcedureStep
from bench.worlds.run.environment.procedure import refuse_procedure


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([ProcedureStep("a"), ProcedureStep("a")], "step 'a' appears twice in the procedure"),
        ([ProcedureStep("b", after=("a",)), ProcedureStep("a")], "step 'b' comes after 'a', which is not a step before it"),
        ([ProcedureStep("a", on="opend")], "begun by 'opend', which is not a kind of event; did you mean 'opened'"),
        (
            [ProcedureStep("a", starts=Moment(3), until=Moment(2))],
            "may end at day 2, 00:00 at last and begins at day 3, 00:00 at first",
        ),
    ],
)
def test_each_of_these_is_refused(steps: list[ProcedureStep], words: str) -> None:
    with pytest.raises(PackError, match=words):
        refuse_procedure(steps, ["opened"], [], "pack")


def test_steps_that_follow_each_other_are_taken() -> None:
    refuse_procedure(
        [ProcedureStep("a", on="opened"), ProcedureStep("b", after=("a",), starts=Moment(1))], ["opened"], [], "pack"
    )
