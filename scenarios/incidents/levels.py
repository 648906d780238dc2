"""The knobs of difficulty, and what they are at each level."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Level:
    """How hard an incident is.

    services       in the cluster
    distance       calls from the service that the alert is about to the one at fault, at least and at most
    plain          percent of the incidents whose log and event name the cause plainly; the others show what it did
    own_lines      lines of the log that show the cause
    caller_lines   lines of the log about failed calls, for each service on the way to the alert
    victims_shout  whether those lines are errors, as the fault's own is, and rows of metrics show the victims' errors too
    ordinary       lines of the log and events that are as they are every day
    noisy          services that say the same all the time, before the incident as in it; it is a warning where victims shout
    old            incidents that are over
    old_minutes    how long before the alert they were, at least and at most
    old_is_told    whether log and events say that an old one is over
    changes        harmless ones
    near           whether harmless changes come shortly before the incident, some at services that it strikes
    rows           metrics shown of each service
    marked         whether an alarm stands at each reading that is out of its usual range
    """

    services: int
    distance: tuple[int, int]
    plain: int
    own_lines: int
    caller_lines: int
    victims_shout: bool
    ordinary: int
    noisy: int
    old: int
    old_minutes: tuple[int, int]
    old_is_told: bool
    changes: int
    near: bool
    rows: int
    marked: bool


EASY = Level(
    services=4,
    distance=(1, 1),
    plain=100,
    own_lines=1,
    caller_lines=1,
    victims_shout=False,
    ordinary=2,
    noisy=1,
    old=1,
    old_minutes=(180, 420),
    old_is_told=True,
    changes=1,
    near=False,
    rows=2,
    marked=True,
)
MEDIUM = replace(
    EASY,
    services=5,
    distance=(1, 2),
    plain=80,
    old_minutes=(60, 180),
    changes=2,
)
HARD = replace(
    MEDIUM,
    services=8,
    distance=(2, 3),
    plain=20,
    caller_lines=2,
    victims_shout=True,
    ordinary=6,
    noisy=4,
    old=2,
    old_minutes=(30, 90),
    old_is_told=False,
    changes=4,
    near=True,
    rows=3,
    marked=False,
)
LEVELS = {"easy": EASY, "medium": MEDIUM, "hard": HARD}
"""Each says what it changes of the one before."""
