"""Which texts of dates make a test volatile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench_code.record import ExecutionContext
from bench_code.recorder import Recorder


@pytest.mark.parametrize(
    ("text", "volatile"),
    [
        ("2010-02-02", set()),
        ("2010-02-02 10:30+01:00", set()),
        ("10:30", {"reads the clock"}),
        ("2010-02", {"reads the clock"}),
    ],
)
def test_a_text_makes_a_test_volatile_where_today_completes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, volatile: set[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("dateutil")]:
        monkeypatch.delitem(sys.modules, name)
    recorder, context, later = Recorder(tmp_path), ExecutionContext("test", "a test"), ExecutionContext("test", "another")
    with recorder.recording():
        with recorder.context(later):
            from dateutil import parser  # type: ignore[import-untyped]  # noqa: PLC0415
        with recorder.context(context):
            date = parser.parse(text)
    assert date is not None
    assert context.volatile.keys() == volatile
