"""The output of each judgment, the right output in a state, and checks of an output that need no truth."""

from __future__ import annotations

import json
from collections.abc import Mapping
from string import Template
from typing import Annotated, Any, Literal

from pydantic import Field

from bench.scenario import Check, Code, Context, Json, Output

from .forms import Label, Rewrite, Risk
from .offered import next_library, telling_test, written_test
from .policy import is_sound, risk_of
from .story import PARTS, part_of
from .written import LONGEST_LINE, LONGEST_TEST, Unfit, asserts_of, line_of


class Adapt(Output):
    rewrite: Rewrite


class WriteLine(Output):
    rewrite: Annotated[str, Code("python")] = Field(max_length=LONGEST_LINE)


class Assess(Output):
    risk: Risk


class Settle(Output):
    decision: Literal["promote", "roll_back"]


class Blame(Output):
    label: Label
    commit: Literal["1", "2", "3", "none"]


class Choose(Output):
    test: Rewrite


class WriteTest(Output):
    test: Annotated[str, Code("python")] = Field(max_length=LONGEST_TEST)


class Describe(Output):
    modules: list[str]
    risk: Risk


def right(subtask: str, documents: Mapping[str, str]) -> Json:
    """Return the right output of a judgment. `documents` has the texts that the judgment reads, by name."""
    shown = {name: json.loads(text) for name, text in documents.items() if not name.endswith(".md")}
    match subtask:
        case "adapt":
            return {"rewrite": _rewrite(shown["module"])}
        case "risk":
            return {"risk": risk_of(shown["checks"])}
        case "canary":
            return {"decision": "promote" if is_sound(shown["metrics"]) else "roll_back"}
        case "blame":
            failing = [str(commit["commit"]) for commit in shown["log"]["commits"] if last_failures(commit)]
            return {"label": "regression", "commit": failing[0]} if failing else {"label": "flaky", "commit": "none"}
        case "choose":
            return {"test": _test(shown["mistake"])}
        case "write_test":
            mistake = shown["mistake"]
            versions = (mistake["present"], mistake["mended"])
            return {"test": written_test(*versions, mistake["library"], next_library(), mistake["orders"])}
        case "describe":
            return {"modules": changed_in(shown["diff"]), "risk": risk_of(shown["checks"])}
    raise KeyError(subtask)


def last_failures(commit: Mapping[str, Any]) -> list[str]:
    """Return the failures in the last test run of a commit; empty if its tests never ran."""
    return list(commit["tests"][-1]["failed"]) if commit["tests"] else []


def changed_in(diff: Mapping[str, Any]) -> list[str]:
    """Return the names of the modules that a diff changes."""
    return sorted(line[4:].removesuffix(".py") for line in diff["lines"] if line.startswith("+++ ") and line.endswith(".py"))


def _test(mistake: Mapping[str, Any]) -> str:
    tests = {each["test"]: (each["order"], each["expects"]) for each in mistake["tests"]}
    return telling_test(tests, mistake["present"], mistake["mended"], mistake["library"], next_library(), mistake["orders"])


def _rewrite(module: Mapping[str, Any]) -> str:
    """Return the letter of the right line, or the line itself if no lines are offered."""
    lines = [
        [Template(part_of(part)[which]).substitute(library=module["library"]) for which in ("old", "right")] for part in PARTS
    ]
    if not module["rewrites"]:
        return next(right for old, right in lines if old == module["line"])
    return next(str(each["rewrite"]) for each in module["rewrites"] if each["line"] in [right for _, right in lines])


def line_has_its_form(output: WriteLine, context: Context) -> str | None:
    module = json.loads(context.documents["module"])
    try:
        written = line_of(output.rewrite)
    except Unfit as error:
        return str(error)
    return "this leaves the line as it is, and the library changes it" if written == line_of(module["line"]) else None


def test_has_its_form(output: WriteTest, _: Context) -> str | None:
    try:
        asserts_of(output.test)
    except Unfit as error:
        return str(error)
    return None


def line_is_another(output: Adapt, context: Context) -> str | None:
    module = json.loads(context.documents["module"])
    line = next(each["line"] for each in module["rewrites"] if each["rewrite"] == output.rewrite)
    return f"{output.rewrite} leaves the line as it is, and the library changes it" if line == module["line"] else None


def risk_follows_from_the_checks(output: Assess, context: Context) -> str | None:
    risk = risk_of(json.loads(context.documents["checks"]))
    return None if output.risk == risk else f"by the policy the risk is {risk}"


def decision_follows_from_the_metrics(output: Settle, context: Context) -> str | None:
    metrics = json.loads(context.documents["metrics"])
    decision = "promote" if is_sound(metrics) else "roll_back"
    why = f"{metrics['failed']} of {metrics['requests']} requests failed: {decision}"
    return None if output.decision == decision else why


def label_fits_the_commit(output: Blame, context: Context) -> str | None:
    if (output.label == "flaky") != (output.commit == "none"):
        return "a regression names the commit that broke the test, and a flaky test names none"
    log = json.loads(context.documents["log"])
    if output.commit != "none" and not last_failures(log["commits"][int(output.commit) - 1]):
        return f"the tests of commit {output.commit} passed in their last run"
    return None


def description_follows_from_diff_and_checks(output: Describe, context: Context) -> str | None:
    changed, risk = changed_in(json.loads(context.documents["diff"])), risk_of(json.loads(context.documents["checks"]))
    if sorted(output.modules) != changed:
        return f"the diff changes {', '.join(changed) or 'no module'}"
    return None if output.risk == risk else f"by the policy the risk is {risk}"


RULES: Mapping[str, tuple[Check, ...]] = {
    "adapt": (line_is_another,),
    "risk": (risk_follows_from_the_checks,),
    "canary": (decision_follows_from_the_metrics,),
    "blame": (label_fits_the_commit,),
    "choose": (),
    "write_test": (test_has_its_form,),
    "describe": (description_follows_from_diff_and_checks,),
}
