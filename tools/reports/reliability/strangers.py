"""Files and services of strangers, given to the command as a user would: what it writes outside, what it takes, how it ends.

    PYTHONPATH=tools/reports python -m reliability.strangers [NAME]...

An attack makes the hostile input in a folder of its own, runs `bench` there, each time in a process that is measured, and
returns whether what is promised was kept. Beside that no command may write outside, end in a traceback, or take too much.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reliability.kept import Attacked
from reliability.listening import LOOPBACK, listening_at

from bench.record.chain import seal, unseal

PEAK, SECONDS = 400.0, 60.0
"""What a command may take at most on a stranger's file: MiB, and seconds on a machine that is busy."""
MEMORY = 4 << 30
"""Bytes of address space that a command is given, so that an attack does not take the machine along."""
CONFIG = """
name = "mine"
scenarios = ["demo"]
architectures = ["static", "runtime_structured"]
models = ["simulated"]
plans = ["none"]
repetitions = 5
seed = 1

[model.simulated]
kind = "simulated"
failure_rate = 0.1
"""
LINES = "trials.jsonl"


@dataclass(frozen=True)
class Ended:
    """A command that ended. `code` is negative if a signal ended it; -9 also if it took too long."""

    code: int
    output: str
    seconds: float
    peak: float


@dataclass
class Place:
    """A folder `here` in which commands run, a `home`, and around both what no command may touch."""

    root: Path
    ended: list[Ended] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.here, self.home, self.precious = self.root / "here" / "deep", self.root / "home", self.root / "precious.txt"
        self.here.mkdir(parents=True)
        self.home.mkdir()
        self.precious.write_text("precious", encoding="utf-8")

    def start(self, *words: str, before: Callable[[], object] | None = None, **variables: str) -> subprocess.Popen[str]:
        def bounded() -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if before:
                before()

        env = {**os.environ, "HOME": str(self.home), "XDG_CACHE_HOME": str(self.home / "cache"), **variables}
        output = (self.root / "home" / "output").open("w")
        command = [sys.executable, "-m", "bench", *words]
        return subprocess.Popen(command, cwd=self.here, env=env, stdout=output, stderr=output, text=True, preexec_fn=bounded)  # noqa: PLW1509

    def end(self, process: subprocess.Popen[str], began: float, seconds: float = SECONDS) -> Ended:
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output = (self.root / "home" / "output").read_text(errors="replace")
        if "no such command" in output or "No such option" in output:
            raise ValueError(f"an attack types what the command no longer knows: {output.strip()}")
        ended = Ended(process.returncode, output, time.monotonic() - began, usage.ru_maxrss / 1024)
        self.ended.append(ended)
        return ended

    def bench(self, *words: str, memory: bool = True, **variables: str) -> Ended:
        """Run the command to its end, and return what it took."""
        began = time.monotonic()
        limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))) if memory else None
        return self.end(self.start(*words, before=limit, **variables), began)

    def run(self, config: str = CONFIG) -> Path:
        """A run of our own, which the stranger then changes. It is no part of the attack."""
        self.bench("new", "scenario", "demo")
        (self.here / "mine.toml").write_text(config, encoding="utf-8")
        ended = self.bench("run", "mine.toml", "--name", "mine")
        assert ended.code == 0, ended.output
        self.ended.clear()
        return self.here / "results" / "mine"

    def outside(self) -> dict[str, tuple[int, int]]:
        """Return the files outside of the folder of the commands, with size and time of change."""
        skipped = (self.home, self.here)
        files = (path for path in self.root.rglob("*") if not any(path.is_relative_to(each) for each in skipped))
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files if path.is_file()}


Attack = Callable[[Place], bool]
"""Makes the input and runs the commands; whether what is promised was kept."""


def _changed(folder: Path, change: Callable[[list[dict[str, Any]]], object], name: str = LINES) -> None:
    """Change the records of a file, and chain them anew, as a stranger can."""
    before, records = "", []
    for line in (folder / name).read_bytes().splitlines(keepends=True):
        content, before = unseal(line, before)
        records.append(json.loads(content))
    change(records)
    link, lines = "", []
    for record in records:
        line, link = seal(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode(), link)
        lines.append(line)
    (folder / name).write_bytes(b"".join(lines))


def _archived(folder: Path, compression: int = zipfile.ZIP_DEFLATED, **instead: bytes) -> Path:
    """Return the run as an archive in place of its folder, with other contents of some of its files."""
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", compression) as archive:
        for file in sorted(folder.iterdir()):
            archive.writestr(file.name, instead.get(file.stem, file.read_bytes()))
    folder.rename(folder.with_name("aside"))
    return path


def names_that_lead_out(place: Place) -> bool:
    """A1: ids of trials that are paths."""
    folder, ids = place.run(), iter(["../../../../precious", str(place.root / "made"), "../../../../other"])
    place.precious.rename(place.root / "precious.json")
    before = place.outside()

    def change(records: list[dict[str, Any]]) -> None:
        for record in records:
            if "outcome" in record and (other := next(ids, "")):
                record["id"] = other

    _changed(folder, change)
    for form in ("csv", "otel"):
        place.bench("export", "mine", "--form", form)
    place.bench("verify", "mine")
    return place.outside() == before


def traces_of_any_size(place: Place) -> bool:
    """A2: a trajectory of 20,000 steps, an honest large one, spans that refer to each other."""
    head = {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}}
    result = {"source_call_id": "1", "content": "x" * 8000}
    calls = [{"tool_call_id": "1", "function_name": "f", "arguments": {"number": number}} for number in range(150)]
    honest = [{"source": "agent", "message": "m", "tool_calls": [call], "observation": {"results": [result]}} for call in calls]
    parts = [{"role": "user", "parts": [{"type": "text", "content": "x"}]}]
    texts = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(parts),
        "gen_ai.output.messages": json.dumps(parts),
    }
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in texts.items()]
    span = [{"traceId": "a1", "startTimeUnixNano": str(number), "attributes": attributes} for number in range(8000)]
    files: Mapping[str, object] = {
        "many": {**head, "steps": [{"source": "agent", "message": "m"}] * 20_000},
        "honest": {**head, "steps": honest},
        "spans": {"resourceSpans": [{"scopeSpans": [{"spans": span}]}]},
    }
    for name, content in files.items():
        (place.here / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    codes = [place.bench("import", f"{name}.json", "--name", name).code for name in files]
    written = [path.stat().st_size for path in place.here.rglob("trace.json")]
    return codes[:2] == [2, 0] and codes[2] in (0, 2) and max(written, default=0) < 5_000_000


def a_trial_that_stands_twice(place: Place) -> bool:
    """A3: the solved trial once more, as wrong, behind a run that is left as it was."""
    folder = place.run()

    def again(records: list[dict[str, Any]]) -> None:
        solved = next(record for record in records if record.get("outcome") == "solved")
        grade = solved["grade"] and {**solved["grade"], "correct": False}
        records += [
            {key: value for key, value in records[0].items() if key != "mark"},
            {**solved, "outcome": "wrong", "grade": grade},
        ]
        records += [{**records[0], "what": "ended", "detail": "stopped"}] if "what" in records[0] else []

    _changed(folder, again)
    return place.bench("verify", "mine").code == 1 and place.bench("report", "mine").code == 2


def a_scheduler_s_signal(place: Place) -> bool:
    """A4, A14: SIGTERM in mid-run; where its processes listen, and what they leave."""
    place.run()
    place.here.joinpath("mine.toml").write_text(CONFIG.replace("repetitions = 5", "repetitions = 20000"), encoding="utf-8")
    records = place.here / "results" / "stopped" / LINES
    process = place.start("run", "mine.toml", "--name", "stopped")
    while process.poll() is None and not (records.exists() and records.stat().st_size > 10_000):
        time.sleep(0.05)
    addresses, began = listening_at(process.pid), time.monotonic()
    process.terminate()
    ended = place.end(process, began)
    quiet = "stopped; what is recorded is kept" in ended.output
    private = addresses <= LOOPBACK
    return ended.code == 143 and quiet and private and place.bench("verify", "stopped").code == 0


def flipped_bits_of_the_cache(place: Place) -> bool:
    """A5: each time another bit of the kept frames."""
    place.run(CONFIG.replace("repetitions = 5", "repetitions = 1500"))
    place.bench("export", "mine", "--to", "right")
    right = {path.name: path.read_bytes() for path in (place.here / "right").rglob("*.csv")}
    files = [path for path in place.home.rglob("*") if path.is_file() and path.stat().st_size > 10_000]
    if not (right and files):
        return False
    [kept] = files[:1]
    content = kept.read_bytes()
    for number in range(8):
        flipped = bytearray(content)
        flipped[len(content) // 2 + number * (len(content) // 20)] ^= 1 << number
        kept.write_bytes(flipped)
        place.bench("export", "mine", "--to", f"got{number}")
        if {path.name: path.read_bytes() for path in (place.here / f"got{number}").rglob("*.csv")} != right:
            return False
    return True


PLUG_INS = {
    "no_such_module": ("commands = no_such_module:PART", ""),
    "takes_run": (
        "commands = part:PART",
        "from bench.cli.command_part import CommandPart\nPART = CommandPart('run', 'part:f')",
    ),
    "leads_nowhere": (
        "commands = part:PART",
        "from bench.cli.command_part import CommandPart\nPART = CommandPart('a', 'no.such:f')",
    ),
    "no_function": (
        "commands = part:PART",
        "from bench.cli.command_part import CommandPart\nPART = CommandPart('a', 'part:g')\ng = 5",
    ),
    "interrupts": ("commands = part:PART", "raise KeyboardInterrupt"),
    "own_exception": ("commands = part:PART", "class Own(BaseException): pass\nraise Own"),
    "speechless": ("commands = part:PART", "class Own(Exception):\n    def __str__(self): raise OSError\nraise Own"),
    "malformed": ("", ""),
}
"""Name -> an entry point, and the module that it names."""


def plug_ins(place: Place) -> bool:
    """A6: an installed package that is damaged, or takes the place of a command."""
    held = True
    for name, (entry, code) in PLUG_INS.items():
        folder = place.here / name
        about = folder / f"{name}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        group, _, path = entry.partition(" = ")
        text = f"[recovery_bench.{group}]\nx = {path}\n" if entry else "recovery_bench = x\n[recovery_bench.commands]\nx = y\n"
        (about / "entry_points.txt").write_text(text, encoding="utf-8")
        (folder / "part.py").write_text(code, encoding="utf-8")
        shown = place.bench("run", "--help", PYTHONPATH=str(folder))
        held &= shown.code == 0 and "--workers" in shown.output
    return held


def lines_without_end(place: Place) -> bool:
    """A7: an archive of some kB whose records are two million lines of nothing."""
    folder = place.run()
    _archived(folder, trials=(folder / LINES).read_bytes() + b"x\n" * 2_000_000)
    return place.bench("verify", "mine").code in (1, 2) and place.bench("report", "mine").code == 2


def a_state_of_a_stranger(place: Place) -> bool:
    """A8: patches in the state of `bench code` that write and remove outside of the tree."""
    tree = _repository(place)
    blob = _git(tree, "hash-object", "-w", "--stdin", given="OWNED")
    kept = _git(tree, "hash-object", "-w", "--stdin", given="precious")
    targets = {"../owned.txt": ("", blob), str(place.root / "owned.txt"): ("", blob), ".git/hooks/pre-commit": ("", blob)}
    targets |= {os.path.relpath(place.precious, tree): (kept, "")}
    with closing(sqlite3.connect(tree / ".git/bench-code/state.db", isolation_level=None)) as state:
        for path, (old, new) in targets.items():
            edits = json.dumps([{"path": path, "before": old, "after": new}])
            columns = "at, base, status, edits, action, call, person"
            state.execute(f"INSERT INTO patches({columns}) VALUES (1, '', 'proposed', ?, '', '', '')", (edits,))
        numbers = [number for (number,) in state.execute("SELECT id FROM patches WHERE status = 'proposed'")]
    codes = {place.bench("code", "apply", str(number), "--in", str(tree)).code for number in numbers}
    return codes == {2} and place.precious.exists() and not (tree / ".git/hooks/pre-commit").exists()


def two_merges_of_one_name(place: Place) -> bool:
    """A9: a merge begins while another writes, and is still writing when that one ends, which has written what it says."""
    place.run()
    for shard in ("1/2", "2/2"):
        place.bench("run", "mine.toml", "--repetitions", "1-200", "--shard", shard, "--name", f"part-{shard[0]}")
    results, began = place.here / "results", time.monotonic()

    def folders() -> set[tuple[str, int]]:
        return {(path.name, path.stat().st_ctime_ns) for path in results.iterdir()}

    def started() -> subprocess.Popen[str]:
        """A merge that was stopped once it had made a folder, or had ended."""
        before = folders()
        process = place.start("more", "merge", "part-1", "part-2", "--name", "both")
        stat = Path("/proc", str(process.pid), "stat")
        while not folders() - before:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z" or time.monotonic() - began > SECONDS / 2:
                break
        os.kill(process.pid, signal.SIGSTOP)  # `send_signal` would take the status of a merge that has ended
        return process

    codes = []
    for process in [started(), started()]:
        os.kill(process.pid, signal.SIGCONT)
        codes.append(place.end(process, began).code)
        if codes[-1] == 0 and place.bench("verify", "both").code:
            return False
    return sorted(codes) == [0, 2] and b'"mark"' in (results / "both" / LINES).read_bytes()


def a_pipe_in_the_place_of_records(place: Place) -> bool:
    """A10: `bench watch` of a run whose records are a pipe, or have no end."""
    folder, held = place.run(), True
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        (folder / LINES).unlink()
        make(folder / LINES)
        began = time.monotonic()
        held &= place.end(place.start("watch", "mine"), began, 20.0).code == 2
    return held


def archives_that_unpack_in_a_piece(place: Place) -> bool:
    """A11: LZMA, which Python unpacks without a bound."""
    folder = place.run()
    _archived(folder, zipfile.ZIP_LZMA, manifest=b" " * (400 << 20))
    return [place.bench(command, "mine").code for command in ("verify", "report")] == [1, 2]


def a_disk_that_is_full(place: Place) -> bool:
    """A13: no advice to throw a good state away."""
    tree = _repository(place)
    (tree / "a.py").write_text("A = 2\n", encoding="utf-8")
    began = time.monotonic()
    full = place.start(
        "code", "patch", "--in", str(tree), before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    )
    ended = place.end(full, began)
    return ended.code != 0 and "begins anew" not in ended.output and place.bench("code", "log", "--in", str(tree)).code == 0


def a_repository_of_a_stranger(place: Place) -> bool:
    """A15: programs that the settings of a repository, and of one within it, name."""
    tree, ran = _repository(place, "within"), place.root / "ran"
    script, within = place.here / "script", tree / "within"
    script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n", encoding="utf-8")
    script.chmod(0o755)
    for repository in (within, tree):
        for key in ("core.fsmonitor", f"filter.{repository.name}.clean", f"filter.{repository.name}.smudge"):
            _git(repository, "config", key, str(script))
        (repository / ".git/hooks").mkdir(exist_ok=True)
        for hook in ("post-index-change", "pre-commit", "reference-transaction"):
            (repository / ".git/hooks" / hook).symlink_to(script)
        (repository / ".gitattributes").write_text(f"* filter={repository.name}\n", encoding="utf-8")
        (repository / "a.py").write_text("A = 2\n", encoding="utf-8")
    ran.unlink(missing_ok=True)
    os.utime(within / "test_a.py", (1, 1))
    words = (("run", "test_a.py"), ("patch",), ("log",), ("impact", "a.py"))
    codes = [place.bench("code", *each, "--in", str(tree)).code for each in words]
    return not ran.exists() and codes == [0, 0, 0, 0]


def odd_values(place: Place) -> bool:
    """A16: values that no reader expected."""
    place.run()
    codes = []
    for name in ("os:system", "subprocess:run", "json:loads"):
        (place.here / "odd.toml").write_text(CONFIG.replace('"static", "runtime_structured"', f'"{name}"'), encoding="utf-8")
        codes.append(place.bench("run", "odd.toml", "--name", "odd").code)
    words = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": '[{"role":"user","parts":5}]'}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in words.items()]
    spans = [{"traceId": "a", "startTimeUnixNano": "1", "attributes": attributes}]
    (place.here / "odd.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}), encoding="utf-8")
    place.bench("import", "odd.json", "--name", "odd")
    return all(code in (1, 2) for code in codes)


ATTACKS: Mapping[str, Attack] = {
    "ids that are paths": names_that_lead_out,
    "traces of any size": traces_of_any_size,
    "a trial that stands twice": a_trial_that_stands_twice,
    "a scheduler's signal, and who listens": a_scheduler_s_signal,
    "flipped bits of the cache": flipped_bits_of_the_cache,
    "plug-ins": plug_ins,
    "lines without end": lines_without_end,
    "a stranger's state of code": a_state_of_a_stranger,
    "two merges of one name": two_merges_of_one_name,
    "a pipe in the place of records": a_pipe_in_the_place_of_records,
    "archives that unpack in a piece": archives_that_unpack_in_a_piece,
    "a full disk": a_disk_that_is_full,
    "a stranger's repository": a_repository_of_a_stranger,
    "odd values": odd_values,
}


def _git(tree: Path, *words: str, given: str = "") -> str:
    user = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", *user, "-C", str(tree), *words], input=given, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _repository(place: Place, *within: str) -> Path:
    """A repository with a first step of `bench code`, and with repositories within it."""
    tree = place.here / "tree"
    for folder in (*(tree / name for name in within), tree):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.py").write_text("A = 1\n", encoding="utf-8")
        (folder / "test_a.py").write_text("def test_a(): pass\n", encoding="utf-8")
        _git(folder, "init", "-q")
        _git(folder, "add", "-A")
        _git(folder, "commit", "-qm", "begin")
    ended = place.bench("code", "run", "--in", str(tree), "test_a.py")
    assert ended.code == 0, ended.output
    place.ended.clear()
    return tree


def attacked(names: Iterable[str] = ATTACKS) -> Iterator[Attacked]:
    """Yield the results of the attacks of these names."""
    for name in names:
        with tempfile.TemporaryDirectory(prefix="strangers-", ignore_cleanup_errors=True) as folder:
            place = Place(Path(folder))
            before = place.outside()
            kept = ATTACKS[name](place)
            outside = len(before.items() ^ place.outside().items()) if name != "ids that are paths" else int(not kept)
            yield Attacked(
                name,
                len(place.ended),
                outside,
                max(ended.peak for ended in place.ended),
                max(ended.seconds for ended in place.ended),
                " ".join(map(str, sorted({ended.code for ended in place.ended}))),
                sum("Traceback" in ended.output for ended in place.ended),
                kept,
            )


def held(row: Attacked) -> bool:
    """Return whether nothing was written outside, no command broke off or took too much, and what is promised came out."""
    return row.kept and not row.outside and not row.tracebacks and row.peak <= PEAK and row.seconds < SECONDS


if __name__ == "__main__":
    for each in attacked(sys.argv[1:] or ATTACKS):
        print("held" if held(each) else "FAILED", each, flush=True)
