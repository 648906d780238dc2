"""A server that answers by a pack's reference, and counts how often it answered each request."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from scripted_server import Step, completion
from trials import TINY


class Counting:
    """`before` may answer in its place: it is given how many requests there were so far, this one among them.

    answered   how often each request (messages and seed) was answered; the probes before a run are not among them
    """

    def __init__(self, before: Callable[[int], Step | None] = lambda _: None):
        self.before = before
        self.answered: Counter[str] = Counter()
        self.requests = self.probes = 0

    def __call__(self, body: Any) -> Step:
        names = re.findall(r"^# Task: (\w+)", body["messages"][-1]["content"], re.MULTILINE)
        self.requests += 1
        if step := self.before(self.requests):
            return step
        if not names:
            self.probes += 1
            return completion("OK")
        self.answered[json.dumps([body["messages"], body["seed"]])] += 1
        return completion(json.dumps(TINY.reference[names[0]]), usage=(100, 10))
