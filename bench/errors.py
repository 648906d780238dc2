"""Every exception that is expected to cross a module's border.

    BenchError                a user's mistake: printed as one line, exit code 2
    |-- ConfigError           a config that cannot be run as it stands
    |-- PackError             a scenario pack that cannot be used
    |   `-- Unavailable       one that lacks its data, or a package that it needs
    |-- EndpointError         a model endpoint that cannot be used at all
    |-- ResultsError          a results folder that cannot be read or written
    `-- Unguarded             code of a model would be run where a guard of the sandbox is missing

    CallFailed                one call to a model brought no usable reply
    |-- RateLimited           429: refused unpaid, may say when to come back
    |-- ServerFailed          5xx: refused unpaid
    |-- Unreachable           no connection, or one that ended before any answer came: unpaid
    |-- NoCompletion          a 200 with a page or the like in place of a completion: unpaid
    |-- NoText                a completion came, and no text of it can be read: paid
    |-- UnknownFinish         a completion that ended in a word that nobody knows: paid
    |-- TimedOut              the prompt was sent and paid, nothing came back in time
    |-- CutOff                the connection broke in mid-reply: paid, partly received
    |-- TooLong               more came than any reply has: paid, and thrown away
    |-- Broken                the code that was to read the reply raised: paid, for all that is known
    |-- BadAnswer             the endpoint answered something that is no chat completion, or refused for good
    |   `-- UsedUp            the account is empty: whatever is asked next is refused as well
    `-- NotRecorded           a recording holds no reply to this request

    GaveUp                    a trial used up its attempts: a result, not an error
    CannotStart               the command of an agent never began: nobody was measured
    Ungraded                  a trial only counted calls, and has ended: a result as well
    SandboxBroken             no code could be run here, whatever it was: it says nothing of an answer
    ToolRefused               a tool of a world declined: the agent is told why, and nothing changed
    UndeclaredCalls           calls over an endpoint overlapped undeclared: virtual seconds would be a guess

Expected *rejections* are data (`bench.runtime.verification.Rejected`), never exceptions.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence


class BenchError(Exception):
    """A user's mistake. Its text is one line: what is wrong, where, and what to do."""


class ConfigError(BenchError):
    pass


class PackError(BenchError):
    pass


class Unguarded(BenchError):
    """Code that a model wrote would be run where a guard of the sandbox is missing."""


class Unavailable(PackError):
    """A pack that is sound for all we know, and lacks its data here, or a package that it needs. A pack's `instances(folder)`
    raises it. Its text says what to fetch, and where it belongs."""


class EndpointError(BenchError):
    pass


class ResultsError(BenchError):
    pass


class CallFailed(Exception):
    """One call to a model brought no usable reply.

    `paid` says whether the provider did the work, which it also did where text arrived or tokens were counted; `passing`
    whether to try the same call again, `partial` is the text that did arrive, `counted` the tokens in and out by the
    provider's own count, `retry_after` the seconds the server asked for, `by` the model that failed, where the one that was
    asked had passed the request on, `advice` what a person can do about it, where that is known, `flight` that of
    `bench.models.base.Reply`.
    """

    kind = "failed"
    paid = False
    passing = True
    by = advice = ""
    flight: tuple[int, int] | None = None

    def __init__(
        self,
        detail: str,
        *,
        retry_after: float | None = None,
        partial: str = "",
        counted: tuple[int, int] | None = None,
        injected: bool = False,
    ):
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after
        self.partial = partial
        self.counted = counted
        self.paid = type(self).paid or bool(partial) or counted is not None
        self.injected = injected


class RateLimited(CallFailed):
    kind = "rate_limited"


class ServerFailed(CallFailed):
    kind = "server_failed"


class Unreachable(CallFailed):
    kind = "unreachable"


class NoCompletion(CallFailed):
    kind = "no_completion"


class NoText(CallFailed):
    kind = "no_text"
    paid = True


class UnknownFinish(CallFailed):
    kind = "unknown_finish"
    paid = True


class TimedOut(CallFailed):
    kind = "timed_out"
    paid = True


class CutOff(CallFailed):
    kind = "cut_off"
    paid = True


class TooLong(CallFailed):
    kind = "too_long"
    paid = True


class BrokenConnection(CallFailed):
    kind = "broken"
    paid = True
    passing = False


class BadAnswer(CallFailed):
    kind = "bad_answer"
    passing = False


class UsedUp(BadAnswer):
    """Recorded as what it is to the call, a `bad_answer`."""


class NotRecorded(CallFailed):
    kind = "not_recorded"
    passing = False


def failures_by_kind() -> dict[str, type[CallFailed]]:
    return {failure.kind: failure for failure in CallFailed.__subclasses__()}


class GaveUp(Exception):
    """The attempts for these subtasks, or the tries for their call, are used up."""

    def __init__(self, subtasks: Sequence[str], reason: str):
        super().__init__(f"{' + '.join(subtasks)}: {reason}")


class CannotStart(Exception):
    """The command of an agent never began, so that its trial says nothing of it. Its text says why, and what to do."""


class Ungraded(Exception):
    """A trial whose calls are only counted has ended: there is nothing to grade."""


class SandboxBroken(Exception):
    """The sandbox could not be set up. It says nothing about the code that was to run in it."""


class ToolRefused(Exception):
    """A world's tool declines a call, for a reason of the business. Raised by a pack's `run`; the agent is told its text."""


class UndeclaredCalls(Exception):
    """Calls were in flight together of which virtual time could not tell when they began: their seconds would be a guess."""


MOST_NAMED = 40
"""Of the known names, those that an error line lists."""
LONGEST_NAME = 200
"""Characters of a name that are compared with known ones: that takes time that grows faster than they do."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error line for an unknown name: the nearest known one, or else the known ones, the first of them where they
    are many."""
    names = sorted(known)
    close = difflib.get_close_matches(name[:LONGEST_NAME], names, n=1, cutoff=0.5)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(names[:MOST_NAMED]) or 'none'}{more}"


def one_line(text: str, longest: int) -> str:
    """Return the text as one line of at most so many printable characters: a control character and half of a surrogate pair are
    shown as their escapes. Of a long text only the beginning is read."""
    words = " ".join(text[: 4 * longest].split())
    line = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in words)
    is_whole = len(text) <= 4 * longest and len(line) <= longest
    return line if is_whole else f"{line[: longest - 3]}..."


def whole_text(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair, which JSON can name and neither file nor terminal can hold. Two
    halves that follow each other are the character that they are halves of: a stream may cut one between two pieces."""
    try:
        text.encode()
    except UnicodeEncodeError:
        pass
    else:
        return text
    joined = re.sub(
        "[\ud800-\udbff][\udc00-\udfff]", lambda halves: halves[0].encode("utf-16", "surrogatepass").decode("utf-16"), text
    )
    return re.sub("[\ud800-\udfff]", "\ufffd", joined)
