"""The agent's process, which can die, and its store, which outlives it.

An agent cannot handle a crash: it passes every `except Exception`, and any code of the dead process that still runs dies at its
next step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal, NoReturn

from bench.run.models.base import Reply
from bench.run.trial.effects import AskerDies, halve
from bench.run.trial.faults import OpenReceipt
from bench.scenario import Json

When = Literal["unrecorded", "recorded"]


class Crashed(BaseException):
    """Raised when the agent's process has died."""


class AgentBody:
    """The running part of an agent. For an agent that is code in this process the methods do nothing."""

    @property
    def asker(self) -> int:
        """Return the id of the process that sends the present request, if it is to die without the agent's other processes;
        else 0."""
        return 0

    def freeze(self) -> None:
        """Stop the process that is to die until it is killed."""

    def kill(self) -> None:
        """Kill the process that is to die."""


class Process:
    """The agent's processes, one after the other. `died` is called with the point of each death.

    Where one of several processes dies, `is_dead` stays False, and only its own requests raise Crashed.
    """

    def __init__(self, died: Callable[[str], object]):
        self._died = died
        self.body = AgentBody()
        self.is_dead = False
        self._armed: list[tuple[int, When, OpenReceipt]] = []
        self._receipts_of_death: tuple[OpenReceipt, ...] = ()

    def step(self, effect: bool = False) -> None:
        """Continue the process; with `effect`, to change the world. Raises Crashed if the process is to die before that."""
        if not self.is_dead:
            self._detect()  # another process of the agent has died: it goes on without that
        self._die_if(lambda when: when == "unrecorded" or effect)

    def note_write(self) -> None:
        """Note that the agent has written to its store. Raises Crashed if it is to die after that."""
        self._die_if(lambda _: True)

    def note_end(self) -> bool:
        """Note that the agent's code has ended in some way. Return whether it died."""
        with suppress(Crashed):
            self._die_if(lambda _: True)
        return self.is_dead

    def arm(self, when: When, receipt: OpenReceipt) -> None:
        """Arm a death: the process is to die before, or after, it records the result that it just got."""
        self._armed.append((self.body.asker, when, receipt))

    @contextmanager
    def sending_answer(self) -> Iterator[None]:
        """Freeze the process while an answer is sent to it, if it is to die before it records that answer. Then raise Crashed
        at the end."""
        if any((asker, when) == (self.body.asker, "unrecorded") for asker, when, _ in self._armed):
            self.body.freeze()
        yield
        self.step()

    def disarm(self, why: str) -> None:
        """Note that the process ended by itself, before a death that `arm` had planned."""
        for _, _, receipt in self._armed:
            receipt.enter("not_applicable", why)
        self._armed = []

    def die(self, *receipts: OpenReceipt) -> NoReturn:
        """Kill the process and raise Crashed. The receipts of the faults that kill it note that they were delivered."""
        self.body.kill()
        for receipt in receipts:
            receipt.enter("delivered", receipt.due.key)
        dying = self.body.asker  # 0 if all processes of the agent die
        self._armed = [(asker, when, receipt) for asker, when, receipt in self._armed if dying not in (0, asker)]
        self.is_dead, self._receipts_of_death = not dying, receipts
        self._died(receipts[0].due.fault.effect if receipts else "killed")
        raise Crashed

    def restart(self) -> None:
        """Mark the deaths as detected: whoever restarts the process has noticed them."""
        self._detect()
        self.is_dead = False

    def _detect(self) -> None:
        """Mark the faults that killed the process as detected."""
        for receipt in self._receipts_of_death:
            receipt.detect()
        self._receipts_of_death = ()

    def _die_if(self, due: Callable[[When], bool]) -> None:
        """Raise Crashed if the process is dead, or if a planned death is due now."""
        if self.is_dead:
            raise Crashed
        armed = [(when, receipt) for asker, when, receipt in self._armed if asker == self.body.asker]
        if any(due(when) for when, _ in armed):
            self.die(*(receipt for _, receipt in armed))


class DiesInMidReply(AskerDies):
    """The death of the process after half of a model's reply has arrived."""

    def __init__(self, process: Process, receipt: OpenReceipt, reply: Reply):
        super().__init__(halve(reply))
        self.detail = "the agent died in mid-reply (injected)"
        self._process, self._receipt = process, receipt

    def die(self) -> NoReturn:
        """Kill the process after half of the reply has arrived. Raises Crashed."""
        self._process.die(self._receipt)


class Store:
    """Values by name, and logs, that an architecture keeps over a crash. Everything is JSON.

    A write is complete or does not happen. `on_write` is called for each.
    """

    def __init__(self, process: Process, on_write: Callable[[str, str], object]):
        self._process, self._on_write = process, on_write
        self._values: dict[str, str] = {}
        self._logs: dict[str, list[str]] = {}

    def get(self, name: str, default: Json = None) -> Json:
        """Return the value of this name, or the default if there is none."""
        return json.loads(self._values[name]) if name in self._values else default

    def put(self, name: str, value: Json) -> None:
        """Store a value. Raises TypeError if it is no JSON."""
        text = json.dumps(value)
        self._process.step()  # a planned crash can end the process before the write
        self._values[name] = text
        self._write(name, text)

    def append(self, log: str, value: Json) -> None:
        """Append a value to a log. Raises TypeError if it is no JSON."""
        text = json.dumps(value)
        self._process.step()
        self._logs.setdefault(log, []).append(text)
        self._write(log, text)

    def log(self, name: str) -> list[Json]:
        """Return the values of a log, in order."""
        return [json.loads(text) for text in self._logs.get(name, ())]

    def names(self) -> list[str]:
        return sorted(self._values)

    def _write(self, name: str, text: str) -> None:
        """Report a write, after which the process may have to die."""
        self._on_write(name, text)
        self._process.note_write()
