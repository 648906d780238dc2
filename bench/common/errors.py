"""Every exception that is expected to cross a module's border.

    BenchError                a user's mistake: printed as one line, exit code 2
    |-- ConfigError           a config that cannot be run as it stands
    |   `-- OriginalChanged   a probed store itself changed, and not its copy alone
    |-- PackError             a scenario pack that cannot be used
    |   `-- Unavailable       a pack that lacks its data, or a package that it needs
    |-- EndpointError         a model endpoint that cannot be used at all
    |-- ResultsError          a results folder that cannot be read or written
    `-- Unguarded             a model's code would be run although a guard of the sandbox is missing

    CallFailed                one call to a model brought no usable reply
    |-- RateLimited           429: refused unpaid, may say when to come back
    |-- ServerFailed          5xx: refused unpaid
    |-- Unreachable           no connection, or it ended before any answer came: unpaid
    |-- NoCompletion          a 200 with a page or similar instead of a completion: unpaid
    |-- NoText                a completion came, but no text in it can be read: paid
    |-- UnknownFinish         a completion with an unknown finish reason: paid
    |-- TimedOut              the prompt was sent and paid, nothing came back in time
    |-- CutOff                the connection broke during the reply: paid, partly received
    |-- TooLong               the reply is longer than any can be: paid, and thrown away
    |-- BrokenConnection      the code that reads the reply raised: taken as paid
    |-- BadAnswer             the endpoint's answer is no chat completion, or a final refusal
    |   `-- UsedUp            the account is empty: later requests are refused too
    `-- NotRecorded           a recording holds no reply to this request

    GaveUp                    a trial used up its attempts: a result, not an error
    Unmeasured                an agent's command never began, asked nothing, or ended of a request that was refused here
    Ungraded                  a trial that only counted calls has ended: a result too
    SandboxBroken             the sandbox failed: this says nothing about an answer
    ToolRefused               a world's tool declined: the agent is told why, and nothing changed
    UndeclaredCalls           calls overlapped undeclared: virtual seconds would be a guess

Expected *rejections* are data (`bench.run.trial.verification.Rejected`), never exceptions.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class BenchError(Exception):
    """A user's mistake. Its text is one line: what is wrong, where, and what to do."""


class ConfigError(BenchError):
    pass


class OriginalChanged(ConfigError):
    """A store that a probe copied has itself changed. The text names the backup."""


class PackError(BenchError):
    pass


class Unguarded(BenchError):
    """A model's code would run although a guard of the sandbox is missing."""


class Unavailable(PackError):
    """A pack lacks its data, or a package that it needs. The pack's `instances(folder)` raises it. The text says what to
    fetch and where to put it."""


class EndpointError(BenchError):
    pass


class ResultsError(BenchError):
    pass


class CallFailed(Exception):
    """A call to a model that returned no usable reply.

    paid          whether the provider did the work; also true if text arrived or tokens were counted
    passing       whether the same call should be tried again
    partial       the text that arrived
    counted       the input and output tokens by the provider's count
    retry_after   the seconds to wait, as the server asked
    by            the model that failed, if the requested model had forwarded the request
    advice        what a person can do about the failure, if that is known
    flight        as in `bench.run.models.base.Reply`
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
    """The account is empty. The failure is recorded as a `bad_answer`."""


class NotRecorded(CallFailed):
    kind = "not_recorded"
    passing = False


def failures_by_kind() -> dict[str, type[CallFailed]]:
    """Return the direct subclasses of CallFailed by their `kind`, as records name them."""
    return {failure.kind: failure for failure in CallFailed.__subclasses__()}


class GaveUp(Exception):
    """The attempts for these subtasks, or the tries for their call, are used up."""

    def __init__(self, subtasks: Sequence[str], reason: str):
        super().__init__(f"{' + '.join(subtasks)}: {reason}")


class Unmeasured(Exception):
    """A trial that shows nothing about its agent: the command did not start, it sent no request, or its last request was
    refused here. The text says which, and what to do."""


class Ungraded(Exception):
    """A trial whose calls are only counted has ended. There is nothing to grade."""


class SandboxBroken(Exception):
    """The sandbox could not be set up. This shows nothing about the code that should run in it."""


class ToolRefused(Exception):
    """A tool of a world declines a call for a business reason. A pack's `run` raises it, and the agent receives its text."""


class UndeclaredCalls(Exception):
    """Calls overlapped, and virtual time could not determine when each began. Their seconds would be a guess."""


MAX_LISTED_NAMES, LONGEST_NAME_LIST = 12, 400
"""The most known names that an error line lists, and the most characters of this list."""
CLEAR_MATCH_RATIO = 0.7
"""If the nearest known name is more similar to the typed name than this (1 means equal), no other name is suggested."""
LONGEST_COMPARED_NAME = 200
"""The most characters of a typed name that are compared with known names: the time grows faster than the length."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error line for an unknown name: the single name that is clearly meant, or the three nearest
    names, or else the known names, at most MAX_LISTED_NAMES names and LONGEST_NAME_LIST characters."""
    names, typed = sorted(set(known)), name[:LONGEST_COMPARED_NAME]
    containing = [known_name for known_name in names if len(typed) > 1 and typed in known_name]
    close = list(dict.fromkeys((*difflib.get_close_matches(typed, names, n=3, cutoff=0.5), *containing)))[:3]
    if close:
        is_clear = difflib.SequenceMatcher(None, close[0], typed).ratio() > CLEAR_MATCH_RATIO or len(close) == 1
        return f"did you mean {_quoted_choice([close[0]] if is_clear else close)}?"
    shown = names[:MAX_LISTED_NAMES]
    while len(", ".join(shown)) > LONGEST_NAME_LIST:
        shown.pop()
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"known: {', '.join(shown) or 'none'}{more}"


def _quoted_choice(names: Sequence[str]) -> str:
    """Return names as a choice: `'a', 'b' or 'c'`."""
    *others, last = (f"'{name}'" for name in names)
    return f"{', '.join(others)} or {last}" if others else last


def one_line(text: str, longest: int) -> str:
    """Return the text as one line of at most `longest` printable characters. A control character or half of a surrogate pair
    is shown as its escape. Only the beginning of a long text is read."""
    words = " ".join(text[: 4 * longest].split())
    line = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in words)
    is_whole = len(text) <= 4 * longest and len(line) <= longest
    return line if is_whole else f"{line[: longest - 3]}..."


def whole_text(text: str) -> str:
    """Return the text with U+FFFD in place of each half of a surrogate pair. JSON can contain a half, but no file or
    terminal can. Two halves in a row become their character, because a stream can split a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
