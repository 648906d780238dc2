"""At its end a run says whether its own process, and not the endpoint, bounded the calls, and what was not understood."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from records import smooth, trial
from rich.console import Console
from trials import matrix_of, scripted

from bench.cli.commands.progress import RunProgress
from bench.common.errors import UnknownFinish
from bench.record.events import Called
from bench.run.experiment.so_far import SoFar
from bench.run.experiment.trial import TrialResult


@pytest.mark.parametrize(("client", "bound"), [(0.0, False), (0.2, False), (0.3, True)])
def test_a_run_is_client_bound_where_its_process_adds_more_than_a_quarter_to_its_calls(client: float, bound: bool) -> None:
    so_far = SoFar(matrix_of())
    events = [replace(event, client=client) if isinstance(event, Called) else event for event in smooth()]
    so_far.add(TrialResult(replace(trial(events=events), model="m"), {}))
    lines = list(so_far.client_bound())
    assert bool(lines) is bound
    assert not bound or lines[0].startswith("client-bound: this process was busy for 30% of its calls' seconds")


def test_a_run_says_how_often_it_met_which_word_that_nobody_knows() -> None:
    so_far = SoFar(matrix_of())
    assert list(so_far.unknown_words()) == []
    for word, count in (("gone_fishing", 2), ("asleep", 1)):
        odd = UnknownFinish(f'finish_reason "{word}" is not known', partial="x")
        so_far.add(scripted("runtime_structured", {"total": [odd] * count})[0])
    lines = list(so_far.unknown_words())
    assert [line.split("; ")[0] for line in lines] == [
        '2 paid replies were not used: finish_reason "gone_fishing" is not known',
        '1 paid replies were not used: finish_reason "asleep" is not known',
    ]


def test_where_no_terminal_is_there_a_line_comes_at_most_each_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(0, 400, 4))  # four seconds from one trial to the next
    monkeypatch.setattr("bench.cli.commands.progress.perf_counter", lambda: float(next(moments)))
    screen = io.StringIO()
    progress = RunProgress(Console(file=screen, width=200), 10, SoFar(matrix_of()))
    for number in range(1, 11):
        progress.show(TrialResult(replace(trial(repetition=number), model="m"), {}))
    lines = screen.getvalue().splitlines()
    assert [line.split(":")[0] for line in lines] == ["3 of 10 trials in 0", "6 of 10 trials in 0", "9 of 10 trials in 0"]
    assert lines[0].startswith("3 of 10 trials in 0:00:12, left 0:00:28: solved 3; ")
