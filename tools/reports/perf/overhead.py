"""A run's time per model call, and Inspect AI's for the same five calls with its mock model, measured in turns in one run.

Both are the slope between two sizes, which takes start-up out and the writing of records in. Ours counts everything, so the
simulated model and the pack's checks as well; Inspect's samples have no checks, and it writes no log in real time. All seconds
are the processor's, and the least of all rounds, so that what else the machine does hardly shows.

    python tools/reports/perf/overhead.py [ROUNDS]
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

from inspect_ai import Task, eval  # noqa: A004
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, Solver, TaskState, solver

from bench.common.digests import cached_digest
from bench.common.tokens import counts
from bench.record.messages import Message
from bench.record.store import RunWriter
from bench.run.experiment.config import Config
from bench.run.experiment.grading import Graders
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.model_entries import SimulatedEntry
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.plan_entries import WrittenPlan
from bench.run.experiment.responses import ResponseWriter
from bench.run.experiment.trial import run_trial
from bench.run.models.base import Reply, Request, Sleep
from bench.run.models.simulated import SimulatedModel
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots

PACKS = [Path(__file__).parents[3] / "scenarios"]
SMALL, LARGE, CALLS, ROUNDS = 20, 120, 5, 5


class Kept(SimulatedModel):
    """A simulated model that remembers the requests and its replies."""

    exchanges: tuple[tuple[tuple[Message, ...], str], ...] = ()

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        reply = await super().reply(request, sleep)
        self.exchanges = (*self.exchanges[-4:], (request.messages, reply.text))
        return reply


def our_matrix(trials: int) -> tuple[Matrix, Kept]:
    entry = SimulatedEntry(kind="simulated", wrapping=False)
    config = Config(
        name="perf",
        scenarios=("k8s_oomkill",),
        architectures=("runtime_structured",),
        models=("simulated",),
        repetitions=trials,
        seed=1,
        model={"simulated": entry},
        plan={"none": WrittenPlan()},
    )
    matrix = build_matrix(config, PACKS, code_digest="")
    model = Kept("simulated", entry, matrix.scenarios)
    return replace(matrix, models={"simulated": model}), model


async def our_trials(trials: int, folder: Path, *, cold: bool) -> float:
    """Seconds that so many trials take. `cold` forgets all token counts and digests before each trial."""
    matrix, model = our_matrix(trials)
    writer, graders = RunWriter(folder, manifest_of(matrix, "perf")), Graders()
    keeper = ResponseWriter(model, writer)
    began = process_time()
    for spec in matrix.specs:
        if cold:
            counts.cache_clear()
            cached_digest.cache_clear()
        result = await run_trial(spec, matrix, Slots(), graders, keeper)
        writer.add(result.record, result.texts)
    writer.close()
    return process_time() - began


def exchanges() -> Sequence[tuple[tuple[Message, ...], str]]:
    """Return the five prompts of a trial of ours, and the replies."""
    matrix, model = our_matrix(1)
    run(run_trial(matrix.specs[0], matrix, Slots(), Graders()))
    return model.exchanges


def _output(text: str) -> ModelOutput:
    """Return an output with its own usage: without one the mock model counts tokens by a table that it fetches from the web."""
    output = ModelOutput.from_content("mockllm", text)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


@solver
def five_calls() -> Solver:
    """Return a solver that makes the same five calls, one after another."""
    replies = [text for _, text in EXCHANGES] * LARGE
    model = get_model("mockllm/model", custom_outputs=[_output(text) for text in replies])

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        for (system, user), _ in EXCHANGES:
            state.output = await model.generate(
                [ChatMessageSystem(content=system.content), ChatMessageUser(content=user.content)]
            )
        return state

    return solve


EXCHANGES = exchanges()


def inspect_samples(samples: int) -> float:
    """Return the seconds that Inspect takes for so many samples."""
    dataset = MemoryDataset([Sample(input="perf", target="{", id=number) for number in range(1, samples + 1)])
    task = Task(dataset=dataset, solver=five_calls(), scorer=includes())
    with tempfile.TemporaryDirectory() as folder:
        began = process_time()
        (log,) = eval(task, model="mockllm/model", display="none", log_dir=folder, max_samples=1, log_realtime=False)
        took = process_time() - began
    if log.status != "success":
        raise RuntimeError(f"Inspect ended with {log.status}")
    return took


def our_seconds(trials: int, *, cold: bool = False) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return run(our_trials(trials, Path(folder) / "run", cold=cold))


@dataclass(frozen=True)
class Overhead:
    """Milliseconds of the processor per model call: ours, ours where no prompt was counted before, Inspect's."""

    own: float
    cold: float
    inspect: float

    @property
    def ratio(self) -> float:
        return self.own / self.inspect


def measured(rounds: int) -> Overhead:
    """Return the milliseconds a call of both, measured in turns. The first round warms up."""
    sources = (our_seconds, functools.partial(our_seconds, cold=True), inspect_samples)
    taken = [[(source(SMALL), source(LARGE)) for source in sources] for _ in range(rounds + 1)][1:]

    def slope(place: int) -> float:
        small, large = (min(of_round[place][size] for of_round in taken) for size in (0, 1))
        return 1000 * (large - small) / ((LARGE - SMALL) * CALLS)

    return Overhead(slope(0), slope(1), slope(2))


def main(rounds: int) -> Overhead:
    costs = measured(rounds)
    print(f"milliseconds of the processor per model call, the least of {rounds} rounds of {LARGE} x {CALLS} calls")
    print(f"bench {costs.own:.3f}; no prompt counted before: {costs.cold:.3f}; Inspect AI, mock model: {costs.inspect:.3f}")
    print(f"bench / Inspect AI: {costs.ratio:.2f}; ours holds the responses and the records being written, Inspect's its log")
    return costs


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
