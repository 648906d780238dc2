"""What happens in a trial, one small type per kind of event, in the order in which it happened.

A trial's record holds nothing else about its course: the ledger, every statistic and every figure is computed from these.
Seconds are on the trial's clock and count from its start. Texts are named by digest; the store keeps each text once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from bench.models.base import Role

Cause = Literal["first", "retry", "rerun", "judge"]
Stage = Literal["planned", "delivered", "moot", "seen", "recovered", "gave_up", "unnoticed"]


def digest_of(text: str) -> str:
    """Twenty hex digits that name a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


@dataclass(frozen=True)
class Called:
    """One request that was sent, or that a fault kept from being sent, and what came of it.

    attempt      counts the proposals for these subtasks, from 1; `try_` counts the requests within one attempt
    messages     (role, digest of the text) of each message sent
    seconds      in flight; `delay` are those of them that a fault added
    asked        whether the model was asked: false where a fault kept the request from being sent
    reply        digest of what the model said; None where nothing came
    delivered    digest of what the architecture was given, where a fault changed the reply; else None
    tokens_*     by our ruler, of what was paid: the model's own reply, before any fault touched it; of a reply that was cut
                 off, the part that came
    usage_*      the provider's own count; None where it told none
    failure      None, or the `kind` of the CallFailed that the call ended in
    reused       the same request had been answered before, in another trial: this is that reply, with its seconds
    retry_after  the seconds after which the server that refused the call asked for the next
    by           the model that answered, where the trial's model had passed the request on to it; else ""
    """

    call: int
    subtasks: tuple[str, ...]
    attempt: int
    try_: int
    cause: Cause
    started: float
    seconds: float
    seed: int
    messages: tuple[tuple[Role, str], ...]
    reply: str | None
    delivered: str | None
    tokens_in: int
    tokens_out: int
    usage_in: int | None
    usage_out: int | None
    finish: str | None
    failure: str | None
    detail: str = ""
    delay: float = 0.0
    asked: bool = True
    retry_after: float | None = None
    reused: bool = False
    by: str = ""
    kind: Literal["call"] = "call"


@dataclass(frozen=True)
class Waited:
    """Seconds in which the trial stood still for a `slot` at the endpoint or for a `backoff` after a failed call."""

    why: Literal["slot", "backoff"]
    started: float
    seconds: float
    kind: Literal["wait"] = "wait"


@dataclass(frozen=True)
class Faulted:
    """One entry in the receipt of one planned fault; `fault` numbers the planned faults of the trial.

    `call` is the call that carried it. A fault is moot where the reply was already too broken to carry it.
    """

    fault: int
    point: str
    effect: str
    subtask: str
    attempt: int
    stage: Stage
    call: int | None = None
    detail: str = ""
    kind: Literal["fault"] = "fault"


@dataclass(frozen=True)
class Judged:
    """What the verifier said of one subtask's output in the reply to `call`; `reason` is empty where it was accepted."""

    call: int | None
    subtask: str
    accepted: bool
    reason: str = ""
    detail: str = ""
    kind: Literal["verdict"] = "verdict"


@dataclass(frozen=True)
class Committed:
    """A version was written to the state: verified, or handed on unverified. `call` is None where code wrote it.

    made_from   (name, version, digest) of each thing read; a document's version is 0
    """

    subtask: str
    version: int
    call: int | None
    verified: bool
    digest: str
    made_from: tuple[tuple[str, int, str], ...]
    kind: Literal["commit"] = "commit"


@dataclass(frozen=True)
class Answered:
    """The versions that make the final answer: (subtask, version)."""

    versions: tuple[tuple[str, int], ...]
    kind: Literal["answer"] = "answer"


Event = Annotated[Called | Waited | Faulted | Judged | Committed | Answered, Field(discriminator="kind")]
