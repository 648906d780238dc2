"""The architecture `learned_policy`: as `runtime_structured`, but a policy groups the subtasks into calls. The policy was
learned from rejections in earlier trials.

The outputs of one call are verified, committed and rejected together. With one subtask in each call, the architecture is
`runtime_structured`; with all subtasks in one call, it is `monolithic`, but gives the reason of a rejection.
"""

from __future__ import annotations

from bench.record.policy import LearnedPolicy
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Task


async def learned_policy(task: Task, workbench: Workbench, policy: LearnedPolicy) -> None:
    """Ask for subtasks together in the calls that the policy learned, and verify each output before it is committed."""
    calls = [
        [task.subtask(name) for name in call]
        for call in policy.calls_for(task.name, [subtask.name for subtask in task.subtasks])
    ]
    repairs: dict[str, Rejected] = {}
    while open_call := next((call for call in calls if not all(map(workbench.done, call))), None):
        subtasks = [subtask for subtask in open_call if not workbench.done(subtask) and not workbench.skip(subtask)]
        if not subtasks:
            continue
        reasons = [repairs.pop(subtask.name) for subtask in subtasks if subtask.name in repairs]
        proposal = await workbench.propose(*subtasks, repair=reasons[0] if reasons else None)
        if rejected := workbench.verify(proposal, sufficiency=True):
            repairs[rejected.subtask] = rejected
            continue
        workbench.commit(proposal)
        for finding in filter(None, map(workbench.finding, subtasks)):
            workbench.invalidate(finding)
            repairs[finding.subtask] = finding
