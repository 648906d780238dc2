"""Runtime-structured on Mellea: each subtask is one instruct-validate-repair loop, with the strategy that shows the error.

mellea       requirements in words, as in the paper's listing (arXiv 2605.15425, section 2): a model judges each of them
mellea_code  one requirement in code: the workbench's verifier
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, get_args

from mellea import MelleaSession
from mellea.backends import ModelOption
from mellea.backends.openai import OpenAIBackend
from mellea.core import Context, Requirement, SamplingResult, ValidationResult
from mellea.stdlib.context import SimpleContext
from mellea.stdlib.sampling import RepairTemplateStrategy
from pydantic import BaseModel

from bench.common.errors import GaveUp
from bench.record.messages import Message
from bench.run.trial.endpoint_session import PARALLEL, EndpointSession
from bench.run.trial.proposal import Proposal
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Output, Subtask, Task

EarlierRejection = Rejected | None
"""What a later subtask found wrong with the output that is asked for again."""


@dataclass(frozen=True)
class MelleaClient:
    """Our session at the endpoint, and Mellea's session, which makes the calls."""

    workbench: Workbench
    endpoint: EndpointSession
    session: MelleaSession


AskAgain = Callable[[Subtask, EarlierRejection, MelleaClient], Awaitable[None]]


async def mellea(task: Task, workbench: Workbench) -> None:
    await _branching(task, workbench, _in_words)
    rejected = workbench.checkpoint(task.subtasks)
    if rejected:
        raise GaveUp([rejected.subtask], f"Mellea's judges let pass what the verifier rejects: {rejected.detail}")


async def mellea_code(task: Task, workbench: Workbench) -> None:
    await _branching(task, workbench, _in_code)


async def _branching(task: Task, workbench: Workbench, ask: AskAgain) -> None:
    """Ask for each subtask, skip unneeded subtasks and reopen those found wrong, as `runtime_structured` does."""
    reopened: dict[str, Rejected] = {}
    async with workbench.endpoint(*task.subtasks, judges=judges) as endpoint, _session(endpoint) as session:
        line = MelleaClient(workbench, endpoint, session)
        while subtask := next((subtask for subtask in task.subtasks if not workbench.done(subtask)), None):
            if workbench.skip(subtask):
                continue
            await ask(subtask, reopened.pop(subtask.name, None), line)
            if rejection := workbench.finding(subtask):
                workbench.invalidate(rejection)
                reopened[rejection.subtask] = rejection


async def _in_words(subtask: Subtask, rejection: EarlierRejection, line: MelleaClient) -> None:
    def log_rejection(text: str, reasons: str) -> None:
        line.workbench.reject(line.endpoint.proposal(text, subtask), f"by Mellea's judges: {reasons}")

    result = await _instruct(subtask, rejection, line, in_words(subtask.output), log_rejection)
    line.workbench.commit_unverified(line.endpoint.proposal(str(result.result), subtask))


async def _in_code(subtask: Subtask, rejection: EarlierRejection, line: MelleaClient) -> None:
    proposals: list[Proposal] = []

    def verify(context: Context) -> ValidationResult:
        proposals.append(line.endpoint.proposal(str(context.last_output()), subtask))
        rejected = line.workbench.verify(proposals[-1], sufficiency=True)
        return ValidationResult(rejected is None, reason=rejected.detail if rejected else None)

    await _instruct(subtask, rejection, line, [Requirement("The answer is accepted.", verify, check_only=True)])
    line.workbench.commit(proposals[-1])


async def _instruct(
    subtask: Subtask,
    rejection: EarlierRejection,
    line: MelleaClient,
    requirements: Sequence[str | Requirement],
    rejected: Callable[[str, str], None] = lambda *_: None,
) -> SamplingResult[str]:
    """Run Mellea's loop. Raises GaveUp if its budget is used up, for which Mellea itself raises nothing."""
    strategy = _Repair(line.workbench.attempts_left(subtask), rejected)
    system, user = line.endpoint.messages(subtask)
    line.session.backend.turn_to(line.endpoint.base_url(subtask), judges=len(requirements))
    result = await line.session.ainstruct(
        f"{user.content}\n\n# Your last answer was found wrong\n{rejection.detail}" if rejection else user.content,
        requirements=list(requirements),
        strategy=strategy,
        return_sampling_results=True,
        model_options={ModelOption.SYSTEM_PROMPT: system.content},
    )
    if not result.success:
        rejected(str(result.sample_generations[-1]), _reasons(result.sample_validations[-1]))
        raise GaveUp([subtask.name], f"no output that Mellea accepts in {line.workbench.max_attempts} attempts")
    return result


@asynccontextmanager
async def _session(endpoint: EndpointSession) -> AsyncIterator[MelleaSession]:
    """Make the session in a thread, because a new backend waits for its server's version."""
    backend = await asyncio.to_thread(_Backend, "bench", base_url=endpoint.base_url(), api_key=endpoint.api_key)
    try:
        yield MelleaSession(backend, SimpleContext())
    finally:
        await backend.aclose()


class _Backend(OpenAIBackend):  # type: ignore[misc]  # skipped by mypy, as all of Mellea is
    """A backend of Mellea whose address can change. A session has one backend and a backend one address, but our addresses name
    the subtask. A backend for each subtask would cost framework time, which no user of Mellea spends. An output's requirements
    are judged at once, one call each."""

    def turn_to(self, base_url: str, judges: int) -> None:
        self._async_client.base_url = base_url
        self._judges = judges

    async def generate_from_context(self, action: Any, ctx: Context, **options: Any) -> Any:
        if isinstance(action, Requirement):
            headers = {"extra_headers": {PARALLEL: str(self._judges)}}
            options["model_options"] = {**(options.get("model_options") or {}), **headers}
        return await super().generate_from_context(action, ctx, **options)


class _Repair(RepairTemplateStrategy):  # type: ignore[misc]
    """Mellea's strategy, which also reports each output that it repairs. Its `repair` is static, but called on the object."""

    def __init__(self, budget: int, rejected: Callable[[str, str], None]):
        super().__init__(loop_budget=budget)
        self._rejected = rejected

    def repair(self, *steps: Any) -> Any:
        """Sort the requirements before the repair: Mellea keeps them in a set, and the repair prompt would differ from run to
        run."""
        *others, results, verdicts = steps
        ordered = [sorted(group, key=lambda verdict: str(verdict[0].description)) for group in verdicts]
        self._rejected(str(results[-1]), _reasons(ordered[-1]))
        return super().repair(*others, results, ordered)


def in_words(output: type[Output]) -> list[str]:
    """Return the form of an output in the words of the paper's listing: what it is, and the fields that it and its items must
    have."""
    lines = ["The output must be one JSON object.", f"It must have: {_fields(output)}."]
    for name, field in output.model_fields.items():
        items = [item for item in get_args(field.annotation) if isinstance(item, type) and issubclass(item, BaseModel)]
        lines += [f"Each item of {name} must have: {_fields(item)}." for item in items]
    return lines


def judges(messages: Sequence[Message]) -> bool:
    """Return whether these messages ask whether a requirement is met: they begin like Mellea's template for that question."""
    return messages[-1].content.lstrip().startswith(_judging())


@cache
def _judging() -> str:
    template = resources.files("mellea") / "templates" / "prompts" / "default" / "Requirement.jinja2"
    return template.read_text(encoding="utf-8").splitlines()[0]


def _fields(model: type[BaseModel]) -> str:
    return ", ".join(model.model_fields)


def _reasons(validations: Sequence[tuple[Requirement, ValidationResult]]) -> str:
    return "; ".join(str(requirement.description) for requirement, verdict in validations if not verdict)
