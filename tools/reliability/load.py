"""A run of ours under load: so many calls in flight at an endpoint that answers each after a fixed time, beside a bare client
that makes as many in the same minute. The endpoint's own account is the judge of both."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.request import Request, urlopen

from bench.experiment.reading import read_trials
from bench.experiment.record import TrialRecord
from bench.runtime.events import Called

ROOT = Path(__file__).parents[2]
PACK, ARCHITECTURE, CALLS = "k8s_oomkill", "runtime_structured", 5
CONFIG = """
name = "load"
scenarios = ["{pack}"]
architectures = ["{architecture}"]
models = ["local"]
repetitions = {repetitions}
seed = 1

[plan.none]
[model.local]
kind = "openai"
base_url = "{url}"
concurrency = {in_flight}
"""


@contextmanager
def server(seconds: float) -> Iterator[str]:
    reference = json.loads((ROOT / "scenarios" / PACK / "reference" / "answer.json").read_text())
    replies = {f"# Task: {name}\n": json.dumps(answer) for name, answer in reference.items()}
    command = [sys.executable, str(ROOT / "tools/reliability/server.py"), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(replies) + "\n")
        process.stdin.flush()
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.stdin.close()


def taken_log(url: str):
    with urlopen(Request(url + "/log", method="DELETE")) as answer:
        return json.load(answer)

if __name__ == "__main__":
    seconds, n, rounds = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    extra = sys.argv[4:]
    with server(seconds) as url, tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "load.toml"
        config.write_text(CONFIG.format(pack=PACK, architecture=ARCHITECTURE, url=url, in_flight=n, repetitions=n * rounds // CALLS))
        began=time.monotonic()
        command=[sys.executable, *extra, "-m", "bench", "run", str(config), "--scenarios", str(ROOT / "scenarios")]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode: print(done.stdout[-500:], done.stderr[-3000:])
        import resource
        ru = resource.getrusage(resource.RUSAGE_CHILDREN)
        log = taken_log(url)
        spans = sorted(log["spans"])[1:]
        wall = spans[-1][1] - spans[0][0] if 0 else max(b for a,b in spans) - spans[0][0]
        trials = list(read_trials(next((Path(folder)/"results").iterdir())))
        calls = [e for t in trials for e in t.events if isinstance(e, Called)]
        rec = sum(c.seconds for c in calls)/len(calls); own = sum(b-a for a,b in spans)/len(spans)
        print(f"n={n} s={seconds} calls={len(calls)} served={len(spans)} most={log['most']} wall/ideal {wall/(seconds*len(spans)/n):.3f} rec {rec:.4f} server {own:.4f} ratio {rec/own:.3f} cpu/call {(ru.ru_utime+ru.ru_stime)/len(calls)*1000:.2f} (with start) total {time.monotonic()-began:.1f} outcomes { {t.outcome for t in trials} } fw {sum(t.framework_seconds for t in trials)/len(calls)*1000:.2f} ms api {sum(t.api_seconds for t in trials)/len(calls):.3f}")
