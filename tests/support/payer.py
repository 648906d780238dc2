"""An agent that pays over HTTP, and the service that it pays at, in one file:

payer.py serve PORT DATABASE [LOG]
    POST /pay        a key in `Idempotency-Key` is done once, or for `known_for` seconds; `later`: two seconds after its answer
    POST /withdraw   it is paid and debited once for each key; /refund, /batch, /debit
    POST /loose      into a table without a key; /log: a line with the time is appended to the file LOG
    POST /add        a lost update; /state: a state with an older `version` changes nothing; /priority: it is set
    POST /balance    it is refused if the balance is not what it `was`; /settle: the bill, if it is as it was `shown`
    POST /stock      it is refused if the row has not the `version`
    GET /paid?BILL, /balance, /bill, /ticket, /stock; PUT /bill
payer.py MODE                   MODE is words of:

two      it makes two payments, and ends with exit code 1 at the first that fails
keyed    its payments carry a key
again    it makes a payment once more if an error of the server is the answer; `insists`: also if no answer comes; `waits`: a
         second later, and the service knows a key for half a second; `soon`: at once, and it knows a key for a minute
later    it is answered before the service pays
regrets  it gives back what it paid twice
leaves   it leaves a process running when it ends
double   it makes each payment twice, with nothing broken
notes    it adds two lines at the same time
intent   it writes into the file JOURNAL that it pays, then pays, and never pays what stands there
hasty    it waits three seconds for an answer, looks, and pays again if no payment stands; `blind`: it does not look, and
         each payment takes a second and a half
brief    it waits one second for an answer
equal    it makes two equal payments, and writes each into JOURNAL when it is done
fresh, stored   its payments carry a new key at each try; one that it wrote into JOURNAL before
batch, loose, log, rates   it pays two bills in one request; it is told in a table without a key; in a file; it debits an
         amount that varies
two rates   it pays two bills from one account, each an amount that varies and that stands in JOURNAL
sdk      its client, urllib3, makes a request again by itself
child    another process makes its payments; `alone`: in a session and with an environment of its own
shuffled, parallel   it makes its payments in any order; all at the same time
puts     it sets what a bill comes to
ships    it sets an order's state to `packed` and then to `sent`; `numbered`: each with a version
debits   it reads the balance and writes what is left; `swaps`: it says what the balance was, and reads it again where it is
         refused; `once`: it then ends with exit code 1; `adds`: it lets the service subtract
approves  it settles the bill that it read; `shown`: it says what it read; `asks`: where it is refused it reads the bill again
         and settles that, which nobody approved; `most`: it says the most that may be paid
takes    it reads a stock and writes what is left, and the row counts its versions; `versioned`: it says which version it read,
         and reads again where that is refused; `once`: it then ends with exit code 1
triages  it reads a ticket's priority and sets it to 3; `raises`: it sets it two higher than it was; `file`: it reads the
         service's database itself
looks    of two bills it pays those that are not paid; `lease`: it ends with exit code 1 where another process has JOURNAL
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import sys
import threading
import time
from contextlib import closing
from functools import partial

from small_http import Message, Refused, ask, serve

TYPE_CHECKING = False
if TYPE_CHECKING:  # it starts hundreds of times, and loads what its way needs
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

TABLES = """
    CREATE TABLE payment (id INTEGER PRIMARY KEY, bill TEXT, cents INTEGER, key TEXT UNIQUE);
    CREATE TABLE note (owner TEXT PRIMARY KEY, text TEXT);
    INSERT INTO note VALUES ('Ada', '');
    CREATE TABLE parcel (id INTEGER PRIMARY KEY, state TEXT, version INTEGER);
    INSERT INTO parcel VALUES (1, 'new', 0);
    CREATE TABLE account (owner TEXT PRIMARY KEY, cents INTEGER);
    INSERT INTO account VALUES ('Ada', 5000);
    CREATE TABLE bill (name TEXT PRIMARY KEY, cents INTEGER);
    INSERT INTO bill VALUES ('a', 500);
    CREATE TABLE ticket (id INTEGER PRIMARY KEY, priority INTEGER);
    INSERT INTO ticket VALUES (1, 1);
    CREATE TABLE stock (item TEXT PRIMARY KEY, amount INTEGER, version INTEGER);
    INSERT INTO stock VALUES ('bolt', 100, 1);
    CREATE TABLE loose (bill TEXT, cents INTEGER);
"""
last_paid = dict[str, float]()
"""The keys that the service knows for a while -> when it was paid."""


LOOKS = {
    "/balance": "SELECT cents FROM account",
    "/bill": "SELECT cents FROM bill",
    "/ticket": "SELECT priority FROM ticket",
    "/stock": "SELECT amount * 1000 + version FROM stock",
}
PAID = "SELECT count(*) FROM payment WHERE ? IN ('', bill)"


def journal_file() -> Path:
    from pathlib import Path

    return Path(os.environ["JOURNAL"])


def answer(request: Message) -> tuple[int, bytes]:
    method, address, _ = request.words
    path, _, bill = address.partition("?")
    import sqlite3

    with closing(sqlite3.connect(sys.argv[3], timeout=10, isolation_level=None)) as database:
        if method == "GET":
            query = LOOKS.get(path, PAID)
            [[paid]] = database.execute(query, (bill,) if query == PAID else ()).fetchall()
            return 200, str(paid).encode()
        asked = json.loads(request.content)
        if asked.pop("later", False):
            threading.Timer(2, answer, (Message(request.words, request.headers, json.dumps(asked).encode()),)).start()
            return 202, b"{}"
        if method == "PUT":
            database.execute("INSERT OR REPLACE INTO bill VALUES ('b', ?)", (asked["cents"],))
            return 200, b"{}"
        return _posted(database, path, asked, request.headers.get("idempotency-key")), b"{}"


def _posted(database: sqlite3.Connection, path: str, asked: dict[str, Any], key: str | None) -> int:  # noqa: C901
    match path:
        case "/add":
            [[text]] = database.execute("SELECT text FROM note").fetchall()
            time.sleep(0.4 + 0.3 * (asked["line"] == "second"))
            database.execute("UPDATE note SET text = ?", (f"{text}{asked['line']}. ",))
        case "/state":
            version = asked.get("version", 0)
            database.execute("UPDATE parcel SET state = ?, version = ? WHERE version <= ?", (asked["state"], version, version))
        case "/withdraw":
            if _paid(database, asked, asked["cents"], key):
                database.execute("UPDATE account SET cents = cents - ?", (asked["cents"],))
        case "/debit":
            database.execute("UPDATE account SET cents = cents - ?", (asked["cents"],))
        case "/priority":
            database.execute("UPDATE ticket SET priority = ?", (asked["to"],))
        case "/balance":
            query = "UPDATE account SET cents = ? WHERE cents = coalesce(?, cents)"
            return 200 if database.execute(query, (asked["cents"], asked["was"])).rowcount else 409
        case "/stock":
            query = "UPDATE stock SET amount = ?, version = version + 1 WHERE version = coalesce(?, version)"
            return 200 if database.execute(query, (asked["amount"], asked["version"])).rowcount else 409
        case "/settle":
            query = """INSERT INTO payment (bill, cents)
                SELECT 'a', cents FROM bill WHERE cents = coalesce(?, cents) AND cents <= coalesce(?, cents)"""
            return 200 if database.execute(query, (asked["shown"], asked["most"])).rowcount else 409
        case "/batch":
            database.executemany("INSERT INTO payment (bill, cents) VALUES (?, ?)", asked["bills"])
        case "/loose":
            database.execute("INSERT INTO loose VALUES (?, ?)", (asked["bill"], asked["cents"]))
        case "/log":
            with open(sys.argv[4], "a", encoding="utf-8") as log:
                log.write(f"{time.time()} paid {asked['cents']}\n")
        case _:
            time.sleep(asked.get("seconds", 0))
            if key and (known_for := asked.get("known_for")):
                if time.monotonic() - last_paid.get(key, -known_for) < known_for:
                    return 200
                last_paid[key], key = time.monotonic(), None
            _paid(database, asked, asked["cents"] if path == "/pay" else -asked["cents"], key)
    return 200


def _paid(database: sqlite3.Connection, asked: dict[str, Any], cents: int, key: str | None) -> int:
    query = "INSERT OR IGNORE INTO payment (bill, cents, key) VALUES (?, ?, ?)"
    return database.execute(query, (asked["bill"], cents, key)).rowcount


def post(path: str, key: str = "", method: str = "POST", **content: Any) -> None:
    headers = {"Idempotency_Key": key} if key else {}
    timeout = 1 if "brief" in sys.argv[1] else 3 if "hasty" in sys.argv[1] else 20
    ask(f"{os.environ['PAY_URL']}{path}", json.dumps(content).encode(), method, timeout, **headers)


def is_paid(bill: str = "") -> bool:
    return read(f"/paid?{bill}") > 0


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


def key_of(bill: str, mode: set[str]) -> str:
    if "stored" not in mode:
        return f"key of {bill}" if "keyed" in mode else ""
    journal = journal_file()
    if not journal.exists():
        journal.write_text(os.urandom(16).hex(), encoding="utf-8")
    return f"{journal.read_text(encoding='utf-8')} {bill}"


def pay(bill: str, mode: set[str]) -> None:
    more: dict[str, Any] = {"known_for": 0.5 if "waits" in mode else 60} if mode & {"waits", "soon"} else {}
    more |= {"later": True} if "later" in mode else {}
    key = key_of(bill, mode)

    def once() -> None:
        tried = os.urandom(16).hex() if "fresh" in mode else key
        post("/pay", tried, bill=bill, cents=500, **more)

    if again(mode, once) and "regrets" in mode:
        post("/refund", bill=bill, cents=500)


def again(mode: set[str], work: Callable[[], None]) -> bool:
    """Do this, once more if it fails, and return whether it failed."""
    try:
        work()
    except OSError as error:
        if "insists" not in mode and ("again" not in mode or not isinstance(error, Refused)):
            raise
        time.sleep(1 if "waits" in mode else 0)
        work()
        return True
    return False


def at_once(*works: Callable[[], None]) -> None:
    """Do all of it at the same time, and raise the first error."""
    errors = list[OSError]()

    def done(work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=done, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def add_notes(_: set[str]) -> None:
    at_once(*(partial(post, "/add", line=line) for line in ("first", "second")))


def read(path: str) -> int:
    return int(ask(f"{os.environ['PAY_URL']}{path}", method="GET", timeout=10))


def debit(mode: set[str]) -> None:
    for _ in range(3):
        was = read("/balance")
        try:
            if "adds" in mode:
                post("/debit", cents=500)
            else:
                post("/balance", cents=was - 500, was=was if "swaps" in mode else None)
        except Refused:
            if "once" in mode:
                raise
            continue
        print("Debited.")
        return
    sys.exit(1)


def take(mode: set[str]) -> None:
    for _ in range(3):
        amount, version = divmod(read("/stock"), 1000)
        try:
            post("/stock", amount=amount - 3, version=version if "versioned" in mode else None)
        except Refused:
            if "once" in mode:
                raise
            continue
        print("Taken.")
        return
    sys.exit(1)


def pay_what_is_unpaid(mode: set[str]) -> None:
    with journal_file().open("a", encoding="utf-8") as journal:
        if "lease" in mode:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for bill in ("a", "b"):
            if not is_paid(bill):
                pay(bill, mode)
    print("Paid.")


def pay_by_journal(mode: set[str]) -> None:
    journal = journal_file()
    known = journal.read_text(encoding="utf-8").split() if journal.exists() else []
    for nth in range(len(known), 2 if "equal" in mode else 1):
        if "intent" in mode:
            journal.write_text("paid", encoding="utf-8")
        pay(f"a{nth}" if "keyed" in mode else "a", mode)
        if "equal" in mode:
            with journal.open("a", encoding="utf-8") as lines:
                lines.write("paid\n")
    print("Paid.")


def ship(mode: set[str]) -> None:
    for version, state in enumerate(("packed", "sent"), 1):
        post("/state", state=state, version=version if "numbered" in mode else 0)


def settle(mode: set[str]) -> None:
    shown = read("/bill")
    try:
        post("/settle", shown=shown if mode & {"shown", "asks"} else None, most=shown if "most" in mode else None)
    except Refused:
        if "asks" not in mode:
            raise
        post("/settle", shown=read("/bill"), most=None)
    print("Settled.")


def triage(mode: set[str]) -> None:
    if "file" in mode:
        import sqlite3

        with closing(sqlite3.connect(sys.argv[2])) as database:
            was = int(database.execute(LOOKS["/ticket"]).fetchone()[0])
    else:
        was = read("/ticket")
    post("/priority", to=was + 2 if "raises" in mode else 3)


def pay_each(mode: set[str]) -> None:
    bills = ["a", "b"] if mode & {"two", "shuffled", "parallel"} else ["a"]
    if "shuffled" in mode:
        random.shuffle(bills)
    if "parallel" in mode:
        at_once(*(partial(pay, bill, mode) for bill in bills))
    else:
        for bill in bills:
            for _ in range(1 + ("double" in mode)):
                pay(bill, mode)
    if "leaves" in mode:
        os.posix_spawn(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], os.environ, setsid=True)
    print("Paid.")


def pay_by_child(mode: set[str]) -> None:
    words, alone = [sys.executable, __file__, " ".join(mode - {"child"})], "alone" in mode
    environment = {"PAY_URL": os.environ["PAY_URL"]} if alone else os.environ
    child = os.posix_spawn(sys.executable, words, environment, setsid=alone)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def put(mode: set[str]) -> None:
    again(mode, partial(post, "/bill", method="PUT", cents=700))


def pay_otherwise(mode: set[str]) -> None:
    contents: dict[str, Any] = {
        "batch": {"bills": [("a", 500), ("b", 700)]},
        "loose": {"bill": "a", "cents": 500},
        "log": {"cents": 500},
        "debit": {"cents": 900 + random.randrange(200)},
    }
    path = next((path for path in contents if path in mode), "debit")
    again(mode, partial(post, f"/{path}", **contents[path]))
    print("Paid.")


def pay_two_rates(mode: set[str]) -> None:
    journal = journal_file()
    if not journal.exists():
        journal.write_text(" ".join(str(900 + random.randrange(200)) for _ in "ab"), encoding="utf-8")
    for bill, cents in zip("ab", journal.read_text(encoding="utf-8").split(), strict=True):
        key = f"key of {bill}" if "keyed" in mode else ""
        again(mode, partial(post, "/withdraw", key, bill=bill, cents=int(cents)))
    print("Paid.")


def pay_by_sdk(_: set[str]) -> None:
    import urllib3

    tries = urllib3.Retry(total=3, allowed_methods=None, backoff_factor=0.05, status_forcelist=[502, 503, 504])
    content = json.dumps({"bill": "a", "cents": 500})
    urllib3.PoolManager(retries=tries).request("POST", f"{os.environ['PAY_URL']}/pay", body=content, timeout=20)
    print("Paid.")


WAYS = {
    "child": pay_by_child,
    "two rates": pay_two_rates,
    **dict.fromkeys(("batch", "loose", "log", "rates"), pay_otherwise),
    "sdk": pay_by_sdk,
    "puts": put,
    "notes": add_notes,
    "intent": pay_by_journal,
    "equal": pay_by_journal,
    "ships": ship,
    "approves": settle,
    "debits": debit,
    "looks": pay_what_is_unpaid,
    "triages": triage,
    "takes": take,
    "hasty": pay_hastily,
}


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), answer)
    try:
        words = {*sys.argv[1].split()}
        next((WAYS[word] for word in WAYS if {*word.split()} <= words), pay_each)(words)
    except OSError as error:
        print(f"It failed: {type(error).__name__}")
        sys.exit(1)
