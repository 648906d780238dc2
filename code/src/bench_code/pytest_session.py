"""Opens the state for a pytest session, decides what runs and whether it is recorded, and notes how the tests came out."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from bench.common.escaping import escape_line
from bench_code.costs import Costs
from bench_code.present import AT_START
from bench_code.pytest_outcomes import MOST_TEXT, ItemOutcome, Outcomes, PlainRuns
from bench_code.record import CHANCE, CLOCK, DIFFERS, UNRECORDED, Execution
from bench_code.recorder import uncollected
from bench_code.state import ExecutionState
from bench_code.validity import ValidityDecision

DISPLAY = re.compile(
    r"--bench-(impact|record|json).*|usual|reversed|-[qvxsl]+|-[rkm].+"
    r"|--(quiet|verbose|exitfirst|showlocals|no-header|no-summary|full-trace|lf|last-failed|ff|failed-first|nf|new-first)"
    r"|--(tb|color|durations|durations-min|maxfail|show-capture|deselect|ignore|ignore-glob|junit-?xml|verbosity|capture)=.*"
)
"""Options that change what is shown, or which tests run, and no result."""
TAKES_A_WORD = re.compile(r"-[rkm]|--[a-z-]+")
"""Options that may have their value in the next word."""
IGNORABLE = {"clock": CLOCK, "chance": CHANCE}
"""What the ini option `bench_impact_ignores` can name, with the reason that is then no reason to run a test again."""
BAD = ("failed", "error")


class ImpactSession(Outcomes):
    """A session with the option `--bench-impact` or `--bench-record`, and a plug-in of pytest.

    Args:
        config: pytest's configuration.
        mode: "select" runs the tests that are invalid, "usual" all tests, and "reversed" all tests in reverse order.
        arguments: The arguments of the command line.

    Attributes:
        decision: What is kept, and what must run.
        chooses: Whether options choose among the tests of the requested files.
        records: Whether the session records what runs. If that would take longer than all tests, all run unrecorded.
        kept: The names of the tests whose results are kept.
        differing: The names of the tests whose results differ while they are recorded.
        apart: Those of them that run after the others, in a process that records nothing.
    """

    def __init__(self, config: pytest.Config, mode: str, arguments: list[str]):
        super().__init__()
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
        options = config.known_args_namespace
        folder, files = config.invocation_params.dir, options.file_or_dir
        self.chooses = any((options.keyword, options.markexpr, options.deselect))
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
        self.apart: list[str] = []
        self._bad: list[str] = []
        self._failed_apart: list[str] = []
        self._changed: dict[str, ItemOutcome] = {}
        self._uncollected: dict[str, str] = {}
        self._exit_code, self._reason = 0, ""
        self._due = [name for name in self.decision.invalid if self.is_requested(name)]
        before = self.state.store.executions(self.layout)
        last = {each.name: each.volatile for each in before if each.volatile != UNRECORDED}
        self.differing = {name for name, volatile in last.items() if volatile == DIFFERS}
        self._plain = PlainRuns(config, requested)
        self._costs = Costs([each for each in before if self.is_requested(each.name)])
        self.records = mode != "select" or not self._costs.is_cheaper_unrecorded(self._due)

    def _layout_of(self, config: pytest.Config, arguments: list[str]) -> str:
        """Return the arguments and variables that can change a result: all but the requested files and display options."""
        folder = config.invocation_params.dir
        words, given = list[str](), iter(arguments)
        for word in given:
            if TAKES_A_WORD.fullmatch(word) and DISPLAY.fullmatch(f"{word}=") and not DISPLAY.fullmatch(word):
                next(given, "")
            elif word != "bench_code.plugin" and not DISPLAY.fullmatch(word):
                words.append(word)
        words += [f"in {os.path.relpath(folder, self.state.root)}"] if folder.resolve() != self.state.root else []
        words += [f"{name}={os.environ[name]}" for name in AT_START if name in os.environ]
        return " ".join(words)

    def is_requested(self, name: str) -> bool:
        """Return whether a test lies in the requested files and folders."""
        return not self._requested or any(f"{name}::".startswith((f"{each}::", f"{each}/")) for each in self._requested)

    def compare(self) -> None:
        """Run the tests that have another result while they are recorded, and find out which of the failed tests have.

        A test that failed runs alone first. If it then has another result, the reason may be what earlier tests left behind. So
        all tests of the session run in their order.
        """
        plain = self._plain.outcomes(self.apart)
        failed = [name for name, each in self.outcomes.items() if each.outcome in BAD]
        if self._other_results(self._plain.outcomes(failed, alone=True)):
            self._changed = self._other_results(self._plain.outcomes(list(self.outcomes)))
        self.differing |= self._changed.keys()
        self.outcomes |= self._changed | plain

    def _other_results(self, plain: dict[str, ItemOutcome]) -> dict[str, ItemOutcome]:
        """Return the results of failed tests that differ where nothing was recorded."""
        both = ((name, each, self.outcomes[name]) for name, each in plain.items() if self.outcomes[name].outcome in BAD)
        return {name: each for name, each, known in both if (each.outcome, each.detail) != (known.outcome, known.detail)}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Let an interrupt end the session from now on, also under nohup, so that the results of the ended tests are stored."""
        if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        try:
            return (yield)
        except pytest.UsageError as error:
            self._reason = "; ".join(map(str, error.args))
            raise

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._uncollected[report.nodeid] = report.longreprtext[-MOST_TEXT:]

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._reason = str(excinfo.value) or "interrupted"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        better = {name for name, each in self._changed.items() if each.outcome not in BAD}
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and better:  # pytest has counted them as failures
            for key in BAD:
                reports = reporter.stats.pop(key, [])
                reporter.stats["passed"] = reporter.stats.get("passed", []) + [e for e in reports if e.nodeid in better]
                if others := [each for each in reports if each.nodeid not in better]:
                    reporter.stats[key] = others
            if not set(BAD) & reporter.stats.keys():
                session.exitstatus = pytest.ExitCode.OK
        self._bad = [name for name in self.kept if self.decision.kept[name].outcome in BAD]
        ran_apart = [name for name in self.apart if name in self.outcomes]
        self._failed_apart = [name for name in ran_apart if self.outcomes[name].outcome in BAD]
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and (self.kept or ran_apart):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED if self._bad or self._failed_apart else pytest.ExitCode.OK
        if not self.records:
            self.state.save(self.step, self.layout, [self._unrecorded(name) for name in self.outcomes])
        self._exit_code = int(session.exitstatus)

    def _report(self) -> dict[str, object]:
        """Return what a program wants to know of the session."""
        kept = self.decision.kept
        failed: list[tuple[str, str, int | None, str]] = [
            *((name, "error", None, message) for name, message in self._uncollected.items()),
            *((name, each.outcome, None, each.message) for name, each in self.outcomes.items() if each.outcome in BAD),
        ]
        failed += [(name, kept[name].outcome, kept[name].step, self.state.store.message(kept[name].id)) for name in self._bad]
        return {
            "step": self.step,
            "exit": self._exit_code,
            "reason": self._reason or ("no test was chosen" if self._exit_code == pytest.ExitCode.NO_TESTS_COLLECTED else ""),
            "ran": {name: each.outcome for name, each in self.outcomes.items()},
            "kept": {name: kept[name].outcome for name in self.kept},
            "unrecorded": sorted(self.differing & self.outcomes.keys()),
            "failures": [dict(zip(("name", "outcome", "kept_from", "message"), each, strict=True)) for each in failed],
        }

    def _unrecorded(self, name: str) -> Execution:
        """Return the execution of a test of a session that recorded nothing. A kept result that it refutes is kept no more."""
        each, kept = self.outcomes[name], self.decision.kept.get(name)
        differs = name in self.differing or (kept is not None and (kept.outcome, kept.detail) != (each.outcome, each.detail))
        return each.execution(name, DIFFERS if differs else UNRECORDED)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write, kept = terminalreporter.write_line, self.decision.kept
        for name in self._bad:
            self._write_failure(write, f"{name} (kept from step {kept[name].step})", self.state.store.message(kept[name].id))
        for name in self._failed_apart:
            self._write_failure(write, f"{name} (run unrecorded)", self.outcomes[name].message)
        if file := terminalreporter.config.getoption("bench_json"):
            Path(file).write_text(json.dumps(self._report()), encoding="utf-8")
        if self.records:
            for name in self._changed:
                write(escape_line(f"bench: {name} {DIFFERS}"))
            apart = len(self.differing & self.outcomes.keys())
            unrecorded = f"{apart} of them unrecorded, since they have other results while they are recorded; " if apart else ""
            kept_results = f"{len(self.kept)} results kept{f', {len(self._bad)} of these failures' if self._bad else ''}"
            write(f"bench: step {self.step}: {len(self.outcomes)} tests run, {unrecorded}{kept_results}")
        else:
            took = f"all {len(self.outcomes)} tests ran unrecorded, in {sum(e.seconds for e in self.outcomes.values()):.1f} s"
            why = f"to record the {len(self._due)} that changes reach takes about {self._costs.recorded(self._due):.1f} s"
            write(f"bench: step {self.step}: {took}; {why}")

    def _write_failure(self, write: Callable[[str], None], title: str, message: str) -> None:
        write(escape_line(f"FAILED {title}"))
        for line in message.splitlines():
            write(f"    {escape_line(line)}")
