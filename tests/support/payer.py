"""An agent that pays over HTTP, and the service that it pays at, in one file:

payer.py serve PORT DATABASE    POST /pay (a key in `Idempotency-Key` is done once), /refund, /add (a lost update),
                                /state (a state with an older `version` changes nothing); GET /paid?BILL
payer.py MODE                   MODE is words of:

two      it makes two payments, and ends with exit code 1 at the first that fails
keyed    its payments carry a key
again    it makes a payment once more if an error of the server is the answer
regrets  it gives back what it paid twice
double   it makes each payment twice, with nothing broken
notes    it adds two lines at the same time
intent   it writes into the file JOURNAL that it pays, then pays, and never pays what stands there
hasty    it waits three seconds for an answer, looks, and pays again if no payment stands; `blind`: it does not look, and
         each payment takes a second and a half
equal    it makes two equal payments, and writes each into JOURNAL when it is done
ships    it sets an order's state to `packed` and then to `sent`; `numbered`: each with a version
looks    of two bills it pays those that are not paid; `lease`: it ends with exit code 1 where another process has JOURNAL
"""

import fcntl
import json
import os
import sqlite3
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TABLES = """
    CREATE TABLE payment (id INTEGER PRIMARY KEY, bill TEXT, cents INTEGER, key TEXT UNIQUE);
    CREATE TABLE note (owner TEXT PRIMARY KEY, text TEXT);
    INSERT INTO note VALUES ('Ada', '');
    CREATE TABLE parcel (id INTEGER PRIMARY KEY, state TEXT, version INTEGER);
    INSERT INTO parcel VALUES (1, 'new', 0);
"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        with sqlite3.connect(sys.argv[3], timeout=10) as database:
            bill = self.path.partition("?")[2]
            [[paid]] = database.execute("SELECT count(*) FROM payment WHERE ? IN ('', bill)", (bill,)).fetchall()
        database.close()
        content = str(paid).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        database = sqlite3.connect(sys.argv[3], timeout=10, isolation_level=None)
        if self.path == "/add":
            [[text]] = database.execute("SELECT text FROM note").fetchall()
            time.sleep(0.4 + 0.3 * (asked["line"] == "second"))
            database.execute("UPDATE note SET text = ?", (f"{text}{asked['line']}. ",))
        elif self.path == "/state":
            version = asked.get("version", 0)
            database.execute("UPDATE parcel SET state = ?, version = ? WHERE version <= ?", (asked["state"], version, version))
        else:
            time.sleep(asked.get("seconds", 0))
            cents = asked["cents"] if self.path == "/pay" else -asked["cents"]
            key = self.headers.get("Idempotency-Key")
            database.execute("INSERT OR IGNORE INTO payment (bill, cents, key) VALUES (?, ?, ?)", (asked["bill"], cents, key))
        database.close()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


def post(path: str, key: str = "", **content: Any) -> None:
    headers = {"Idempotency-Key": key} if key else {}
    request = urllib.request.Request(f"{os.environ['PAY_URL']}{path}", json.dumps(content).encode(), headers)
    urllib.request.urlopen(request, timeout=3 if "hasty" in sys.argv[1] else 20).close()


def pay_hastily(mode: set[str]) -> None:
    key = "key of a" if "keyed" in mode else ""
    seconds = 1.5 if "blind" in mode else 0  # its process ends while a held payment is delivered
    try:
        post("/pay", key, bill="a", cents=500, seconds=seconds)
    except OSError:
        if "blind" not in mode and is_paid():
            print("Paid.")
            return
        post("/pay", key, bill="a", cents=500, seconds=seconds)
        time.sleep(seconds / 3)
    print("Paid.")


def is_paid(bill: str = "") -> bool:
    with urllib.request.urlopen(f"{os.environ['PAY_URL']}/paid?{bill}", timeout=10) as answer:
        return bool(answer.read() != b"0")


def pay(bill: str, mode: set[str]) -> None:
    key = f"key of {bill}" if "keyed" in mode else ""
    failed = 0
    for _ in range(2):
        try:
            post("/pay", key, bill=bill, cents=500)
            break
        except urllib.error.HTTPError:
            if "again" not in mode:
                raise
            failed += 1
    if failed and "regrets" in mode:
        post("/refund", bill=bill, cents=500)


def add_notes() -> None:
    both = [threading.Thread(target=post, args=("/add",), kwargs={"line": line}) for line in ("first", "second")]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()


def pay_what_is_unpaid(mode: set[str]) -> None:
    with Path(os.environ["JOURNAL"]).open("a", encoding="utf-8") as journal:
        if "lease" in mode:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for bill in ("a", "b"):
            if not is_paid(bill):
                pay(bill, mode)
    print("Paid.")


def pay_by_journal(mode: set[str]) -> None:
    journal = Path(os.environ["JOURNAL"])
    known = journal.read_text(encoding="utf-8").split() if journal.exists() else []
    for _ in range(len(known), 2 if "equal" in mode else 1):
        if "intent" in mode:
            journal.write_text("paid", encoding="utf-8")
        pay("a", mode)
        if "equal" in mode:
            with journal.open("a", encoding="utf-8") as lines:
                lines.write("paid\n")
    print("Paid.")


def act(mode: set[str]) -> None:
    if "notes" in mode:
        add_notes()
    elif "intent" in mode or "equal" in mode:
        pay_by_journal(mode)
    elif "ships" in mode:
        for version, state in enumerate(("packed", "sent"), 1):
            content: dict[str, Any] = {"version": version} if "numbered" in mode else {}
            post("/state", state=state, **content)
    elif "looks" in mode:
        pay_what_is_unpaid(mode)
    elif "hasty" in mode:
        pay_hastily(mode)
    else:
        for bill in ("a", "b") if "two" in mode else ("a",):
            for _ in range(1 + ("double" in mode)):
                pay(bill, mode)
        print("Paid.")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
    try:
        act({*sys.argv[1].split()})
    except OSError as error:
        print(f"It failed: {type(error).__name__}")
        sys.exit(1)
