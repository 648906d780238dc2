"""Have `bench probe --init` watch each pair, and compare what it wrote with what was written by hand: `nox -s probe -- --init`.

python -m probe.init [--only AGENT-SERVER ...] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from with_postgres import free_port, postgres

from probe import parts
from probe.__main__ import AGENTS, lay_out
from probe.subjects import FOREIGN, Foreign, Parts

CHOSEN = frozenset(("name", "environment", "said_done", "takes_copies", "limit", "patience", "model.script"))
"""What an owner chooses, and no run shows. By hand a script stands for the model; here it is at the model's address."""
WAIT = 30.0


def differences(by_hand: Mapping[str, Any], written: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Yield what differs between a file by hand and one that was written, a line each."""
    first, second = (_plain(values, folder) for values in (by_hand, written))
    for key in dict.fromkeys((*first, *second)):
        if first.get(key) != second.get(key):
            yield f"{key}: by hand {json.dumps(first.get(key))}, written {json.dumps(second.get(key))}"


def _plain(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what a file says in one form: words of the command, whole paths, tables in order."""
    plain = dict(values)
    plain["agent"] = shlex.split(plain["agent"]) if isinstance(plain.get("agent"), str) else plain.get("agent")
    for store in plain.pop("store", ()):
        for kind, place in store.items():
            if kind in ("sqlite", "folder", "file", "memory"):
                plain[f"store {kind} {os.path.relpath(folder / place, folder)}"] = store.get("ignore", [])
            elif kind != "ignore":
                plain[f"store {kind}"] = place
    for table in ("model", "service"):
        given = plain.pop(table, None)
        for entry in given if isinstance(given, list) else [given] if given else []:
            plain |= {f"{table}.{key}": value for key, value in entry.items()}
    if "model.script" in plain or "model.variables" in plain:
        plain.setdefault("model.variables", ["OPENAI_BASE_URL"])
        plain.setdefault("model.dialect", "chat")
    return {key: value for key, value in plain.items() if key not in CHOSEN}


def initialised(path: Path, by_hand: Mapping[str, Any], foreign: Foreign, installed: Parts) -> Mapping[str, Any]:
    """Return what `bench probe --init` writes, with the model and the service of a pair at work."""
    folder = path.parent
    with ExitStack() as started:
        environment = {**os.environ, **by_hand["environment"]}
        script = _at_port(by_hand["model"]["script"])
        environment["OPENAI_BASE_URL"] = f"http://127.0.0.1:{_started(started, script, folder)}/v1"
        for service in by_hand.get("service", ()):
            environment[service["variable"]] = f"http://127.0.0.1:{_started(started, _at_port(service['command']), folder)}"
            environment["DATABASE_URL"] = dict(foreign.store(folder, installed))["postgres"]
        path.unlink()
        words = ["bench", "probe", path.name, "--init", "--yes", "--", *by_hand["agent"]]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    (folder / "init.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _at_port(command: Sequence[str]) -> tuple[list[str], int]:
    port = free_port()
    return [word.replace("{port}", str(port)) for word in command], port


def _started(started: ExitStack, command: tuple[list[str], int], folder: Path) -> int:
    """Start a server, and return its port once it takes connections."""
    words, port = command
    process = started.enter_context(subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    started.callback(process.kill)
    until = time.monotonic() + WAIT
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return port
        time.sleep(0.1)
    raise SystemExit(f"{words[0]} does not listen")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m probe.init", description=__doc__)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--folder", type=Path, default=Path("build", "probe"))
    asked = parser.parse_args(words)
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    parts.install(folder)
    equal, pairs = 0, 0
    with postgres(folder) as address:
        installed = Parts(folder / parts.PYTHON, folder / parts.NODE, folder / "agents", address)
        for agent, foreign in ((agent, foreign) for foreign in FOREIGN for agent in AGENTS):
            name = f"{agent.name}-{foreign.name}"
            if (asked.only and name not in asked.only) or installed.lack(agent.program, foreign):
                continue
            path = lay_out(agent, foreign, folder / "init" / name, installed)
            by_hand = tomllib.loads(path.read_text(encoding="utf-8"))
            lines = list(differences(by_hand, initialised(path, by_hand, foreign, installed), path.parent))
            pairs, equal = pairs + 1, equal + (not lines)
            print(name, *(lines or ["equal"]), sep="\n    ", flush=True)
    print(f"{equal} of {pairs} pairs are equal")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
