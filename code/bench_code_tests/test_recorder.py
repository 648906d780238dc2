"""What the recorder sees of the code that runs, on each Python that it is run on."""

from __future__ import annotations

import datetime
import gc
import runpy
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_code.record import ExecutionContext
from bench_code.recorder import Recorder


def doubled_of(root: Path) -> Callable[[int], int]:
    """A function whose file stands in this folder."""
    file = root / "work.py"
    file.write_text("def doubled(x):\n    return 2 * x\n")
    return runpy.run_path(str(file))["doubled"]  # type: ignore[no-any-return]


def test_a_thread_runs_as_it_would_unrecorded_and_its_functions_are_seen(tmp_path: Path) -> None:
    doubled, results = doubled_of(tmp_path), list[int]()
    recorder, context = Recorder(tmp_path), ExecutionContext("test", "a test")
    with recorder.recording(), recorder.context(context):
        thread = threading.Thread(target=lambda: results.append(doubled(4)))
        thread.start()
        thread.join()
    recorder.records.of(context)
    assert results == [8]
    assert ("body", "work.py::doubled") in context.facts


def test_the_profilers_of_threads_that_have_ended_do_not_stop_the_profiler_of_the_test(tmp_path: Path) -> None:
    recorder, context = Recorder(tmp_path), ExecutionContext("test", "a test")
    with recorder.recording(), recorder.context(context):
        threads = [threading.Thread(target=print) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not context.volatile


def test_a_function_is_seen_in_each_context_that_runs_it(tmp_path: Path) -> None:
    doubled, recorder = doubled_of(tmp_path), Recorder(tmp_path)
    contexts = [ExecutionContext("test", name) for name in ("first", "second")]
    with recorder.recording():
        for context in contexts:
            with recorder.context(context):
                doubled(4)
    for context in contexts:
        recorder.records.of(context)
        assert ("body", "work.py::doubled") in context.facts


def test_what_a_test_reads_off_the_clock_in_c_is_seen(tmp_path: Path) -> None:
    recorder, context = Recorder(tmp_path), ExecutionContext("test", "a test")
    with recorder.recording(), recorder.context(context):
        datetime.datetime.now(datetime.UTC)
    assert "reads the clock" in context.volatile


@pytest.mark.parametrize(("folder", "reasons"), [("_pytest", set()), ("ours", {"draws unseeded chance"})])
def test_chance_that_pytest_draws_for_itself_makes_no_test_volatile(tmp_path: Path, folder: str, reasons: set[str]) -> None:
    file = tmp_path / folder / "work.py"
    file.parent.mkdir()
    file.write_text("import uuid\n\ndef drawn():\n    return uuid.uuid4()\n")
    drawn = runpy.run_path(str(file))["drawn"]
    recorder, context = Recorder(tmp_path), ExecutionContext("test", "a test")
    with recorder.recording(), recorder.context(context):
        drawn()
    assert context.volatile.keys() == reasons


def test_an_installed_package_may_draw_chance_while_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    drawing = "import random\nOWN = random.Random()\nDRAWN = random.random()\n\ndef draw():\n    return random.random()\n"
    (installed / "drawn_inside.py").write_text(drawing)
    (installed / "drawing_here.py").write_text("import random\nfrom drawn_inside import draw\nDRAWN = random.random()\n")
    monkeypatch.syspath_prepend(str(installed))
    recorder, context, later = Recorder(tmp_path), ExecutionContext("test", "a test"), ExecutionContext("test", "another")
    with recorder.recording():
        with recorder.context(context):
            import drawing_here  # type: ignore[import-not-found]  # noqa: PLC0415
        with recorder.context(later):
            drawing_here.draw()
    assert ({*context.volatile}, {*later.volatile}) == (set(), {"draws unseeded chance"})


def test_a_clock_that_the_garbage_collector_has_read_makes_no_test_volatile(tmp_path: Path) -> None:
    def timed(_phase: str, _info: dict[str, int]) -> None:
        time.perf_counter()

    recorder, context, later = Recorder(tmp_path), ExecutionContext("test", "a test"), ExecutionContext("test", "another")
    gc.callbacks.append(timed)
    try:
        with recorder.recording(), recorder.context(context):
            gc.collect()
    finally:
        gc.callbacks.remove(timed)
    with recorder.recording(), recorder.context(later):
        timed("called by hand", {})
    assert ({*context.volatile}, {*later.volatile}) == (set(), {"reads the clock"})


def test_a_clock_that_was_kept_under_record_tells_nothing_when_the_recording_has_ended(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with recorder.recording():
        kept = time.perf_counter
    kept()
    assert not recorder.session.volatile


def test_an_installed_package_may_read_the_clock_while_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "stamped_here.py").write_text("import time\nBEGAN = time.time()\n\ndef now():\n    return time.time()\n")
    monkeypatch.syspath_prepend(str(installed))
    recorder, context = Recorder(tmp_path), ExecutionContext("test", "a test")
    with recorder.recording(), recorder.context(context):
        import stamped_here  # type: ignore[import-not-found]  # noqa: PLC0415

        before = set(context.volatile)
        stamped_here.now()
    assert (before, {*context.volatile}) == (set(), {"reads the clock"})
