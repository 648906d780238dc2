"""Three effects: on a reply, on a call of the model, and on a call of a tool."""

from __future__ import annotations

from random import Random

from bench.common.errors import ServerFailed
from bench.run.models.base import Reply
from bench.run.trial.effects import CallEffect, Disturbance, Send, Target, TextEffect
from bench.worlds.run.environment import Acted
from bench.worlds.run.runtime.effects import StruckToolCall, ToolEffect


def squawked(_: Target, draw: Random) -> str | None:
    """The reply is a bird's."""
    return " ".join(["Squawk!"] * draw.randint(1, 3))


async def startled(_: Send, fault: Disturbance) -> Reply:
    """The server flies away, and is back soon."""
    await fault.sleep(fault.seconds)
    raise ServerFailed("503 startled (injected)", injected=True)


def repeated(call: StruckToolCall, _: int) -> Acted | None:
    """The request arrives three times."""
    first = call.first()
    if not first.ok:
        return None
    call.again()
    call.again()
    return first


PARTS = (
    TextEffect("squawked", squawked, points=("output",), breaks_form=True),
    CallEffect("startled", startled, fails=True),
    ToolEffect("repeated", repeated, on="write"),
)
