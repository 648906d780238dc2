"""A planner, two workers, and between them a queue in PostgreSQL (QUEUE: its DSN), each a process. The foreman starts
another for each that dies.

The planner asks the model, and puts each call of a tool into the queue as a job. A worker makes a job's call and writes down
the answer. With --adapter there is one worker, so that its successor takes up its job.

--keys      a call has a key made of its job's number; the worker's adapter of the tools makes it, in a form of its own
--adapter   once a worker has died, the next has version 2 of the adapter, which makes keys of another form
--planner   once a worker has died, version 2 of the planner goes on, and plans anew: the stored plan is another version's
--pinned    the plan keeps the keys of its calls, and a planner goes on with the plan of another version
"""

import os
import subprocess
import sys
from pathlib import Path

try:
    from queue_workers import SCHEMA, TABLES, db
except Exception as error:  # no package, or no server
    sys.exit(f"there is no psycopg, or no PostgreSQL server at QUEUE ({type(error).__name__})")

ADAPTER, PLANNER = "--adapter" in sys.argv, "--planner" in sys.argv


def started(role: str, version: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, Path(__file__).with_name("queue_workers.py"), role, version, *sys.argv[1:]])


def main() -> None:
    """Until the planner has ended well."""
    staff: dict[int, tuple[str, str, subprocess.Popen]] = {}
    versions = {"planner": "1", "worker": "1"}
    wanted = ["planner", "worker"] if ADAPTER else ["planner", "worker", "worker"]  # the successor is to take up the job
    while True:
        for role in wanted:
            process = started(role, versions[role])
            staff[process.pid] = role, versions[role], process
        pid, status = os.wait()
        role, version, process = staff.pop(pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        if role == "planner" and process.returncode == 0:
            break
        print(f"{role} {version} ended with {process.returncode}", flush=True)
        wanted = [role]
        if role == "worker":
            versions = {"planner": "2" if PLANNER else "1", "worker": "2" if ADAPTER else "1"}
            if PLANNER:
                next(each for name, _, each in staff.values() if name == "planner").kill()
    for _, _, process in staff.values():
        process.kill()
        process.wait()


db.execute(f"CREATE SCHEMA {SCHEMA}; {TABLES}")
try:
    main()
finally:
    db.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
