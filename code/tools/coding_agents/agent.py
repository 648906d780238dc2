"""mini-swe-agent repairs a task, with a scripted model at an endpoint on loopback, or with a real model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from os import times
from typing import Any

import yaml
from litellm.exceptions import BadRequestError  # type: ignore[import-not-found, unused-ignore]
from minisweagent.agents.default import DefaultAgent  # type: ignore[import-not-found, unused-ignore]
from minisweagent.config import builtin_config_dir  # type: ignore[import-not-found, unused-ignore]
from minisweagent.environments.local import LocalEnvironment  # type: ignore[import-not-found, unused-ignore]
from minisweagent.models.litellm_textbased_model import (  # type: ignore[import-not-found, unused-ignore]
    LitellmTextbasedModel,
)

from coding_agents.scripted import count_tests, endpoint, scripted
from coding_agents.tasks import Project, Task, digest, stamp

ISSUE = """A test of this repository fails: {test}. Find the bug in the code and repair it. No other test may fail afterwards,
and no test may be edited. Run the tests by this command, and believe it: `{command}`. Submit when it passes."""


class _Shell(LocalEnvironment):  # type: ignore[misc, unused-ignore]
    """The agent's shell, which notes what each run of its tests took, and of which tree the last one passed."""

    def __init__(self, task: Task, command: str, project: Project, variables: Mapping[str, str]):
        super().__init__(cwd=str(task.root), env={**project.variables, **variables}, timeout=900)
        self.task, self.command, self.passed = task, command, ""
        self.checks = self.tests = 0
        self.seconds = self.processor = 0.0

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        before = times()
        result: dict[str, Any] = super().execute(action, cwd, timeout=timeout)
        after = times()
        stamp(self.task.root)
        if self.command in action.get("command", ""):
            self.checks += 1
            self.tests += count_tests(result["output"])
            self.seconds += after.elapsed - before.elapsed
            self.processor += sum(after[2:4]) - sum(before[2:4])
            self.passed = digest(self.task.root) if result["returncode"] == 0 else ""
        return result


def repair_by_agent(task: Task, arm: str, project: Project, url: str, model: str, steps: int) -> dict[str, str]:
    """Let the agent repair a task.

    Args:
        task: The task. Its repository is at the bug.
        arm: What its command runs: "all", "selection", "failing", or "both" (the failing test, and then all).
        project: The environment of the repository.
        url: An endpoint of chat completions; if it is empty, the model is scripted.
        model: The model's name there.
        steps: The most calls.

    Returns:
        A row: what it took, whether the agent handed in a tree of which its command had passed, and what a full run says.
    """
    command = task.command(arm)
    if not url:
        with endpoint(scripted(task, command)) as url:
            return repair_by_agent(task, arm, project, url, model, steps)
    config = yaml.safe_load((builtin_config_dir / "mini_textbased.yaml").read_text("utf-8"))
    asked = {"api_base": url, "api_key": "none", "temperature": 0.0, "max_tokens": 400, **config["model"]["model_kwargs"]}
    shell = _Shell(task, command, project, config["environment"]["env"])
    agent = DefaultAgent(
        LitellmTextbasedModel(
            model_name=f"openai/{model}", **config["model"] | {"model_kwargs": asked, "cost_tracking": "ignore_errors"}
        ),
        shell,
        **{key: config["agent"][key] for key in ("system_template", "instance_template")},
        step_limit=steps,
        cost_limit=0.0,
    )
    try:
        submitted = agent.run(ISSUE.format(test=task.failing, command=command)).get("exit_status") == "Submitted"
    except BadRequestError:  # the conversation has become too long for the model
        submitted = False
    usages = [message["extra"]["response"]["usage"] for message in agent.messages if "response" in message.get("extra", {})]
    believed = submitted and shell.passed == digest(task.root)
    holds = project.passes(task.root, task.tests)
    project.run(task.root, f"git checkout -q HEAD -- {' '.join(map(shlex.quote, task.tests.split()))}")
    stamp(task.root)
    row = {
        "task": task.name,
        "slips": int(task.slips),
        "arm": arm,
        "model": model,
        "calls": agent.n_calls,
        "read": sum(usage["prompt_tokens"] for usage in usages),
        "written": sum(usage["completion_tokens"] for usage in usages),
        "checks": shell.checks,
        "tests": shell.tests,
        "seconds": f"{shell.seconds:.1f}",
        "processor": f"{shell.processor:.2f}",
        "believed": int(believed),
        "wrong": int(believed and not holds),
        "right": int(project.passes(task.root, task.tests)),
    }
    return {key: str(value) for key, value in row.items()}
