"""At its end a run says whether its own process, and not the endpoint, bounded the calls at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from records import smooth, trial
from trials import matrix_of

from bench.cli.progress import SoFar
from bench.runtime.events import Called


@pytest.mark.parametrize(("client", "said"), [(0.0, False), (0.2, False), (0.3, True)])
def test_a_run_is_client_bound_where_its_process_adds_more_than_a_quarter_to_its_calls(client: float, said: bool) -> None:
    so_far = SoFar(matrix_of())
    events = [replace(event, client=client) if isinstance(event, Called) else event for event in smooth()]
    so_far.add(replace(trial(events=events), model="m"))
    lines = list(so_far.client_bound())
    assert bool(lines) is said
    assert not said or lines[0].startswith("client-bound: this process was busy for 30% of its calls' seconds")
