"""A model that answers from the pack's reference, without network: for tests, for trying a pack, for large experiments.

Its behaviour is declared, not measured: a rate of natural failures (a required field is forgotten), a habit of wrapping JSON in
prose and fences, and a latency that grows with the tokens read and written. All draws depend on the request's seed, scenario
and subtasks, so that a trial is the same wherever and whenever it runs. As a judge, the model checks whether the output in the
request fits its schema. If a pack with a world offers tools, the model does the pack's work with them
(`bench.run.packs.environments`). Without a world it reads documents with the document tools
(`bench.run.models.simulated_replies`), and calls any other tool only if it must.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bench.common.bounds import BoundedTable
from bench.common.numbers import Price
from bench.common.registry import attribute_at
from bench.common.seeding import draw_for
from bench.record.messages import Timing
from bench.run.answers.fenced import write_answer
from bench.run.answers.places import Schema, holds_code
from bench.run.models.bank import Bank
from bench.run.models.base import Reply, Request, Sleep, Usage
from bench.run.models.counting import tokens_read, tokens_written
from bench.run.models.erring import DEFAULT_LACK_SHARE, Erring, Learning, RepairSignal, signal_in
from bench.run.models.making import Making
from bench.run.models.options import options_in
from bench.run.models.simulated_replies import cut_reply, next_document_call, reply_with_calls, smallest_value
from bench.run.packs.environments import ENVIRONMENTS
from bench.scenario import Call, Json, Output, Scenario, scenario_key

LEARNING_SETTINGS = ("repairs", "right_after", "right_after_source")
"""The settings that the model's parameters replace by `learns`, the rates after a rejection."""
ADVICE = "Give every field of the form that is asked for."


class SimulatedSettings(BaseModel):
    """A model that answers from the packs' references, without network. Everything shown of it is marked SIMULATED."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    failure_rate: float = Field(0.0, ge=0.0, le=1.0)
    """The probability that a subtask's part of a reply lacks a required field."""
    bank: str | None = None
    """A run of `every_judgment`, by its name under results/ or its folder. In a world the model answers as the recorded model
    did: with its error rates and its errors. The bank must hold replies to all judgments of the run's scenarios and their
    variants. If tools are to be called, the model follows the procedure with the bank's judgments."""
    error_rate: float = Field(0.0, ge=0.0, le=1.0, exclude_if=lambda rate: not rate)
    """The probability that a judgment in a world is wrong. Some wrong outputs lack a required field; in the others one value is
    exchanged for another that the schema allows."""
    error_source: str = Field("assumed", exclude_if=lambda source: source == "assumed")
    """Where the error rate comes from, in words."""
    lacks_a_field: float = Field(DEFAULT_LACK_SHARE, ge=0.0, le=1.0, exclude_if=lambda share: share == DEFAULT_LACK_SHARE)
    """The share of wrong outputs that lack a required field."""
    error_draws: int = Field(0, ge=0, exclude_if=lambda number: not number)
    """The number of the set of draws for wrong judgments. Models with different numbers err in different places, under the same
    faults."""
    right_after: BoundedTable[RepairSignal, float] | None = Field(None, exclude_if=lambda rates: rates is None)
    """Assumed rates: how often a judgment is right that is asked again with the reason of its rejection (`typed`), or only told
    that it was not accepted (`untyped`). If not given, as often as at first: the model learns nothing from a rejection."""
    right_after_source: str = Field("assumed", exclude_if=lambda source: source == "assumed")
    """Where the rates come from, in words."""
    repairs: str | None = Field(None, exclude_if=lambda run: run is None)
    """The same rates, measured: a run of `every_repair`, by its name under results/ or its folder."""
    wrapping: bool = True
    """Whether some replies are in a code fence, indented, or behind a sentence, as models write them."""
    seconds_per_call: float = Field(0.4, ge=0.0)
    """Simulated seconds that every call takes; no real time passes."""
    seconds_per_1000_in: float = Field(0.2, ge=0.0)
    """Simulated seconds per 1,000 tokens read."""
    seconds_per_1000_out: float = Field(20.0, ge=0.0)
    """Simulated seconds per 1,000 tokens written."""
    jitter: float = Field(0.15, ge=0.0, le=2.0)
    """The spread of a call's seconds: the sd of the logarithm of a lognormal factor of median 1."""
    price_in: Price | None = None
    """Dollars per million tokens read. Without both prices the cost is unknown, never 0."""
    price_out: Price | None = None
    """Dollars per million tokens written."""

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> SimulatedSettings:
        """Raise ValueError for settings that contradict one another."""
        if self.error_rate and self.bank:
            raise ValueError("a bank has its own error rates; leave out either bank or error_rate")
        if self.repairs and self.right_after:
            raise ValueError("the rates after a rejection are either measured or assumed; leave out repairs, or right_after")
        if (self.repairs or self.right_after) and not self.error_rate:
            raise ValueError("a model that never errs is never rejected; add error_rate")
        return self


class SimulatedModel:
    """A model that answers a request with the reference outputs of its subtasks. `scenarios` holds the scenarios by their keys.

    A subtask that was added at run time is answered with the reference that was added with it, or else with the smallest output
    that fits the request's schema.
    """

    timing: Timing = "simulated"
    concurrency = 1_000
    """More calls than any experiment makes at the same time, so that no call waits for another."""

    def __init__(
        self,
        name: str,
        settings: SimulatedSettings,
        scenarios: Mapping[str, Scenario],
        bank: Bank | None = None,
        learning: Learning | None = None,
    ):
        self.name, self._settings, self.bank = name, settings, bank
        self._learning = learning or (
            Learning(settings.right_after, settings.right_after_source) if settings.right_after else None
        )
        self._erring = Erring(settings.error_rate, self._learning, settings.lacks_a_field) if settings.error_rate else None
        self.endpoint = f"simulated:{name}"
        self._scenarios = scenarios

    @property
    def parameters(self) -> dict[str, object]:
        """The settings, the rates after a rejection, and the bank."""
        fields = self._settings.model_dump(exclude={"answer_format", "draft_tags", "bank", *LEARNING_SETTINGS})
        parameters = {"kind": "simulated", **fields, **({"learns": self._learning.as_parameters} if self._learning else {})}
        bank = self.bank
        return parameters | ({"bank": {"name": bank.name, "digest": bank.digest, "model": bank.model}} if bank else {})

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """Return a simulated reply after simulated seconds, which grow with the tokens read and written."""
        context, settings = request.context, self._settings
        draw = draw_for("simulated", request.seed, context.scenario, *context.subtasks)
        reply = self._reply(request, draw)
        tokens_in, tokens_out = tokens_read(request), tokens_written(reply)
        seconds = settings.seconds_per_call
        seconds += (tokens_in * settings.seconds_per_1000_in + tokens_out * settings.seconds_per_1000_out) / 1000
        await sleep(seconds * draw.lognormvariate(0.0, settings.jitter))
        return replace(reply, usage=Usage(tokens_in, tokens_out))

    def _reply(self, request: Request, draw: Random) -> Reply:
        """Return the reply, without usage and seconds: a judgment, tool calls, or the outputs of the subtasks as text."""
        options = options_in(request.options)
        if request.context.judging:
            return Reply(self._judgment(request))
        scenario, choice = self._scenario(request), options.get("tool_choice", "auto")
        if options.get("tools") and choice != "none":
            if isinstance(choice, dict) or (choice == "required" and scenario.environment is None):
                return reply_with_calls([self._forced_call(request, draw, options)], request)
            if scenario.environment is not None:
                next_reply = attribute_at(ENVIRONMENTS[scenario.environment.part].simulated).next_reply
                forced = functools.partial(self._forced_call, request, draw)
                reply: Reply = next_reply(scenario, request, draw, options, self._settings.failure_rate, self.bank, forced)
                return reply
            if call := next_document_call(scenario.task, request.context.subtasks, request.messages, options["tools"]):
                return reply_with_calls([call], request)
        return cut_reply(Reply(self._text(request, draw)), options)

    def _forced_call(self, request: Request, draw: Random, options: Mapping[str, Any]) -> Call:
        """Return a call of the tool that must be called. Its arguments are the subtask's output if that fits the tool's schema,
        else the smallest value that fits."""
        choice = options["tool_choice"]
        name = choice["function"]["name"] if isinstance(choice, dict) else None
        functions = [tool["function"] for tool in options["tools"]]
        function = next((function for function in functions if function["name"] == name), functions[0])
        schema = function.get("parameters") or {}
        output = self._output(self._scenario(request), request.context.subtasks[0], request, draw)
        required, allowed = set(schema.get("required", ())), schema.get("properties", {}).keys()
        if not (isinstance(output, dict) and required <= output.keys() <= allowed):
            output = smallest_value(schema)
        return Call(function["name"], output)

    def _text(self, request: Request, draw: Random) -> str:
        """Return the text of the reply, with the outputs of all subtasks of the request."""
        scenario = self._scenario(request)
        outputs = {name: self._output(scenario, name, request, draw) for name in request.context.subtasks}
        if no_output := next((text for text in outputs.values() if isinstance(text, str)), None):
            return no_output
        value: Json = outputs if len(outputs) > 1 else next(iter(outputs.values()))
        blocks = ""
        if request.context.answer_format == "fenced" and holds_code(schema := self._schema(scenario, request)):
            answer = write_answer(value, schema)
            value, blocks = answer.value, "".join(answer.blocks.values())
        return (_wrap(value, draw) if self._settings.wrapping else json.dumps(value, ensure_ascii=False)) + blocks

    def _schema(self, scenario: Scenario, request: Request) -> Schema:
        """Return the schema of the answer: the request's schema, or the pack's if a framework asked without a schema."""
        if request.schema:
            return request.schema
        schemas = {
            subtask.name: subtask.output.model_json_schema()
            for subtask in scenario.task.subtasks
            if subtask.name in request.context.subtasks
        }
        return {"properties": schemas} if len(schemas) > 1 else next(iter(schemas.values()), {})

    def _judgment(self, request: Request) -> str:
        """Return a judge's answer: "yes" if the request shows an output that fits its schema, else "no". The advice is always
        the same."""
        task = self._scenario(request).task
        text = request.messages[-1].content
        schemas = [subtask.output for subtask in task.subtasks if subtask.name in request.context.subtasks]
        verdict = "yes" if any(_fits(schema, text) for schema in schemas) else "no"
        advice = dict.fromkeys(request.context.subtasks, ADVICE)
        return json.dumps({"verdict": verdict, "discussion": ADVICE, "advice": advice})

    def _scenario(self, request: Request) -> Scenario:
        return self._scenarios[scenario_key(request.context.scenario, request.context.instance)]

    def _output(self, scenario: Scenario, name: str, request: Request, draw: Random) -> Json | str:
        """Return the simulated output of a subtask: the reference, perhaps with errors or without a required field. With a bank
        it can be a recorded text that is no output."""
        reference = {**scenario.reference, **request.context.references}
        if name not in reference:
            smallest = smallest_value(request.schema or {})
            return smallest.get(name, smallest) if len(request.context.subtasks) > 1 else smallest
        value = reference[name]
        if self.bank and scenario.environment is not None:
            context = request.context
            value = self.bank.draw(
                scenario.name, context.instance, name, context.state, value, _draw_for_judgment(request, name)
            )
        if self._erring and scenario.environment is not None and name in scenario.reference:
            schema, draw_set = scenario.task.subtask(name).output, self._settings.error_draws
            judgment = _draw_for_judgment(request, *((name, draw_set) if draw_set else (name,)))
            value = self._erring.output(value, schema, signal_in(request.messages), judgment)
        if isinstance(value, str) or draw.random() >= self._settings.failure_rate:
            return value
        forgotten = draw.choice(_required_fields(scenario, name, value))
        return {field: content for field, content in value.items() if field != forgotten}

    async def prepare(self, patient: bool = True) -> None:
        pass

    async def close(self) -> None:
        pass


def _draw_for_judgment(request: Request, judgment: str, *draws: int) -> Random:
    """Return the random generator for one judgment in one state. The seed is the trial's and the attempt's, so all
    architectures draw the same values."""
    return draw_for("bank", request.seed, request.context.instance, judgment, request.context.state, *draws)


def _required_fields(scenario: Scenario, name: str, value: Mapping[str, Json]) -> list[str]:
    """Return the fields of an output that can be left out to make it invalid: the required fields, or all fields if the subtask
    was added at run time."""
    if name not in scenario.reference:
        return list(value)
    fields = scenario.task.subtask(name).output.model_fields
    return [field for field, info in fields.items() if info.is_required() and field in value]


def _fits(schema: type[Output], text: str) -> bool:
    """Return whether the first JSON object in a text fits a schema."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
        schema.model_validate(value)
    except ValueError:
        return False
    return True


def _wrap(value: Json, draw: Random) -> str:
    """Return JSON in one of the forms in which models write it: on one line or indented, and alone, in a code fence, or after a
    sentence."""
    text = json.dumps(value, ensure_ascii=False, indent=draw.choice((None, 2)))
    return draw.choice(("{}", "```json\n{}\n```", "Here is the answer:\n\n{}")).replace("{}", text, 1)


def make_model(settings: SimulatedSettings, making: Making) -> SimulatedModel:
    """Make a simulated model."""
    bank = making.bank(settings.bank) if settings.bank else None
    return SimulatedModel(
        making.name, settings, making.scenarios, bank, making.learning(settings.repairs) if settings.repairs else None
    )
