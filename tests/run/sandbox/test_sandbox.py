"""Each test lets untrusted code try one thing; whatever it tries must come back as a problem, and soon."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path

import pytest

import bench.run.sandbox.parent
from bench.run.sandbox import Limits, SandboxBroken, SandboxResult, run_python

TIGHT = Limits(wall_seconds=60.0, cpu_seconds=1, memory_bytes=256 * 2**20, output_bytes=2**16)
CPU_TIME, FILE_SIZE = (f"ended by signal {int(number)}:" for number in (signal.SIGXCPU, signal.SIGXFSZ))
LIBRARY = str(Path(os.__file__).resolve().parent)


def attempt(body: str, limits: Limits = TIGHT) -> SandboxResult:
    """Run the statements of `body` as `main(value)`, with value 3."""
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return run_python({}, f"def main(value):\n{lines}\n", 3, limits)


def refused(body: str, *reasons: str) -> None:
    result = attempt(body)
    assert not result.ok and result.value is None
    assert any(reason in result.problem for reason in reasons), result.problem


def test_a_returned_value_comes_back() -> None:
    assert attempt("return {'doubled': [value * 2, None, True, 'ä']}").value == {"doubled": [6, None, True, "ä"]}


def test_the_files_can_be_imported_and_the_standard_library_too() -> None:
    files = {"one.py": "import two\nanswer = two.half * 2\n", "two.py": "import statistics, decimal, re\nhalf = 21\n"}
    assert run_python(files, "import one\ndef main(value): return one.answer", None, TIGHT) == SandboxResult(True, 42)


def test_an_exception_names_itself() -> None:
    refused("raise KeyError('gone')", "KeyError: 'gone'")


def test_code_that_is_no_python_is_a_problem() -> None:
    refused("return (", "SyntaxError")


def test_a_value_that_is_no_json_is_a_problem() -> None:
    refused("return object()", "TypeError")


def test_an_object_cannot_bring_its_own_equality_out() -> None:
    result = attempt("class Same(str):\n    __eq__ = lambda self, other: True\nreturn Same('x')")
    assert type(result.value) is str and result.value != "y"


def test_only_a_limit_on_time_is_said_to_be_one() -> None:
    assert not attempt("import os\nos.abort()").timed_out and not attempt("raise KeyError").timed_out


def test_a_loop_that_ignores_the_first_signal_is_ended_all_the_same() -> None:
    program = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    refused(program, "signal 9: ran longer")


@pytest.mark.parametrize("limits", [Limits(wall_seconds=1), Limits(wall_seconds=60, idle_seconds=0.3)])
def test_a_sleeper_is_ended_by_the_wall_clock_and_by_its_idle_time(limits: Limits) -> None:
    start = time.perf_counter()
    result = attempt("import time\ntime.sleep(600)", limits)
    assert result.timed_out and "ran longer" in result.problem and time.perf_counter() - start < 30


def test_an_endless_loop_that_catches_everything_is_ended_by_the_limit_on_cpu_time() -> None:
    result = attempt("while True:\n    try:\n        raise SystemExit\n    except BaseException:\n        pass")
    assert not result.ok and result.problem.startswith(CPU_TIME) and result.timed_out


def test_a_fork_bomb_makes_no_process() -> None:
    refused("import os\nwhile True: os.fork()", "forbidden: os.fork")


def test_a_subprocess_is_not_started() -> None:
    refused("import subprocess\nsubprocess.run(['true'])", "forbidden: subprocess.Popen")


def test_a_background_process_is_not_left_behind() -> None:
    refused("import os\nos.posix_spawn('/bin/sleep', ['sleep', '60'], {})", "forbidden: os.posix_spawn")


def test_a_background_thread_ends_the_run() -> None:
    body = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\nreturn 1"
    refused(body, "can't start new thread", "forbidden: _thread")


def test_the_graders_files_cannot_be_read() -> None:
    refused(f"return open({str(Path(__file__))!r}).read()", "forbidden: open")


def test_a_path_that_leads_out_of_the_folder_cannot_be_read() -> None:
    refused("import os\nreturn open(os.path.join(os.getcwd(), '..', 'x')).read()", "forbidden: open")


def test_a_folder_outside_cannot_be_listed() -> None:
    refused("import os\nreturn os.listdir('/')", "forbidden: os.listdir")


def test_a_read_cannot_be_hidden_by_catching_the_refusal() -> None:
    refused("try:\n    open('/etc/hostname')\nexcept BaseException:\n    pass\nreturn 1", "forbidden: open")


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_installed_packages_cannot_be_read_even_where_they_lie_in_the_library(folder: str) -> None:
    refused(f"return open({f'{LIBRARY}/{folder}/package/data.json'!r}).read()", "forbidden: open")


def test_nothing_of_our_environment_gets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "secret")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    seen = attempt("import os\nreturn dict(os.environ)").value
    assert isinstance(seen, dict) and "A_KEY" not in seen and seen["PYTHONHASHSEED"] == "0"


def test_a_set_of_texts_has_the_same_order_each_time() -> None:
    first, second = (attempt("return [list({'a', 'b', 'c', 'd', 'e', 'f'}), hash('a')]").value for _ in range(2))
    assert first == second


def test_ten_gigabytes_of_memory_are_not_given() -> None:
    refused("return len(bytearray(10 * 2**30))", "MemoryError")


def test_huge_output_ends_the_run() -> None:
    refused("while True: print('x' * 1000)", FILE_SIZE)


def test_a_huge_result_ends_the_run() -> None:
    refused("return 'x' * 2**17", FILE_SIZE)


def forging(written: bytes) -> str:
    """Statements that write to every open file in the place of the sandbox's own child, and leave."""
    return (
        f"import os\nfor channel in range(3, 1024):\n    try:\n        os.write(channel, {written!r})\n"
        "    except OSError:\n        pass\nos._exit(0)"
    )


@pytest.mark.parametrize("forged", [b"[]", b"3", b'"problem"', b"{}", b"{", b"\xff", b"9" * 5000, b"[" * 50000])
def test_a_forged_result_that_makes_no_sense_is_a_problem(forged: bytes) -> None:
    refused(forging(forged), "cannot be read")


@pytest.mark.parametrize("name", ["../out.py", "/tmp/out.py", "a/b.py", "..", "", "nul\0.py", "long" * 100, "\ud800" * 300])
def test_a_file_whose_name_leads_elsewhere_is_a_problem(name: str) -> None:
    result = run_python({name: "x = 1"}, "def main(value): return value", 3, TIGHT)
    assert not result.ok and result.problem.startswith("a file cannot be named") and result.problem.isprintable()


def test_a_machine_on_which_nothing_can_be_run_is_no_problem_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(bench.run.sandbox.parent, "take_cell", refused)
    with pytest.raises(SandboxBroken, match="Too many open files"):
        attempt("return 1")


def test_sys_exit_is_no_result() -> None:
    refused("import sys\nsys.exit(0)", "SystemExit: 0")


def test_os_exit_is_no_result() -> None:
    refused("import os\nos._exit(0)", "exit code 0 and without a result")


def test_deep_recursion_is_a_problem() -> None:
    refused("return main(value)", "RecursionError")


def test_recursion_without_a_limit_is_a_problem() -> None:
    refused("import sys\nsys.setrecursionlimit(10**9)\nreturn main(value)", "ended by signal", "MemoryError")


def test_a_large_file_is_not_written() -> None:
    refused("open('big', 'wb').write(bytes(2**30))", "forbidden: open")


def test_the_parent_cannot_be_killed() -> None:
    refused("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", "forbidden: os.kill")


def test_a_file_that_becomes_ready_signals_nobody() -> None:
    refused("import fcntl, os\nfcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, os.getppid())", "forbidden: fcntl.fcntl")


def test_the_network_cannot_be_reached() -> None:
    refused("import socket\nsocket.create_connection(('127.0.0.1', 9), 1)", "forbidden: socket")


def test_ctypes_cannot_be_imported() -> None:
    refused("import ctypes", "forbidden: import")


def test_a_sandbox_that_does_not_start_is_our_failure_and_not_the_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "child.py"
    broken.write_text("raise SystemExit('no such thing')")
    monkeypatch.setattr(bench.run.sandbox.parent, "CHILD", broken)
    with pytest.raises(SandboxBroken, match="no such thing"):
        attempt("return 1")


def test_untrusted_code_cannot_make_it_look_like_our_failure() -> None:
    refused("import os\nos.closerange(3, 1024)\nos._exit(1)", "exit code 1 and without a result")


def test_the_code_holds_no_open_file_but_its_own_three_and_the_result() -> None:
    counting = "import os\nopen_files = 0\nfor channel in range(1024):\n    try:\n        os.fstat(channel)\n"
    assert attempt(f"{counting}        open_files += 1\n    except OSError:\n        pass\nreturn open_files").value == 4


@pytest.mark.skipif(os.name != "posix", reason="process groups")
def test_no_process_of_the_sandbox_is_alive_afterwards() -> None:
    group = attempt("import os\nreturn os.getpid()").value
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)
