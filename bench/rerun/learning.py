"""Learn a policy from the rejections in one run's trials, and judge it in another run, on instances that it has not seen.

The learned part is the decomposition: which neighbouring subtasks share a call. A joint call reads shared documents once; but
if one of its outputs is rejected, all are asked for again. Let p(i) be the chance that the first reply for subtask i is
rejected, by the rule of succession (r + 1) / (n + 2) from r of n in training. Let c(G) be the mean tokens of one call for the
subtasks G over the training instances: its prompt, what it reads of other calls, and the replies. If rejections are
independent, the call is accepted with the product of all 1 - p(i), so an accepted call costs c(G) divided by that product. The
policy is the cut of the task's list into calls with the least sum.

All counts are of sets, and all sums of whole numbers, so the order and concurrency of trials cannot change what is learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from pathlib import Path

from bench.common.errors import ConfigError, ResultsError, nearest
from bench.common.tokens import count_tokens
from bench.record.events import Called, Judged, of_kind
from bench.record.formats import DEFAULT
from bench.record.manifest import Manifest
from bench.record.policy import FirstReplies, LearnedPolicy, PackPolicy
from bench.record.reading import read_manifest, read_records
from bench.record.record import SessionRecord, TrialRecord, latest
from bench.record.verify import sources
from bench.run.packs import load_pack
from bench.run.packs.loading import sample
from bench.run.trial.prompt import render
from bench.scenario import Scenario, Subtask


@dataclass
class _ReplyCounts:
    """The distinct first replies for one subtask. The keys are made of prompt and reply; the values say whether the reply was
    rejected, and how many tokens it has."""

    rejected: dict[object, bool] = field(default_factory=dict)
    tokens: dict[object, int] = field(default_factory=dict)

    @property
    def first_replies(self) -> FirstReplies:
        """The number of first replies, and of rejected ones."""
        return FirstReplies(rejected=sum(self.rejected.values()), of=len(self.rejected))

    @property
    def accepted_share(self) -> Fraction:
        """The estimated share of first replies that are accepted."""
        return 1 - Fraction(self.first_replies.rejected + 1, self.first_replies.of + 2)

    @property
    def mean_tokens(self) -> Fraction:
        return Fraction(sum(self.tokens.values()), len(self.tokens))


def learn(
    folder: Path, packs: Sequence[Path], architecture: str, plan: str, model: str | None = None, count: int | None = None
) -> LearnedPolicy:
    """Return the policy learned from a run's trials of one architecture, plan and model, on all instances or a sample of
    `count`.

    Raises ResultsError if the run is not complete or has no calls for a single subtask, ConfigError for an unknown name or a
    pack whose subtasks have changed.
    """
    manifest, records = read_manifest(folder), list(read_records(folder))
    sessions = [record for record in records if isinstance(record, SessionRecord)]
    if not sessions or not sessions[-1].mark:
        raise ResultsError(f"{folder}: is not complete, and what is learned of it would depend on its end; go on with it first")
    model = model or manifest.config.models[0]
    for kind, name, known_names in (
        ("architecture", architecture, manifest.config.architectures),
        ("model", model, manifest.config.models),
        ("fault plan", plan, manifest.config.plans),
    ):
        if name not in known_names:
            raise ConfigError(f"run '{manifest.name}' has no {kind} '{name}'; {nearest(name, known_names)}")
    trials = [
        trial
        for trial in latest(record for record in records if isinstance(record, TrialRecord))
        if (trial.architecture, trial.plan, trial.model) == (architecture, plan, model)
        and trial.outcome not in ("error", "ungraded")
    ]
    learned: dict[str, PackPolicy] = {}
    for name in manifest.scenarios:
        if (pack := name.partition(":")[0]) in learned:
            raise ConfigError(f"run '{manifest.name}' has several variants of pack '{pack}'; learn from a run that has one")
        learned[pack] = learn_pack(name, manifest, trials, packs, count)
    return LearnedPolicy(
        run=manifest.name, digest=sources(folder), architecture=architecture, model=model, plan=plan, packs=learned
    )


def learn_pack(
    name: str, manifest: Manifest, trials: Sequence[TrialRecord], packs: Sequence[Path], count: int | None
) -> PackPolicy:
    """Return the policy learned from these trials for one scenario, on a sample of `count` instances. Raises the errors of
    `learn`."""
    instances = sample(manifest.scenarios[name].instances, count, "learning", manifest.config.seed, name.partition(":")[0])
    scenarios = [load_pack(name, packs, instance) for instance in instances]
    if (names := tuple(subtask.name for subtask in scenarios[0].task.subtasks)) != manifest.scenarios[name].subtasks:
        raise ConfigError(
            f"scenario '{name}' has other subtasks than in run '{manifest.name}': {', '.join(names)}; run it again"
        )
    reply_counts = {subtask: _ReplyCounts() for subtask in names}
    for trial in trials:
        if trial.scenario == name and trial.instance in instances:
            _count_first_replies(trial, reply_counts)
    if missing := [subtask for subtask, replies in reply_counts.items() if not replies.rejected or not replies.tokens]:
        problem = f"run '{manifest.name}': on {name} no first reply for '{missing[0]}' alone was verified"
        raise ResultsError(f"{problem}; learn from an architecture with a call by subtask, on more trials")
    calls = _cheapest_split(scenarios, reply_counts)
    return PackPolicy(
        instances=tuple(instances),
        calls=calls,
        first_replies={subtask: replies.first_replies for subtask, replies in reply_counts.items()},
    )


def _count_first_replies(trial: TrialRecord, reply_counts: Mapping[str, _ReplyCounts]) -> None:
    """Count the first reply for each subtask of a trial, if a call asked for this subtask alone and the verdict was told to the
    system."""
    calls = {call.call: call for call in of_kind(trial.events, Called)}
    judged: set[str] = set()
    for verdict in of_kind(trial.events, Judged):
        call = calls.get(verdict.calls[0]) if len(verdict.calls) == 1 else None
        if verdict.view != "told" or verdict.subtask in judged or call is None or call.subtasks != (verdict.subtask,):
            continue
        judged.add(verdict.subtask)
        prompt_key = (trial.instance, trial.repetition, tuple(message.content for message in call.messages))
        reply_counts[verdict.subtask].rejected[(*prompt_key, call.delivered or call.reply)] = not verdict.accepted
        reply_counts[verdict.subtask].tokens[(*prompt_key, call.reply)] = call.tokens_out


def _cheapest_split(scenarios: Sequence[Scenario], reply_counts: Mapping[str, _ReplyCounts]) -> tuple[tuple[str, ...], ...]:
    """Return the cheapest split of the list of subtasks into calls. If two splits cost the same, return the split with more
    calls."""
    subtasks = scenarios[0].task.subtasks
    # (tokens, minus the number of calls, split) of the cheapest split of the first 0, 1, 2, ... subtasks
    cheapest_splits: list[tuple[Fraction, int, tuple[tuple[str, ...], ...]]] = [(Fraction(0), 0, ())]
    for end in range(1, len(subtasks) + 1):
        options = []
        for start in range(end):
            names = tuple(subtask.name for subtask in subtasks[start:end])
            tokens, minus_calls, split = cheapest_splits[start]
            options.append((tokens + _expected_tokens(scenarios, names, reply_counts), minus_calls - 1, (*split, names)))
        cheapest_splits.append(min(options))
    *_, split_of_all = cheapest_splits[-1]
    return split_of_all


def _expected_tokens(scenarios: Sequence[Scenario], names: Sequence[str], reply_counts: Mapping[str, _ReplyCounts]) -> Fraction:
    """Return the expected tokens until a call for these subtasks is accepted."""
    prompt_tokens = [_prompt_tokens(scenario, [scenario.task.subtask(name) for name in names]) for scenario in scenarios]
    all_reads = {read for name in names for read in scenarios[0].task.subtask(name).reads}
    earlier_outputs = [name for name in reply_counts if name in all_reads and name not in names]
    replies = sum((reply_counts[name].mean_tokens for name in (*earlier_outputs, *names)), Fraction(0))
    tokens_per_try = Fraction(sum(prompt_tokens), len(prompt_tokens)) + replies
    return tokens_per_try / prod(reply_counts[name].accepted_share for name in names)


def _prompt_tokens(scenario: Scenario, subtasks: Sequence[Subtask]) -> int:
    """Return the number of tokens of the prompt for these subtasks, without the outputs that it reads."""
    task = scenario.task
    documents = {name: task.documents[name] for subtask in subtasks for name in subtask.reads if name in task.documents}
    messages = render(task, subtasks, documents, None, "none", DEFAULT)
    return sum(count_tokens(message.content) for message in messages)
