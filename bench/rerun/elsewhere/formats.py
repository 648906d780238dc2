"""The formats in which others publish trials, each as the pydantic models of what is read, and a function to the common form.

A member that no number needs is not read. A model refuses a member of a wrong type.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from bench.common.bounds import BoundedTable, Many
from bench.common.errors import ResultsError, one_line
from bench.rerun.elsewhere.trials import (
    AGENT,
    AskedCall,
    Blame,
    RecordedRun,
    RecordedTrial,
    RecordedTurn,
    require_unique,
    trial_of,
)

Arguments = BoundedTable[str, Any]
ItemId = Annotated[str, Field(coerce_numbers_to_str=True, max_length=500)]


class Read(BaseModel):
    """What is read of an object; its other members are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)


NO_JSON = "(no JSON object)"
"""The name under which arguments stand that a model wrote and that are no JSON object."""


def arguments_of(text: str) -> Mapping[str, Any]:
    """Return the arguments that a model wrote as a text."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {NO_JSON: text}


# tau-bench: a list of trials, each a chat in OpenAI's form


class TauFunction(Read):
    name: str
    arguments: str = "{}"


class TauCall(Read):
    id: ItemId
    function: TauFunction


class TauMessage(Read):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: Many[TauCall] | None = None
    tool_call_id: ItemId | None = None
    name: str | None = None


class TauAction(Read):
    name: str
    arguments: Arguments = Field(default_factory=dict, validation_alias=AliasChoices("kwargs"))


class TauTask(Read):
    actions: Many[TauAction] = ()


class TauComponents(Read):
    base_success: float


class TauChecked(Read):
    r_actions: float | None = None


class TauReward(Read):
    info: TauChecked = TauChecked()
    components: TauComponents | None = None


class TauInfo(Read):
    task: TauTask | None = None
    reward_info: TauReward | None = None


class TauTrial(Read):
    task_id: ItemId
    trial: ItemId = "0"
    reward: float
    info: TauInfo = TauInfo()
    traj: Many[TauMessage]


def tau_run(where: str, values: Sequence[TauTrial]) -> RecordedRun:
    """Return the trials of tau-bench. A reward that is composed of several is not read where the file has its parts."""
    return RecordedRun("tau-bench", require_unique(where, (_tau_trial(where, trial) for trial in values)))


def _tau_trial(where: str, trial: TauTrial) -> RecordedTrial:
    reward, task = trial.info.reward_info, trial.info.task
    success = reward.components.base_success if reward and reward.components else trial.reward
    state = None if reward is None or reward.info.r_actions is None else reward.info.r_actions > 0.5
    expected = tuple((action.name, action.arguments) for action in task.actions) if task else None
    ended = "" if reward else "no reward was computed"
    turns = [_tau_turn(message) for message in trial.traj]
    return trial_of(
        where, turns, trial.task_id, trial.trial, solved=success > 1 - 1e-6, state=state, expected=expected, ended=ended
    )


def _tau_turn(message: TauMessage) -> RecordedTurn:
    text = message.content or ""
    if message.role == "tool":
        return RecordedTurn(
            "tool", text, answers=message.tool_call_id or "", tool=message.name, failed=text.startswith("Error")
        )
    asked = tuple(
        AskedCall(call.id, call.function.name, arguments_of(call.function.arguments)) for call in message.tool_calls or ()
    )
    return RecordedTurn(message.role, text, asked)


# tau2-bench: an object with tasks and simulations


class Tau2Call(Read):
    id: ItemId
    name: str
    arguments: Arguments
    requestor: Literal["assistant", "user"] = "assistant"


class Tau2Usage(Read):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Tau2Message(Read):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: Many[Tau2Call] | None = None
    id: ItemId | None = None
    requestor: str | None = None
    error: bool | None = None
    usage: Tau2Usage | None = None
    tool_messages: Many[Tau2Message] | None = None


class Tau2Action(Read):
    name: str
    arguments: Arguments = Field(default_factory=dict)
    requestor: str = "assistant"


class Tau2Criteria(Read):
    actions: Many[Tau2Action] | None = None


class Tau2Task(Read):
    id: ItemId
    evaluation_criteria: Tau2Criteria | None = None


class Tau2State(Read):
    db_match: bool | None = None


class Tau2Reward(Read):
    reward: float
    db_check: Tau2State | None = None


class Tau2Simulation(Read):
    id: ItemId
    task_id: ItemId = ""
    trial: ItemId | None = None
    termination_reason: str | None = None
    reward_info: Tau2Reward | None = None
    messages: Many[Tau2Message]


class Tau2Agent(Read):
    llm: str | None = None


class Tau2Environment(Read):
    domain_name: str = ""


class Tau2Info(Read):
    agent_info: Tau2Agent = Tau2Agent()
    environment_info: Tau2Environment = Tau2Environment()


class Tau2Run(Read):
    info: Tau2Info = Tau2Info()
    tasks: Many[Tau2Task] = ()
    simulations: Many[Tau2Simulation]


def tau2_run(where: str, run: Tau2Run) -> RecordedRun:
    """Return the trials of tau2-bench. A simulation without a trial's number has its own id in the number's place."""
    tasks = {task.id: task.evaluation_criteria for task in run.tasks}
    ids = Counter(simulation.id for simulation in run.simulations)
    if twice := next((id_ for id_, count in ids.items() if count > 1), None):
        raise ResultsError(f"{where}: the simulation {one_line(twice, 60)} stands {ids[twice]} times")
    trials = []
    for each in run.simulations:
        criteria, reward = tasks.get(each.task_id), each.reward_info
        trials.append(
            trial_of(
                where,
                [turn for message in each.messages for turn in _tau2_turns(message)],
                each.task_id or each.id,
                each.trial if each.trial is not None else each.id,
                solved=None if reward is None else reward.reward > 1 - 1e-6,
                state=reward.db_check.db_match if reward and reward.db_check else None,
                expected=tuple((each.name, each.arguments) for each in criteria.actions or ()) if criteria else None,
                ended=each.termination_reason or "",
            )
        )
    info = run.info
    return RecordedRun(
        "tau2-bench", require_unique(where, trials), info.agent_info.llm or "", info.environment_info.domain_name
    )


def _tau2_turns(message: Tau2Message) -> Iterator[RecordedTurn]:
    if message.role != "tool":
        asked = tuple(AskedCall(call.id, call.name, call.arguments, call.requestor) for call in message.tool_calls or ())
        usage = (message.usage.prompt_tokens, message.usage.completion_tokens) if message.usage else None
        yield RecordedTurn(message.role, message.content or "", asked, provider=usage if message.role == AGENT else None)
    for answer in message.tool_messages or ((message,) if message.role == "tool" else ()):
        text = answer.content or ""
        failed = text.startswith("Error") if answer.error is None else answer.error
        yield RecordedTurn("tool", text, answers=answer.id or "", by=answer.requestor, failed=failed)


# SWE-agent and mini-SWE-agent: one trial, whose only tool is a shell


class SweStep(Read):
    action: str
    observation: str = ""
    response: str | None = None


class SweStats(Read):
    tokens_sent: int = 0
    tokens_received: int = 0


class SweInfo(Read):
    exit_status: str | None = None
    model_stats: SweStats = SweStats()


class SweRun(Read):
    trajectory: Many[SweStep]
    info: SweInfo = SweInfo()


def swe_run(where: str, run: SweRun) -> RecordedRun:
    """Return a trajectory of SWE-agent. It does not say which steps failed, nor whether the task was solved."""
    turns, stats = list[RecordedTurn](), run.info.model_stats
    for number, step in enumerate(run.trajectory):
        turns.append(RecordedTurn(AGENT, step.response or "", (AskedCall(str(number), "shell", {"command": step.action}),)))
        turns.append(RecordedTurn("tool", step.observation, answers=str(number)))
    if turns:
        turns[-1] = RecordedTurn(
            turns[-1].role, turns[-1].text, answers=turns[-1].answers, provider=(stats.tokens_sent, stats.tokens_received)
        )
    name = where.rpartition("/")[2].removesuffix(".traj")
    return RecordedRun("SWE-agent", (trial_of(where, turns, name, "0", ended=run.info.exit_status or ""),))


class MiniMessage(Read):
    role: str
    content: str | None = None
    tool_calls: Many[TauCall] | None = None
    tool_call_id: ItemId | None = None


class MiniRun(Read):
    trajectory_format: str
    instance_id: str = ""
    info: SweInfo = SweInfo()
    messages: Many[MiniMessage]


MINI_COMMAND = re.compile(r"```(?:bash|mswea_bash_command)[^\S\n]*\n([^`]*)```")
MINI_CODE = re.compile(r"\s*<returncode>(-?\d{1,6})</returncode>")


def mini_run(where: str, run: MiniRun) -> RecordedRun:
    """Return a trajectory of mini-SWE-agent: a block of shell in a reply is a call, and the next message its answer. The
    answer's return code says whether it failed."""
    turns, waiting = list[RecordedTurn](), False
    for number, message in enumerate(run.messages):
        text = message.content or ""
        code = MINI_CODE.match(text)
        if message.tool_call_id is not None or (waiting and message.role in ("user", "tool")):
            id_ = message.tool_call_id or str(number - 1)
            turns.append(RecordedTurn("tool", text, answers=id_, failed=bool(int(code.group(1))) if code else None))
            waiting = False
            continue
        commands = MINI_COMMAND.findall(text) if message.role == AGENT and not message.tool_calls else []
        asked = [AskedCall(str(number), "shell", {"command": commands[0].strip()})] if len(commands) == 1 else []
        asked += [
            AskedCall(call.id, call.function.name, arguments_of(call.function.arguments)) for call in message.tool_calls or ()
        ]
        waiting = len(commands) == 1
        turns.append(RecordedTurn(message.role, text, tuple(asked)))
    name = run.instance_id or where.rpartition("/")[2].removesuffix(".traj.json")
    return RecordedRun("mini-SWE-agent", (trial_of(where, turns, name, "0", ended=run.info.exit_status or ""),))


# mcp-chaos: a line for each event of a session; contents are not recorded


class ChaosDetail(Read):
    id: ItemId | None = None
    ok: bool | None = None
    type: str | None = None
    args_hash: str = ""


class ChaosLine(Read):
    kind: str
    tool: str | None = None
    detail: ChaosDetail = ChaosDetail()


SLOW = "slow"
"""The fault of mcp-chaos that only delays an answer: its call is answered by a line of its own."""


def chaos_run(where: str, lines: Sequence[ChaosLine]) -> RecordedRun:
    """Return the sessions of mcp-chaos. A fault is the answer of its call, but for `slow`, which delays it. A call that nothing
    answered is counted as left out."""
    sessions, left_out = list[list[RecordedTurn]](), Counter[str]()
    for line in lines:
        if line.kind == "session_start" or not sessions:
            sessions.append([])
        turns, id_ = sessions[-1], line.detail.id or ""
        if line.kind == "tool_call":
            turns.append(RecordedTurn(AGENT, "", (AskedCall(id_, line.tool or "", {"hash": line.detail.args_hash}),)))
        elif line.kind == "tool_result" or (line.kind == "fault" and line.detail.type != SLOW):
            failed = line.detail.ok is not True
            turns.append(RecordedTurn("tool", line.detail.type or "", answers=id_, tool=line.tool, failed=failed))
        elif line.kind != "session_start":
            left_out[f"event of the kind {one_line(line.kind, 40)}"] += 1
    name = where.rpartition("/")[2].removesuffix(".jsonl")
    trials = [trial_of(where, _without_open(turns, left_out), name, str(n)) for n, turns in enumerate(sessions)]
    return RecordedRun("mcp-chaos", require_unique(where, trials), left_out=left_out)


def _without_open(turns: Sequence[RecordedTurn], left_out: Counter[str]) -> Sequence[RecordedTurn]:
    """Return the turns in order: an answer stands behind its call, as calls of one client may overlap."""
    answers: dict[str, list[RecordedTurn]] = {}
    for turn in turns:
        if turn.answers is not None:
            answers.setdefault(turn.answers, []).append(turn)
    ordered = list[RecordedTurn]()
    for turn in turns:
        if turn.asked:
            here = answers.get(turn.asked[0].id) or []
            if not here:
                left_out["call without an answer"] += 1
            ordered += [turn, here.pop(0)] if here else []
    ordered += [turn for left in answers.values() for turn in left]  # an answer without its call is refused
    return ordered


# Labels of people: the step that they blame


class BlamedMessage(Read):
    content: str = ""
    role: str = ""
    name: str | None = None


class WhoAndWhen(Read):
    history: Many[BlamedMessage]
    question_ID: ItemId  # noqa: N815
    mistake_agent: str
    mistake_step: ItemId


def who_and_when_run(where: str, run: WhoAndWhen) -> RecordedRun:
    """Return a failed run of Who&When, with the blamed step counted from 0."""
    if not run.mistake_step.isascii() or not run.mistake_step.isdigit() or len(run.mistake_step) > 6:
        raise ResultsError(f"{where}: the blamed step is no number: {one_line(run.mistake_step, 40)}")
    step = int(run.mistake_step)
    if step >= len(run.history):
        raise ResultsError(f"{where}: the blamed step {step} is none of the {len(run.history)} messages")
    turns = [RecordedTurn(message.name or message.role, message.content) for message in run.history]
    blamed = (Blame(step, run.mistake_agent),)
    return RecordedRun("Who&When", (trial_of(where, turns, run.question_ID, "0", solved=False, blames=blamed),))


class RxFailure(Read):
    failure_id: int
    step_number: int = Field(ge=1, le=1_000_000)
    failure_category: str = ""
    failed_agent: str = ""


class RxCause(Read):
    failure_id: int


class RxLabels(Read):
    trajectory_id: ItemId
    failures: Many[RxFailure]
    root_cause: RxCause


def agentrx_run(where: str, values: Sequence[RxLabels]) -> RecordedRun:
    """Return AgentRx's labels, without turns: the trajectories stand in other files. The root cause is the first blame, and
    steps count from 0."""
    trials = []
    for each in values:
        roots = [failure for failure in each.failures if failure.failure_id == each.root_cause.failure_id]
        if len(roots) != 1:
            raise ResultsError(f"{where}: {one_line(each.trajectory_id, 60)} has {len(roots)} failures of its root cause's id")
        ordered = [*roots, *(failure for failure in each.failures if failure is not roots[0])]
        blames = tuple(Blame(each.step_number - 1, each.failed_agent, each.failure_category) for each in ordered)
        trials.append(RecordedTrial(each.trajectory_id, "0", (), (), solved=False, blames=blames))
    return RecordedRun("AgentRx labels", require_unique(where, trials))


# Inspect's .eval: a zip archive with a header and a file for each sample


class InspectText(Read):
    type: str = ""
    text: str = ""


class InspectCall(Read):
    id: ItemId
    function: str
    arguments: Arguments = Field(default_factory=dict)


class InspectUsage(Read):
    input_tokens: int = 0
    output_tokens: int = 0


class InspectMessage(Read):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | Many[InspectText] = ""
    tool_calls: Many[InspectCall] | None = None
    tool_call_id: ItemId | None = None
    function: str | None = None
    error: Any = None


class InspectScore(Read):
    value: Any = None


class InspectSample(Read):
    id: ItemId
    epoch: int = 1
    messages: Many[InspectMessage]
    scores: BoundedTable[str, InspectScore] | None = None
    model_usage: BoundedTable[str, InspectUsage] = Field(default_factory=dict)
    error: Any = None


class InspectEval(Read):
    model: str = ""
    task: str = ""


class InspectHeader(Read):
    eval: InspectEval


RIGHT, WRONG = ("C", 1, 1.0, True), ("I", 0, 0.0, False)
"""What a score of Inspect says if a sample is solved or not. Any other value is no outcome."""


def inspect_run(where: str, header: InspectHeader, samples: Sequence[InspectSample]) -> RecordedRun:
    """Return the samples of an Inspect log. A sample is solved if all its scores say so, and not if one of them denies it."""
    trials = []
    for sample in samples:
        values = [score.value for score in (sample.scores or {}).values()]
        known = values and all(value in (*RIGHT, *WRONG) for value in values if not isinstance(value, dict | list))
        known = known and not any(isinstance(value, dict | list) for value in values)
        turns = [_inspect_turn(message) for message in sample.messages]
        usage = [(each.input_tokens, each.output_tokens) for each in sample.model_usage.values()]
        if usage and turns:
            turns.append(RecordedTurn("system", provider=(sum(i for i, _ in usage), sum(o for _, o in usage))))
        solved = all(value in RIGHT for value in values) if known else None
        ended = "error" if sample.error else ""
        trials.append(trial_of(where, turns, sample.id, str(sample.epoch), solved=solved, ended=ended))
    return RecordedRun("Inspect", require_unique(where, trials), header.eval.model, header.eval.task)


def _inspect_turn(message: InspectMessage) -> RecordedTurn:
    content = message.content
    text = content if isinstance(content, str) else "\n".join(part.text for part in content if part.text)
    if message.role == "tool":
        failed = message.error is not None
        return RecordedTurn("tool", text, answers=message.tool_call_id or "", tool=message.function, failed=failed)
    asked = tuple(AskedCall(call.id, call.function, call.arguments) for call in message.tool_calls or ())
    return RecordedTurn(message.role, text, asked)
