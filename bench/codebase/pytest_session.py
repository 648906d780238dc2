"""Opens the state for a pytest session, decides what runs and whether it is recorded, and notes how the tests came out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bench.codebase.costs import Costs
from bench.codebase.present import AT_START
from bench.codebase.record import CHANCE, CLOCK, UNRECORDED, Execution
from bench.codebase.recorder import uncollected
from bench.codebase.state import ExecutionState
from bench.codebase.validity import ValidityDecision
from bench.common.escaping import escape_line

DISPLAY = re.compile(
    r"--bench-(impact|record|json).*|usual|reversed|-[qvxsl]+|-[rkm].+"
    r"|--(quiet|verbose|exitfirst|showlocals|no-header|no-summary|full-trace|lf|last-failed|ff|failed-first|nf|new-first)"
    r"|--(tb|color|durations|durations-min|maxfail|show-capture|deselect|ignore|ignore-glob|junit-?xml|verbosity|capture)=.*"
)
"""Options that change what is shown, or which tests run, and no result."""
TAKES_A_WORD = re.compile(r"-[rkm]|--[a-z-]+")
"""Options that may have their value in the next word."""
MOST_TEXT = 4000
"""The most letters that are kept of what pytest writes of a failure; the end tells most."""
IGNORABLE = {"clock": CLOCK, "chance": CHANCE}
"""What the ini option `bench_impact_ignores` can name, with the reason that is then no reason to run a test again."""
WORST = ("passed", "xpassed", "xfailed", "skipped", "failed", "error")
"""Outcomes of a test's phases, the least serious first. The test has the most serious outcome of its phases."""


class ImpactSession:
    """A session with the option `--bench-impact` or `--bench-record`, and a plug-in of pytest.

    Args:
        config: pytest's configuration.
        mode: "select" runs the tests that are invalid, "usual" all tests, and "reversed" all tests in reverse order.
        arguments: The arguments of the command line.

    Attributes:
        decision: What is kept, and what must run.
        records: Whether the session records what runs. If that would take longer than all tests, all run unrecorded.
        kept: The names of the tests whose results are kept.
    """

    def __init__(self, config: pytest.Config, mode: str, arguments: list[str]):
        if getattr(config.known_args_namespace, "numprocesses", None) or hasattr(config, "workerinput"):
            raise pytest.UsageError("--bench-impact records one process; give -n 0")
        self.mode, self.rootpath = mode, config.rootpath
        self.ignored: list[str] = config.getini("bench_impact_ignores")
        if unknown := sorted({*self.ignored} - IGNORABLE.keys()):
            raise pytest.UsageError(f"bench_impact_ignores: '{unknown[0]}' is none of {', '.join(IGNORABLE)}")
        try:
            self.state = ExecutionState.open(config.rootpath)
            with uncollected():
                self.step = self.state.step("run")
        except Exception as error:
            raise pytest.UsageError(str(error)) from None
        self.state.drop_outdated_bytecode()
        folder, files = config.invocation_params.dir, config.known_args_namespace.file_or_dir
        requested = {word for word in files if (folder / word.partition("::")[0]).exists()}
        self.layout = self._layout_of(config, [word for word in arguments if word not in requested])
        self._requested = sorted({os.path.relpath(folder / word, self.rootpath) for word in requested} - {"."})
        self.decision = self.state.decide(self.layout) if mode == "select" else ValidityDecision({}, ())
        listed = [word for word in config.getini("testpaths") if folder == self.rootpath and not Path(word).is_absolute()]
        named = [folder / word.partition("::")[0] for word in requested] or [
            each for word in listed for each in folder.glob(word)
        ]
        collected = [path.resolve() for path in named or [folder]]
        if self.decision.kept and self.state.has_new_effects(config.getini("python_files"), collected):
            self.decision = ValidityDecision({}, (*self.decision.kept, *self.decision.invalid), self.decision.stale)
        self.kept: list[str] = []
        self.outcomes: dict[str, tuple[str, str]] = {}
        self.messages: dict[str, str] = {}
        self._seconds: dict[str, float] = {}
        self._bad: list[str] = []
        self._exit_code = 0
        self._due = [name for name in self.decision.invalid if self._is_requested(name)]
        self._costs = Costs([each for each in self.state.store.executions(self.layout) if self._is_requested(each.name)])
        self.records = mode != "select" or not self._costs.is_cheaper_unrecorded(self._due)

    def _layout_of(self, config: pytest.Config, arguments: list[str]) -> str:
        """Return the arguments and variables that can change a result: all but the requested files and display options."""
        folder = config.invocation_params.dir
        words, given = list[str](), iter(arguments)
        for word in given:
            if TAKES_A_WORD.fullmatch(word) and DISPLAY.fullmatch(f"{word}=") and not DISPLAY.fullmatch(word):
                next(given, "")
            elif word != "bench.codebase.plugin" and not DISPLAY.fullmatch(word):
                words.append(word)
        words += [f"in {os.path.relpath(folder, self.state.root)}"] if folder.resolve() != self.state.root else []
        words += [f"{name}={os.environ[name]}" for name in AT_START if name in os.environ]
        return " ".join(words)

    def _is_requested(self, name: str) -> bool:
        return not self._requested or any(f"{name}::".startswith((f"{each}::", f"{each}/")) for each in self._requested)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, pytest.TestReport]:
        report: pytest.TestReport = yield
        outcome = str(report.outcome)
        if hasattr(report, "wasxfail"):
            outcome = "xfailed" if report.skipped else "xpassed"
        elif report.failed and report.when != "call":
            outcome = "error"
        detail = call.excinfo.typename if call.excinfo is not None else ""
        before = self.outcomes.get(item.nodeid, ("passed", ""))
        if WORST.index(outcome) > WORST.index(before[0]) or item.nodeid not in self.outcomes:
            self.outcomes[item.nodeid] = (outcome, detail)
        if report.failed:
            self.messages[item.nodeid] = report.longreprtext[-MOST_TEXT:]
        self._seconds[item.nodeid] = self._seconds.get(item.nodeid, 0.0) + call.duration
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._bad = [name for name in self.kept if self.decision.kept[name].outcome in ("failed", "error")]
        if self._bad and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif self.kept and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        if not self.records:
            self.state.save(self.step, self.layout, [self._unrecorded(name) for name in self.outcomes])
        self._exit_code = int(session.exitstatus)

    def _report(self) -> dict[str, object]:
        """Return what a program wants to know of the session."""
        kept, ran = self.decision.kept, {name: outcome for name, (outcome, _) in self.outcomes.items()}
        failed: list[tuple[str, str, int | None, str]] = [(name, ran[name], None, text) for name, text in self.messages.items()]
        failed += [(name, kept[name].outcome, kept[name].step, self.state.store.message(kept[name].id)) for name in self._bad]
        return {
            "step": self.step,
            "exit": self._exit_code,
            "ran": ran,
            "kept": {name: kept[name].outcome for name in self.kept},
            "failures": [dict(zip(("name", "outcome", "kept_from", "message"), each, strict=True)) for each in failed],
        }

    def _unrecorded(self, name: str) -> Execution:
        outcome, detail = self.outcomes[name]
        return Execution("test", name, outcome, detail, self._seconds[name], (), UNRECORDED, self.messages.get(name, ""))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name in self._bad:
            terminalreporter.write_line(escape_line(f"FAILED {name} (kept from step {self.decision.kept[name].step})"))
            for line in self.state.store.message(self.decision.kept[name].id).splitlines():
                terminalreporter.write_line(f"    {escape_line(line)}")
        if file := terminalreporter.config.getoption("bench_json"):
            Path(file).write_text(json.dumps(self._report()), encoding="utf-8")
        if self.records:
            kept = f"{len(self.kept)} results kept, {len(self._bad)} of them failures"
            terminalreporter.write_line(f"bench: step {self.step}: {len(self.outcomes)} tests run, {kept}")
        else:
            took = f"all {len(self.outcomes)} tests ran unrecorded, in {sum(self._seconds.values()):.1f} s"
            why = f"to record the {len(self._due)} that changes reach takes about {self._costs.recorded(self._due):.1f} s"
            terminalreporter.write_line(f"bench: step {self.step}: {took}; {why}")
