"""The effects of faults on a call of the model (`bench.run.trial.effects`)."""

from __future__ import annotations

from bench.common.errors import RateLimited, ServerFailed, TimedOut
from bench.run.models.base import Reply
from bench.run.trial.effects import CallEffect, CutReply, Disturbance, Send, halve


async def rate_limit(_: Send, fault: Disturbance) -> Reply:
    """Fail with the HTTP status 429, and with the fault's seconds in Retry-After."""
    raise RateLimited("429 (injected)", retry_after=fault.seconds, injected=True)


async def server_error(_: Send, __: Disturbance) -> Reply:
    """Fail with the HTTP status 500."""
    raise ServerFailed("500 (injected)", injected=True)


async def timeout(_: Send, fault: Disturbance) -> Reply:
    """Wait the fault's seconds, then time out."""
    await fault.sleep(fault.seconds)
    raise TimedOut(f"no reply within {fault.seconds:g} s (injected)", injected=True)


async def cut_off(send: Send, _: Disturbance) -> Reply:
    """Break the connection off after the first half of the reply, counted over its text and its tool calls' arguments."""
    raise CutReply(halve(await send()))


async def slow(send: Send, fault: Disturbance) -> Reply:
    """Delay the call by the fault's seconds."""
    await fault.sleep(fault.seconds)
    return await send()


async def provider_refusal(_: Send, __: Disturbance) -> Reply:
    """Return a refusal as a provider's filter does, in place of the model's reply."""
    return Reply("", finish="content_filter")


EFFECTS = (
    CallEffect("refusal", provider_refusal, changes_reply=True),
    CallEffect("rate_limit", rate_limit, fails=True),
    CallEffect("server_error", server_error, fails=True),
    CallEffect("timeout", timeout, fails=True),
    CallEffect("cut_off", cut_off, fails=True),
    CallEffect("slow", slow),
)
