"""DSPy: the task as a program of one Predict for each subtask, and Refine, which runs again what the verifier rejects, each
time with a model's advice on the attempt before.

dspy            Refine over the whole program
dspy_by_module  a Refine around each Predict, in place of the Assertions of earlier versions
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import dspy as framework
from dspy.predict import refine
from dspy.predict.refine import OfferFeedback
from dspy.utils.exceptions import AdapterParseError
from pydantic_core import to_json

from bench.common.errors import GaveUp
from bench.record.messages import Message
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Subtask, Task

Step: TypeAlias = Callable[[str, framework.Predict], None]
"""Takes the step of this name with this predictor. DSPy shows the model the source of `Program`: its words, this name too, are
part of the prompt, and stay as recorded."""


class Program(framework.Module):  # type: ignore[misc]  # DSPy is untyped
    """Takes the steps of a task one after another."""

    def __init__(self, task: Task, take: Step):
        super().__init__()
        self.steps = {subtask.name: framework.Predict(signature_of(task, subtask)) for subtask in task.subtasks}
        self.take = take

    def forward(self) -> framework.Prediction:
        for name, predictor in self.steps.items():
            self.take(name, predictor)
        return framework.Prediction(steps=list(self.steps))


def signature_of(task: Task, subtask: Subtask) -> type[framework.Signature]:
    """Return a signature with our prompt as input and the subtask's output fields as outputs: DSPy's JSON is then the JSON that
    our prompt asks for."""
    outputs = subtask.output.model_fields.items()
    fields = {name: (info.annotation, framework.OutputField(desc=info.description or name)) for name, info in outputs}
    signature: type[framework.Signature] = framework.Signature({"task": (str, framework.InputField()), **fields}, task.role)
    return signature


async def dspy(task: Task, workbench: Workbench) -> None:
    async with workbench.endpoint(*task.subtasks, judges=advises) as session:
        await asyncio.to_thread(_refine, task, workbench, session)


async def dspy_by_module(task: Task, workbench: Workbench) -> None:
    async with workbench.endpoint(*task.subtasks, judges=advises) as session:
        for subtask in task.subtasks:
            await asyncio.to_thread(_refine, replace(task, subtasks=(subtask,)), workbench, session)


def _refine(task: Task, workbench: Workbench, session: EndpointSession) -> None:
    verdicts: list[Rejected | None] = []
    bench = workbench  # DSPy shows the model the source of `reward`: its words are part of the prompt, and stay as recorded

    def take(name: str, predictor: framework.Predict) -> None:
        _take(task.subtask(name), predictor, workbench, session)

    def reward(_: object, __: framework.Prediction) -> float:
        """1 where a verifier accepts the outputs of all steps, else 0."""
        verdicts.append(bench.checkpoint(task.subtasks))
        return 0.0 if verdicts[-1] else 1.0

    vars(refine)["print"] = logging.getLogger(__name__).debug  # it prints what failed, into our progress
    framework.disable_logging()  # and so do its warnings
    model = framework.LM("openai/bench", api_base=session.base_url(*task.subtasks), api_key=session.api_key, cache=False)
    attempts = workbench.attempts_left(*task.subtasks)
    with framework.context(lm=model, adapter=framework.JSONAdapter()):
        try:
            framework.Refine(Program(task, take), N=attempts, reward_fn=reward, threshold=1.0)()
        except AdapterParseError as error:
            raise GaveUp([subtask.name for subtask in task.subtasks], f"Refine failed {attempts} times: {error}") from error
    if not verdicts or verdicts[-1]:
        raise GaveUp([subtask.name for subtask in task.subtasks], f"no accepted output in {attempts} attempts")


def _take(subtask: Subtask, predictor: framework.Predict, workbench: Workbench, session: EndpointSession) -> None:
    _, user = session.messages(subtask)
    try:
        prediction = predictor(task=user.content, config={"api_base": session.base_url(subtask)})
    except AdapterParseError as error:
        workbench.verify(session.proposal(error.lm_response, subtask))
        raise
    workbench.commit_unverified(session.proposal(to_json(dict(prediction)).decode(), subtask))


def advises(messages: Sequence[Message]) -> bool:
    """Return whether these messages ask for Refine's advice: they hold the instructions of its signature."""
    instructions = " ".join(OfferFeedback.instructions.split())
    return any(instructions in " ".join(message.content.split()) for message in messages)
