"""Sentences and notes of a scorecard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench.common.wording import plural
from bench.read.analysis.statistics import Share
from bench.read.render.labels import join_names
from bench.record.damage import DAMAGES
from bench.worlds.read.scorecard.card import ALL_CRASHES, Scorecard, ScorecardRow, Struck
from bench.worlds.read.scorecard.cells import ANY_KIND

LOST_ANSWERS = "tool:lost_ack"
INTRODUCTION = (
    "Each system did the same tasks in a world in which what was done stays done: once undisturbed, which is its control, and "
    "again while it was killed and started anew, or while answers were kept from it, at the same places for all systems. Only "
    "what happened in the world is counted. What a system says of itself does not count."
)
FAILURE_NAMES: Mapping[str, tuple[str, str]] = {
    "control": ("undisturbed", "the control: no failure at all"),
    ALL_CRASHES: ("killed, all points", "whatever the point"),
    "process:before": ("killed before", "when it asked for an effect, which then did not happen"),
    "process:unacknowledged": ("killed unacknowledged", "after the effect, before its answer"),
    "process:unrecorded": ("killed unrecorded", "with the answer, before it could write that down"),
    "process:recorded": ("killed recorded", "after it had written the answer down"),
    "process:mid_stream": ("killed in mid-stream", "in the middle of a model's reply"),
    LOST_ANSWERS: ("answer lost", "the effect happened, and its answer never came"),
}
"""Kind of failure -> (its name in a table, its meaning)."""
DAMAGE_MEANINGS: Mapping[str, str] = {
    "lost": "an effect that ought to stand, and does not",
    "doubled": "an effect that happened once too often",
    "orphaned": "an effect that happened, and of which the system has no record",
    "unauthorised": "an effect against the policy, or without the person that it needed",
    "uncompensated": "an effect that ought not to stand, and was not taken back",
    "stale": "an effect based on what had changed since the system saw it",
    "late": "an effect after its last moment",
}
DAMAGE_PHRASES: Mapping[str, str] = {
    "lost": "missing",
    "doubled": "done twice",
    "orphaned": "without a record",
    "unauthorised": "without authority",
    "uncompensated": "not taken back",
    "stale": "based on what had changed",
    "late": "done too late",
}
"""Kind of damage -> the phrase that describes such effects in a sentence."""
SIMULATED_WARNING = (
    "Models marked SIMULATED are no models: they answer from the packs' references. What a system does to the world after a "
    "crash is measured; tokens and seconds are declared. Nothing of it says how good a real model is."
)


def failure(by: str) -> str:
    """Return a failure's name for a table. A fault without an entry keeps its name from the config."""
    return FAILURE_NAMES[by][0] if by in FAILURE_NAMES else by.replace(":", ": ").replace("_", " ")


def legend(names: Iterable[str]) -> Iterator[str]:
    """Yield a line with the meaning of each of these kinds of failure."""
    known = set(names)
    yield from (f"{name}: {meaning}" for by, (name, meaning) in FAILURE_NAMES.items() if by in known)


def model(row: ScorecardRow) -> str:
    """Return a model's name, marked if it is simulated or recorded."""
    if row.whose == "live":
        return row.model
    return f"{row.model} ({'SIMULATED' if row.whose == 'simulated' else 'recorded'})"


def warnings(card: Scorecard) -> list[str]:
    """Return the warnings that a reader must see before any number."""
    return [SIMULATED_WARNING] if any(row.whose == "simulated" for row in card.rows) else []


def findings(card: Scorecard) -> Iterator[str]:
    """Yield a few sentences on each row's control, crashes and lost answers. Rows with the same sentences are joined."""
    many_models = len({row.model for row in card.rows}) > 1
    for world in dict.fromkeys(row.world for row in card.rows):
        for sentences_of in (_control, _crashes, _lost_answers):
            rows_by_sentences: dict[tuple[str, ...], list[ScorecardRow]] = {}
            for row in card.rows:
                if row.world == world and (sentences := list(sentences_of(row, [""]))):
                    with_model = f" with {model(row)}" if many_models else ""
                    rows_by_sentences.setdefault((with_model, *sentences), []).append(row)
            for (with_model, *_), rows in rows_by_sentences.items():
                yield f"On {world}{with_model}, {' '.join(sentences_of(rows[0], [row.system for row in rows]))}"


def _control(row: ScorecardRow, systems: Sequence[str]) -> Iterator[str]:
    """Yield the sentences on the trials without a fault."""
    many = len(systems) > 1
    if not row.control.n:
        yield f"no undisturbed trial of {_system_names(systems)} was measured."
        return
    trials = plural(row.control.n, "undisturbed trial")
    yield f"{_system_names(systems)}{' each' if many else ''} finished {_how_many(row.control)} of {trials} right."
    yield f"These trials are {'their' if many else 'its'} control."
    if row.reason:
        yield f"The trials failed most often for this reason: {row.reason}."


def _crashes(row: ScorecardRow, systems: Sequence[str]) -> Iterator[str]:
    """Yield the sentences on the trials that crashes struck."""
    crashed = row.struck_by(ALL_CRASHES)
    if crashed and crashed.trials:
        times = "once" if crashed.failures == 1 else f"{crashed.failures} times"
        yield f"{_system_names(systems)} {'were each' if len(systems) > 1 else 'was'} killed {times} in {_trials(crashed)}."
        yield from _outcome(crashed, "crashes")


def _lost_answers(row: ScorecardRow, systems: Sequence[str]) -> Iterator[str]:
    """Yield the sentences on the trials in which answers were lost."""
    lost = row.struck_by(LOST_ANSWERS)
    if lost and lost.trials:
        answers = "1 answer was" if lost.failures == 1 else f"{lost.failures} answers were"
        yield f"{answers} kept from {'each of ' if len(systems) > 1 else ''}{_system_names(systems)} in {_trials(lost)}."
        yield from _outcome(lost, "lost answers")


def _outcome(struck: Struck, failures: str) -> Iterator[str]:
    """Yield how many of these trials finished right, their tokens if these differ from the control's, and their damage."""
    right, tokens = struck.right, struck.work["tokens"].value
    if right.n == 1:
        yield f"The trial {'finished' if right.k else 'did not finish'} right."
    else:
        yield f"{_how_many(right).capitalize()} of these {right.n} trials finished right."
    if tokens is not None and abs(tokens - 1) >= MIN_SHOWN_DIFFERENCE:
        yield f"{'It' if right.n == 1 else 'They'} took {tokens:.1f} times the tokens of the control."
    yield _harm(struck, failures)


MIN_SHOWN_DIFFERENCE = 0.05
"""The least distance of a ratio of tokens from 1 at which a sentence names the ratio. A smaller one would be shown as 1.0."""


def _system_names(systems: Sequence[str]) -> str:
    return join_names(systems, len(systems))


def _trials(struck: Struck) -> str:
    """Return the number of struck trials in words, with the number of distinct trials if there are copies."""
    distinct = f", of which {struck.distinct} {'is' if struck.distinct == 1 else 'are'} distinct" if struck.has_copies else ""
    return f"{plural(struck.trials, 'trial')}{distinct}"


def _how_many(share: Share) -> str:
    return "all" if share.k == share.n > 1 else f"{share.k or 'none'}"


def _harm(struck: Struck, failures: str) -> str:
    """Return the sentence on the damage beyond the control. `failures` names the failures."""
    if not struck.paired:
        return "Damage beyond the control was not measured."
    harms = {kind: struck.harm[kind].per_100.value or 0.0 for kind in DAMAGES if struck.harm[kind].effects > 0}
    if harms:
        first, *others = sorted(harms, key=lambda kind: -harms[kind])
        effects = f"{_number(harms[first])} {'effect' if round(harms[first]) <= 1 else 'effects'} {DAMAGE_PHRASES[first]}"
        named = join_names([effects, *(f"{_number(harms[kind])} {DAMAGE_PHRASES[kind]}" for kind in others)], len(harms))
        less = any(struck.harm[kind].effects < 0 for kind in DAMAGES)
        other = ", while other damage was less than in the control" if less else ""
        return f"Beyond the damage in the control, every 100 {failures} left {named}{other}."
    if struck.any_harm.k:
        some = f"{struck.any_harm.k} of {plural(struck.paired, 'trial')}"
        return f"Damage was greater than in the control in {some}, and less than in the control in others."
    most = f"{100 * (struck.any_harm.high or 0.0):.0f} in 100 trials"
    return f"No trial did more damage than its control, and the upper end of the 95% interval is {most}."


def _number(value: float) -> str:
    return f"{value:.0f}" if round(value) else "fewer than 1"


def notes(card: Scorecard) -> Iterator[str]:
    """Yield notes on how the numbers were made."""
    yield from card.notes
    yield "damaged beyond the control: more often than by the same system, in the same task and repetition, without a failure"
    if any(struck.harm[ANY_KIND].fewer for row in card.rows for struck in row.struck):
        yield "Where a control did damage that the struck trial did not, that damage is taken off, so numbers may be below 0."


def schedules(card: Scorecard) -> Iterator[str]:
    """Yield the fault schedule of each world. Two systems with the same digest met the same faults at the same places."""
    for world in card.worlds:
        size = f"tasks: {world.instances}; repetitions: {world.repetitions}"
        drawn_from = f"{size}; fault plans: {', '.join(world.plans)}; seed: {world.seed}"
        yield f"fault schedule of {world.name}: {world.schedule} ({drawn_from})"
