"""The points of a call at which the probe strikes, once in each cell.

error              the call fails before anything is done
in_flight          it is held until its client gives up and the agent has made another call; it is done then, unanswered
lost               it is done, and the answer never arrives: the connection breaks, or there is silence
late               it is done, there is silence as in `lost`, and then the answer arrives
twice              the server gets it twice, and its second answer is dropped
redelivered        the server gets it again after the agent's next call with an effect; that answer is dropped
killed_before      the agent is killed when the call has arrived at the gateway and was not passed on
unacknowledged     the agent is killed when the call is done and its answer was not given
resumed_twice      as `unacknowledged`; then two processes go on at the same time, as two workers that take one job do
acknowledged       the agent is killed when the last byte of the answer was given
acknowledged_next  the agent is killed when its next request arrives, which is not passed on
stale, empty, garbled, too_large   what a read answers instead
model_error ... stream_half        what becomes of a model's reply
"""

from __future__ import annotations

from typing import Literal, get_args

StrikePoint = Literal[
    "in_flight",
    "lost",
    "unacknowledged",
    "resumed_twice",
    "acknowledged",
    "acknowledged_next",
    "late",
    "twice",
    "redelivered",
    "killed_before",
    "error",
    "stale",
    "empty",
    "garbled",
    "too_large",
    "model_lost",
    "model_error",
    "rate_limit",
    "cut_off",
    "malformed",
    "stream_before",
    "stream_half",
]
"""In the order in which cells are run: the gravest first."""
CallClass = Literal["effect", "read", "unseen", "model"]
"""Of a call, not of a tool.

effect   a witness saw a difference
read     no witness saw a difference, and the call claims to read
unseen   no witness saw a difference, and the call claims to write or claims nothing: repeated, it is no damage and no pass
model    a request to the model
"""
POINTS: tuple[StrikePoint, ...] = get_args(StrikePoint)
_OF_EFFECT: tuple[StrikePoint, ...] = POINTS[: POINTS.index("stale")]
_OF_READ: tuple[StrikePoint, ...] = ("error", "stale", "empty", "garbled", "too_large")
_OF_MODEL: tuple[StrikePoint, ...] = POINTS[POINTS.index("model_lost") :]
KILLS = frozenset[StrikePoint](("killed_before", "unacknowledged", "resumed_twice", "acknowledged", "acknowledged_next"))
BY_THE_TOOL = frozenset[StrikePoint | None](("twice", "redelivered"))
"""The points at which a tool gets one call twice: what it does then is its own."""


def points_of(kind: CallClass) -> tuple[StrikePoint, ...]:
    """Return the points of a call of this class, the gravest first."""
    if kind == "effect":
        return _OF_EFFECT
    if kind == "unseen":
        return tuple(point for point in POINTS if point in {*_OF_EFFECT, *_OF_READ})
    return _OF_READ if kind == "read" else _OF_MODEL
