"""A scorecard in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bench.worlds.environment.damage import DAMAGES
from bench.worlds.scorecard import ALL_CRASHES, Scorecard, ScorecardRow, Struck
from bench.worlds.scorecard.cells import ANY

ABOUT = (
    "Each system did the same tasks in a world in which what was done stays done: once undisturbed, which is its control, and "
    "again while it was killed and started anew, or while answers were kept from it, at the same places for all systems. What "
    "is counted happened in the world. What a system says of itself is not asked."
)
FAILURES: Mapping[str, tuple[str, str]] = {
    "control": ("undisturbed", "the control: no failure at all"),
    ALL_CRASHES: ("killed, all points", "whatever the point"),
    "process:before": ("killed before", "when it asked for an effect, which then did not happen"),
    "process:unacknowledged": ("killed unacknowledged", "after the effect, before its answer"),
    "process:unrecorded": ("killed unrecorded", "with the answer, before it could write that down"),
    "process:recorded": ("killed recorded", "after it had written the answer down"),
    "process:mid_stream": ("killed in mid-stream", "in the middle of a model's reply"),
    "tool:lost_ack": ("answer lost", "the effect happened, and its answer never came"),
}
"""The name of a failure in a table, and its meaning."""
KINDS: Mapping[str, str] = {
    "lost": "an effect that ought to stand, and does not",
    "doubled": "an effect that happened once too often",
    "orphaned": "an effect that happened, and of which the system has no record",
    "unauthorised": "an effect against the policy, or without the person that it needed",
    "uncompensated": "an effect that ought not to stand, and was not taken back",
    "stale": "an effect based on what had changed since the system saw it",
    "late": "an effect after its last moment",
}
SIMULATED = (
    "Models marked SIMULATED are no models: they answer from the packs' references. What a system does to the world after a "
    "crash is measured; tokens and seconds are declared. Nothing of it says how good a real model is."
)


def failure(by: str) -> str:
    """Return a failure's name in a table. A fault without an entry keeps its name from the config."""
    return FAILURES[by][0] if by in FAILURES else by.replace(":", ": ").replace("_", " ")


def legend(names: Iterable[str]) -> Iterator[str]:
    known = set(names)
    yield from (f"{name}: {meaning}" for by, (name, meaning) in FAILURES.items() if by in known)


def units(by: str) -> str:
    """Return the unit in which effects are counted."""
    return "crashes" if by.startswith("process:") else "lost answers" if by == "tool:lost_ack" else "faults"


def model(row: ScorecardRow) -> str:
    return f"{row.model} ({'SIMULATED' if row.whose == 'simulated' else 'recorded'})" if row.whose != "live" else row.model


def findings(card: Scorecard) -> Iterator[str]:
    """Yield a sentence or two for each row. Rows with the same text are joined."""
    many = {name: len({getattr(row, name) for row in card.rows}) > 1 for name in ("world", "model")}
    alike: dict[tuple[str, str], list[str]] = {}
    for row in card.rows:
        where = [*([row.world] if many["world"] else []), *([model(row)] if many["model"] else [])]
        alike.setdefault((f" ({', '.join(where)})" if where else "", _summary(row)), []).append(row.system)
    for (place, text), systems in alike.items():
        yield f"{', '.join(systems)}{place}{', each' if len(systems) > 1 else ''}: {text}"


def _summary(row: ScorecardRow) -> str:
    sentences = [_of_failure(struck) for struck in row.struck if struck.by in (ALL_CRASHES, "tool:lost_ack") and struck.trials]
    control = f"Undisturbed: {_of(row.control.k, row.control.n)} right." if row.control.n else "Undisturbed: not measured."
    reason = f" Why, most often: {row.reason}." if row.reason else ""
    return " ".join([*sentences, control]) + reason


def _distinct(failures: Struck) -> str:
    return f" ({failures.distinct} of {failures.trials} trials are distinct)" if failures.has_copies else ""


def _of_failure(failures: Struck) -> str:
    many = "" if failures.failures == 1 else "s"
    struck = (
        f"Killed {failures.failures} time{many}{_distinct(failures)}"
        if failures.by == ALL_CRASHES
        else f"{failures.failures} answer{many} lost"
    )
    value = failures.work["tokens"].value
    work = f", with {value:.1f} times the tokens" if value is not None and abs(value - 1) >= SEEN else ""
    return f"{struck}: {_of(failures.right.k, failures.right.n)} right{work}; {_harm(failures)}."


SEEN = 0.05
"""A ratio closer to 1 than this is written as 1.0."""


def _of(k: int, n: int) -> str:
    return f"all of {n}" if k == n > 1 else f"{k if k else 'none'} of {n}"


def _harm(struck: Struck) -> str:
    if not struck.paired:
        return "what it damaged beyond its control is not measured"
    harms = {kind: struck.harm[kind].per_100.value or 0.0 for kind in DAMAGES if struck.harm[kind].effects > 0}
    if harms:
        named = ", ".join(f"{harms[kind]:.0f} {kind}" for kind in sorted(harms, key=lambda kind: -harms[kind]))
        return f"for 100 {units(struck.by)}, effects beyond its control: {named}"
    if struck.any_harm.k:
        return (
            f"damage beyond its control in {struck.any_harm.k} of {struck.paired} trials, and less than its control's in others"
        )
    return f"nothing damaged beyond its control (that leaves room for {100 * (struck.any_harm.high or 0.0):.0f} of 100 trials)"


def notes(card: Scorecard) -> Iterator[str]:
    """Yield what a reader must know about how the numbers were made."""
    yield from card.notes
    yield "damaged beyond the control: more often than by the same system, in the same task and repetition, without a failure"
    if any(struck.harm[ANY].fewer for row in card.rows for struck in row.struck):
        yield "where a control did damage that the struck trial did not, that is taken off: numbers may be below 0"


def provenance(card: Scorecard) -> Iterator[tuple[str, str]]:
    for world in card.worlds:
        size = f"tasks: {world.instances}; repetitions: {world.repetitions}"
        drawn_from = f"{size}; fault plans: {', '.join(world.plans)}; seed: {world.seed}"
        yield f"Fault schedule of {world.name}", f"{world.schedule} ({drawn_from})"
    for source in card.sources:
        yield f"Run {source.run}", f"{source.files}, by the code {source.code}"
    yield "Own logs", own_logs(card)


def own_logs(card: Scorecard) -> str:
    given = [row for row in card.rows if row.own_log is not None]
    if not given:
        return "not given: no system kept a log of its own that its account could be compared with"
    return "; ".join(
        f"{row.system}: equal to the account in {row.own_log.k} of {row.own_log.n} trials" for row in given if row.own_log
    )
