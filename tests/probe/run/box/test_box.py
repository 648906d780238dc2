"""What runs in a box changes nothing outside of it, and ends with it. The truth is what stands on the disk afterwards."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from time import sleep

import pytest
from waiting import wait_until

from bench.common.errors import ConfigError
from bench.wire.agent_process import AgentProcess, ProcessExit
from tests.probe.run.box.boxed import Boxed, marked
from tests.probe.run.box.test_frameworks import LANGGRAPH

HERE = Path(__file__).parents[4]
WROTE = "import sys; open(sys.argv[1], 'w').write('by the agent')"
CONNECTS = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
print("left")
"""
HELD = """
import asyncio, sys, time
from pathlib import Path
from tests.probe.run.box.boxed import Boxed
base = Path(sys.argv[1])
boxed = Boxed(base, base / "agent", base / "home")
code = "import os, time; os.fork() or os.setsid(); time.sleep(600)"
async def hold():
    await boxed.started([sys.executable, "-c", code], boxed.environment, boxed.box.namespaces).ended
asyncio.run(hold())
"""


def boxed_or_skipped(
    base: Path,
    folder: Path,
    home: Path,
    layers: Path | None = None,
    programs: Sequence[Sequence[str]] = (),
    sockets: Mapping[Path, Path] = {},
) -> Boxed:
    try:
        return Boxed(base, folder, home, layers, programs, sockets)
    except ConfigError as error:
        pytest.skip(f"there is no box here: {error}")


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boxed]:
    base = tmp_path_factory.mktemp("box")
    made = boxed_or_skipped(base, base / "agent", base / "home")
    yield made
    made.box.close()


@pytest.fixture
def boxed(around: Boxed) -> Boxed:
    around.box.reset_files()
    return around


@pytest.fixture
def beyond() -> Iterator[Path]:
    """A folder that is seen in the box, and is no copy there."""
    if not os.access(sys.prefix, os.W_OK):
        pytest.skip("no such folder can be made here")
    with tempfile.TemporaryDirectory(dir=sys.prefix) as made:
        yield Path(made)


def test_a_file_that_is_written_by_a_path_in_code_stays_as_it_was(boxed: Boxed) -> None:
    real = boxed.folder / "bank.txt"
    real.write_text("by its owner")
    assert boxed.run(WROTE, str(real))[0] == ProcessExit(code=0)
    assert boxed.run("import sys; print(open(sys.argv[1]).read())", str(real))[1] == "by the agent"
    assert real.read_text() == "by its owner"
    assert list(boxed.box.paths_written()) == [str(real)]


def test_what_is_renamed_or_removed_stays_where_it_was(boxed: Boxed) -> None:
    real, other = boxed.folder / "kept.txt", boxed.folder / "removed.txt"
    real.write_text("by its owner")
    other.write_text("by its owner")
    code = "import os, sys; open('new', 'w').write('x'); os.replace('new', sys.argv[1]); os.unlink(sys.argv[2])"
    assert boxed.run(code, str(real), str(other))[0] == ProcessExit(code=0)
    assert real.read_text() == other.read_text() == "by its owner"
    assert list(boxed.box.paths_written()) == [str(real), str(other)]


def test_a_link_that_leads_out_of_the_folder_leads_to_a_copy_or_to_what_cannot_be_written(boxed: Boxed, beyond: Path) -> None:
    real = boxed.home / "real.txt"
    for number, target in enumerate((real, beyond / "real.txt")):
        target.write_text("by its owner")
        (boxed.folder / f"link{number}").symlink_to(target)
    assert boxed.run(WROTE, "link0")[0] == ProcessExit(code=0)
    ended, printed = boxed.run(WROTE, "link1")
    assert ended == ProcessExit(code=1) and "Read-only file system" in printed
    assert real.read_text() == (beyond / "real.txt").read_text() == "by its owner"
    assert list(boxed.box.paths_written()) == [str(real)]


def test_a_second_database_in_the_home_is_a_copy_that_is_named_even_if_a_process_of_the_agent_makes_it(boxed: Boxed) -> None:
    code = """
import os, sqlite3, subprocess, sys
inner = "import os, sqlite3; sqlite3.connect(os.path.expanduser('~/second.db')).executescript('CREATE TABLE t (a)')"
sys.exit(subprocess.run([sys.executable, "-c", inner]).returncode)
"""
    assert boxed.run(code)[0] == ProcessExit(code=0)
    assert list(boxed.box.paths_written()) == [str(boxed.home / "second.db")] and not (boxed.home / "second.db").exists()


def test_what_was_only_opened_to_be_written_and_what_python_caches_are_not_named(boxed: Boxed) -> None:
    (boxed.folder / "read.txt").write_text("x")
    (boxed.folder / "module.py").write_text("")
    assert boxed.run("import module; open('read.txt', 'a').close()", before={"PYTHONDONTWRITEBYTECODE": ""})[0] == ProcessExit(
        code=0
    )
    assert boxed.box.paths_written() == {}


def test_temporary_folders_are_new_in_each_run(boxed: Boxed) -> None:
    places = ("/tmp", "/dev/shm", "/run")
    code = "import os, sys; print([p for p in sys.argv[1:] for n in os.listdir(p) if n == 'by-the-agent']); " + "".join(
        f"open('{place}/by-the-agent', 'w');" for place in places
    )
    for _ in range(2):
        assert boxed.run(code, *places) == (ProcessExit(code=0), "[]")
        assert boxed.run(code, *places) == (ProcessExit(code=0), str(list(places)))
        boxed.box.reset_files()
    assert not any(Path(place, "by-the-agent").exists() for place in places)


def test_a_program_in_a_temporary_folder_is_seen_there_with_what_lies_beside_it_and_cannot_be_written(tmp_path: Path) -> None:
    tools = Path(tempfile.mkdtemp(dir="/tmp"))
    with ExitStack() as exits:
        exits.callback(shutil.rmtree, tools)
        (tools / "lib").mkdir()
        (tools / "lib" / "more.py").write_text("")
        (tools / "run.py").write_text("import sys; sys.path.insert(0, sys.argv[1]); import more; open(sys.argv[1] + '/x', 'w')")
        boxed = boxed_or_skipped(
            tmp_path, tools / "agent", tmp_path / "home", programs=[[sys.executable, str(tools / "run.py")]]
        )
        exits.callback(boxed.box.close)
        code = "import runpy, sys; runpy.run_path(sys.argv.pop(1))"
        ended, printed = boxed.run(code, str(tools / "run.py"), str(tools / "lib"))
        assert ended == ProcessExit(code=1) and "Read-only file system" in printed
        assert boxed.run(WROTE, "x")[0] == ProcessExit(code=0) and list(boxed.box.paths_written()) == [
            str(tools / "agent" / "x")
        ]


def test_a_frameworks_checkpoints_are_known_with_their_journals_and_can_be_forgotten_alone(boxed: Boxed) -> None:
    kept = boxed.folder / "kept.db"
    with closing(sqlite3.connect(kept)) as database:
        database.executescript(LANGGRAPH)
    before = kept.read_bytes()
    code = """
import os, shutil, sqlite3
shutil.copy("kept.db", "new.db")
for name in ("kept.db", "new.db"):
    opened = sqlite3.connect(name, isolation_level=None)
    opened.execute("INSERT INTO checkpoints VALUES ('1', '', 'a', 'b')")
    globals()[name] = opened
open("notes.txt", "w").write("x")
os._exit(0)
"""
    assert boxed.run(code)[0] == ProcessExit(code=0)
    whose = "LangGraph's checkpoints"
    names = {str(boxed.folder / name): of for name, of in (("kept.db", whose), ("new.db", whose), ("notes.txt", ""))}
    assert boxed.box.paths_written() == names
    boxed.box.reset_memory()
    assert boxed.box.paths_written() == {str(boxed.folder / "notes.txt"): ""}
    asks = (
        "import os, sqlite3; print(os.path.exists('new.db'), *sqlite3.connect('kept.db').execute('SELECT * FROM checkpoints'))"
    )
    assert boxed.run(asks)[1] == "False" and kept.read_bytes() == before


def test_a_frameworks_memory_that_the_agent_removed_is_restored_alone(boxed: Boxed) -> None:
    sessions = boxed.folder / "sessions"
    sessions.mkdir(exist_ok=True)
    for name in ("a.db", "b.db"):
        with closing(sqlite3.connect(boxed.folder / name)) as database, closing(sqlite3.connect(sessions / name)) as inner:
            for each in (database, inner):
                each.execute("PRAGMA journal_mode = WAL")  # as LangGraph does
                each.executescript(LANGGRAPH)
    for name in ("notes.txt", "list.json"):
        (boxed.folder / name).write_text('{"of": "the owner"}')
    code = """
import os, shutil
for name in ("a.db", "notes.txt", "list.json"):
    os.unlink(name)
shutil.rmtree("sessions")
if %s:
    os.mkdir("sessions")
"""
    for again in (False, True):
        boxed.box.reset_files()
        assert boxed.run(code % again)[0] == ProcessExit(code=0)
        boxed.box.reset_memory()
        listings = boxed.run("import os; print(*os.listdir()); print(*sorted(os.listdir('sessions')))")[1].splitlines()
        assert all({"a.db", "b.db"} <= {*line.split()} for line in listings)
        assert not {"notes.txt", "list.json"} & {*listings[0].split()}
        assert boxed.run("import sqlite3; print(*sqlite3.connect('a.db').execute('SELECT * FROM checkpoints'))")[1] == ""


def test_a_folder_that_the_agent_made_or_emptied_is_as_before_in_the_next_run(boxed: Boxed) -> None:
    (boxed.folder / "kept").mkdir(exist_ok=True)
    (boxed.folder / "kept" / "note.txt").write_text("by its owner")
    boxed.box.reset_files()
    assert boxed.run("import os; os.mkdir('lock')")[0] == ProcessExit(code=0)
    boxed.box.reset_files()
    assert boxed.run("import os, shutil; os.mkdir('lock'); shutil.rmtree('kept'); os.mkdir('kept')")[0] == ProcessExit(code=0)
    assert boxed.run("import os; print(os.listdir('kept'))")[1] == "[]"
    boxed.box.reset_files()
    assert boxed.run("import os; print(os.listdir('kept'), os.path.exists('lock'))")[1] == "['note.txt'] False"


def test_bytecode_that_an_agent_writes_is_gone_after_a_renewal_and_is_told_nobody(boxed: Boxed) -> None:
    code = "import os; os.makedirs('__pycache__'); open('__pycache__/m.pyc', 'w').write('by the agent')"
    assert boxed.run(code)[0] == ProcessExit(code=0)
    assert boxed.box.paths_written() == {}
    boxed.box.reset_files()
    assert boxed.run("import os; print(os.path.exists('__pycache__/m.pyc'))")[1] == "False"


class SlowlyCounted(list[socket.socket]):
    """Sockets that take a moment to be counted, in which another thread can take one."""

    def __len__(self) -> int:
        count = super().__len__()
        sleep(0.1)
        return count


def test_two_threads_that_connect_at_a_time_take_one_socket_each(boxed: Boxed) -> None:
    boxed.box._unconnected_sockets["agent", False] = SlowlyCounted(boxed.box.sockets("agent", [("caller", "127.0.0.1", 0)]))
    with ThreadPoolExecutor(2) as threads:
        tries = [threads.submit(boxed.box.connect, "agent", "127.0.0.1", 1, 5.0) for _ in range(2)]
        errors = [type(each.exception()) for each in tries]
    for unused in boxed.box._unconnected_sockets.pop(("agent", False)):
        unused.close()
    assert errors == [ConnectionRefusedError] * 2


def test_after_a_renewal_all_is_as_it_was_at_first(boxed: Boxed) -> None:
    (boxed.folder / "kept.txt").write_text("by its owner")
    assert boxed.run("open('kept.txt', 'w').write('x'); open('new', 'w')")[0] == ProcessExit(code=0)
    boxed.box.reset_files()
    assert boxed.box.paths_written() == {}
    assert boxed.run("import os; print(open('kept.txt').read(), os.path.exists('new'))")[1] == "by its owner False"


def test_what_npx_loads_stays_for_the_next_run_and_is_no_change_of_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".npm").mkdir(parents=True)
    (home / ".npm" / "known").write_text("of the owner")
    boxed = boxed_or_skipped(tmp_path, tmp_path / "agent", home, programs=(("npx", "-y", "server"), ("/usr/bin/uvx", "server")))
    code = (
        "import os, pathlib; h = pathlib.Path.home(); print(sorted(os.listdir(h / '.npm')), os.path.exists(h / '.cache/uv/x'));"
    )
    loads = "(h / '.npm/known').write_text('x'); (h / '.npm/loaded').touch(); (h / '.cache/uv/x').touch(); (h / 'new').touch()"
    try:
        assert boxed.run(code + loads) == (ProcessExit(code=0), "['known'] False")
        assert list(boxed.box.paths_written()) == [str(home / "new")]
        boxed.box.reset_files()
        assert boxed.run(code) == (ProcessExit(code=0), "['known', 'loaded'] True")
    finally:
        boxed.box.close()
    assert [path.name for path in home.rglob("*")] == [".npm", "known"] and (
        home / ".npm" / "known"
    ).read_text() == "of the owner"


def test_sockets_of_the_outside_are_not_reached_and_the_gateways_is(boxed: Boxed, beyond: Path) -> None:
    places = [folder / "s" for folder in (boxed.home, beyond, Path(tempfile.mkdtemp()), boxed.gateway)]
    with ExitStack() as exits:
        for place in places:
            exits.enter_context(listening := socket.socket(socket.AF_UNIX))
            listening.bind(str(place))
            exits.callback(place.unlink)
            listening.listen()
        boxed.run("open('new', 'w')")
        boxed.box.reset_files()  # what listens before a run begins is covered
        assert [boxed.run(CONNECTS, str(place))[0].code for place in places] == [1, 1, 1, 0]


def test_a_socket_of_the_gateway_stands_where_the_owners_server_has_its_own(tmp_path: Path) -> None:
    hidden, home, ours = Path(tempfile.mkdtemp(dir="/dev/shm")), tmp_path / "home", tmp_path / "work" / "gateway" / "database"
    owners = [folder / ".s.PGSQL.5432" for folder in (home, hidden)]
    places = [*owners, Path("/run/of-the-box/.s.PGSQL.5432")]  # the last has no folder yet
    with ExitStack() as exits:
        exits.callback(shutil.rmtree, hidden)
        for place in (*owners, ours):
            place.parent.mkdir(parents=True, exist_ok=True)
            exits.enter_context(listening := socket.socket(socket.AF_UNIX))
            listening.bind(str(place))
            listening.listen()
        listening.settimeout(10)
        boxed = boxed_or_skipped(tmp_path, tmp_path / "agent", home, sockets=dict.fromkeys(places, ours))
        exits.callback(boxed.box.close)
        connects = (
            "import socket, sys; [socket.socket(socket.AF_UNIX).connect(place) for place in sys.argv[1:]]; open('x', 'w')"
        )
        for _ in range(2):
            assert boxed.run(connects, *map(str, places)) == (ProcessExit(code=0), "")
            for _ in places:
                listening.accept()[0].close()
            boxed.box.reset_files()
    assert not Path("/run/of-the-box").exists()


def test_a_socket_that_is_made_in_the_box_can_be_reached_there(boxed: Boxed) -> None:
    code = "from socket import *; a, b = socket(AF_UNIX), socket(AF_UNIX); a.bind('s'); a.listen(); b.connect('s')"
    assert boxed.run(code)[0] == ProcessExit(code=0)


def test_exit_codes_and_signals_pass(boxed: Boxed) -> None:
    assert boxed.run("raise SystemExit(7)")[0] == ProcessExit(code=7)
    assert boxed.run("import os; os.kill(os.getpid(), 15)")[0] == ProcessExit(signal=15)
    assert boxed.run("import os, signal; signal.signal(15, lambda *_: os._exit(3)); os.kill(0, 15)")[0] == ProcessExit(code=3)
    ended = asyncio.run(boxed._run(["/nowhere/at-all"], boxed.environment))[0]
    assert (ended.code, ended.failed) == (127, 2)


def test_a_process_in_the_box_is_asked_stopped_and_killed_from_outside(boxed: Boxed) -> None:
    async def ends(end: str) -> ProcessExit:
        words = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
        process = AgentProcess(words, boxed.folder, boxed.environment, 2**30, namespaces=boxed.box.namespaces)
        try:
            async with asyncio.timeout(20):
                while not process.output.written:  # noqa: ASYNC110  nobody tells
                    await asyncio.sleep(0.01)
            getattr(process, end)()
            if end == "freeze":
                assert not process.ended.done()
                process.kill()
            return await process.ended
        finally:
            await process.close()

    assert asyncio.run(ends("terminate")) == ProcessExit(signal=15)
    assert asyncio.run(ends("kill")) == asyncio.run(ends("freeze")) == ProcessExit(signal=9)


def test_a_process_of_the_box_sees_no_others_and_a_daemon_ends_with_its_agent(boxed: Boxed) -> None:
    ended, printed = boxed.run("import os; print(sorted(int(name) for name in os.listdir('/proc') if name.isdecimal()))")
    assert ended == ProcessExit(code=0) and printed.startswith("[1, ") and printed.count(",") == 1
    assert boxed.run("import os; print(os.getpid())")[1] != boxed.run("import os; print(os.getpid())")[1]
    assert boxed.run(DAEMON)[1] == "left"
    assert marked(f"AGENT_FOLDER={boxed.work}") == []


def test_nothing_is_left_of_a_box_whose_probe_is_killed(tmp_path: Path, boxed: Boxed) -> None:
    del boxed  # there are boxes here
    words = [sys.executable, "-c", HELD, str(tmp_path)]
    mark = f"AGENT_FOLDER={tmp_path / 'work'}"
    with subprocess.Popen(words, cwd=HERE, env={**os.environ, "PYTHONPATH": str(HERE), "A_MARK": str(tmp_path)}) as probe:
        try:
            # the supervisor, the first process in the box, the agent, and the process that the agent started
            wait_until(lambda: len(marked(mark)) >= 4 or probe.poll() is not None)
            assert len(marked(f"A_MARK={tmp_path}")) >= 6  # with the probe, and the program that holds the box
        finally:
            probe.send_signal(signal.SIGKILL)
    wait_until(lambda: not marked(f"A_MARK={tmp_path}"))


@pytest.mark.parametrize("place", ["same", "layers in it"])
def test_a_folder_can_be_the_home_and_can_hold_the_layers(tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    boxed = boxed_or_skipped(tmp_path, home, home, layers=home / "layers" if place == "layers in it" else None)
    try:
        for _ in range(2):
            assert boxed.run(WROTE, str(home / "x.txt"))[0] == ProcessExit(code=0)
            assert list(boxed.box.paths_written()) == [str(home / "x.txt")] and not (home / "x.txt").exists()
            boxed.box.reset_files()
            assert boxed.box.paths_written() == {}
    finally:
        boxed.box.close()


def test_an_agent_cannot_undo_the_box(boxed: Boxed) -> None:
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print([libc.umount2(path, 2) for path in (b"/tmp", b"/proc", os.getcwd().encode())])
print(libc.mount(None, b"/", None, 32 | 4096, None))
"""
    assert boxed.run(code)[1] == "[-1, -1, -1]\n-1"


def test_what_no_box_can_copy_is_refused_in_one_line(tmp_path: Path) -> None:
    for folder, line in (("/", "is /, which no box can copy"), ("/dev", "is a mount in /dev, which no box can copy")):
        with pytest.raises(ConfigError, match=line):
            Boxed(tmp_path, Path(folder), tmp_path)


FORBIDDEN = """
import sys
from pathlib import Path
from tests.probe.run.box.boxed import Boxed
base = Path(sys.argv[1])
Boxed(base, base / "agent", base / "home")
"""


def lines_of(words: Sequence[str], **more: int) -> str:
    """Return what a program prints as its last words, or skip where it cannot be started."""
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(words, cwd=HERE, env=environment, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]
    except OSError as error:
        pytest.skip(f"it cannot be started here: {error}")
    assert done.returncode
    return str(done.stderr)


def test_where_namespaces_are_forbidden_the_command_that_allows_them_is_named(tmp_path: Path, boxed: Boxed) -> None:
    del boxed  # there are boxes here
    forbids = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    words = ["unshare", "-Ur", "sh", "-c", forbids, "sh", sys.executable, "-c", FORBIDDEN, str(tmp_path)]
    printed = lines_of(words)
    assert "NoBox: the agent cannot be put into a box: this system forbids user namespaces; allow them by: " in printed
    assert "sudo sysctl user.max_user_namespaces=10000; or give --unboxed" in printed


@pytest.mark.skipif(os.geteuid() != 0, reason="another user has to be made")
def test_a_folder_of_another_group_is_refused_and_roots_agent_keeps_the_owners_of_files(boxed: Boxed) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "agent" / "inner"
        folder.mkdir(parents=True)
        for path, group in ((Path(made), 65534), (folder.parent, 65534), (folder, 0)):
            os.chown(path, 65534, group)
        plan = f"from bench.probe.run.box.box import box_plan; from pathlib import Path; p = Path({made!r}); "
        code = f"{plan}box_plan(p / 'agent', p, p, [p / 'agent/inner/x.db'], [], [], {{'HOME': str(p / 'agent')}})"
        printed = lines_of([sys.executable, "-c", code], user=65534, group=65534)
        if "Permission denied" in printed or "No module" in printed:
            pytest.skip("another user cannot run this Python")
        assert f"{folder} belongs to another user or group than 65534:65534, and no box can copy it" in printed
    theirs = boxed.folder / "theirs.txt"
    theirs.write_text("theirs")
    os.chown(theirs, 65534, 65534)
    code = "import os; open('theirs.txt', 'a').write('!'); print(os.stat('theirs.txt').st_uid)"
    assert boxed.run(code) == (ProcessExit(code=0), "65534")
    assert theirs.read_text() == "theirs"


def test_on_an_overlay_the_layers_lie_in_memory(tmp_path: Path, boxed: Boxed) -> None:
    del boxed  # there are boxes here
    code = """
import sys
from pathlib import Path
from tests.probe.run.box.boxed import Boxed
base = Path(sys.argv[1])
boxed = Boxed(base, base / "agent", base / "home")
for _ in range(2):
    assert boxed.run("open('x', 'w')")[0].code == 0 and list(boxed.box.paths_written()) == [str(base / "agent" / "x")]
    boxed.box.reset_files()
sys.exit(str(sorted(path.name for path in (base / "agent").iterdir())))
"""
    for name in ("lower", "upper", "work", "merged"):
        (tmp_path / name).mkdir()
    mounts = (
        'mount -t overlay o -o lowerdir=lower,upperdir=upper,workdir=work,userxattr merged && cd "$1" && shift && exec "$@"'
    )
    words = ["unshare", "-Urm", "sh", "-c", f"cd {tmp_path} && {mounts}", "sh", str(HERE), sys.executable, "-c", code]
    assert lines_of([*words, str(tmp_path / "merged")]).strip() == "[]"
