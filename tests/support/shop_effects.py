"""A small shop in a database, a folder or a file, what can be done in it, and how often each of that stands in it.

Each kind is done with fixed values for Ada and, as `varying_KIND`, with an amount and a time that vary for Bob. What `counts`
returns is read by queries of its own.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

FIXED = ("debit", "append", "insert", "upsert", "counter", "audit", "delete", "commit", "json")
KINDS = (*FIXED, "other_debit", *(f"varying_{kind}" for kind in FIXED))
SET = frozenset(("upsert", "delete", "varying_upsert", "varying_delete"))
"""What is the same however often it is done."""
TRIED = frozenset(("counter", "audit", "varying_counter", "varying_audit"))
"""What is done once, and each try is counted or noted."""
OTHER_DEBIT, AMOUNT = 300, 1000
OWNERS = {"ada": "", "bob": "varying_"}
TABLES = """
    CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER);
    CREATE TABLE notes (name TEXT PRIMARY KEY, body TEXT);
    CREATE TABLE payments (id {made_key}, name TEXT, amount INTEGER, at FLOAT);
    CREATE TABLE choices (name TEXT PRIMARY KEY, value TEXT, updated_at FLOAT);
    CREATE TABLE paid (name TEXT PRIMARY KEY, amount INTEGER, tries INTEGER);
    CREATE TABLE audit (id {made_key}, name TEXT, at FLOAT);
    CREATE TABLE audited (name TEXT PRIMARY KEY, amount INTEGER);
    CREATE TABLE carts (name TEXT PRIMARY KEY, what TEXT);
    CREATE TABLE orders (id {made_key}, name TEXT, at FLOAT);
    CREATE TABLE items (id {made_key}, order_id INTEGER, what TEXT);
    CREATE TABLE stock (pieces INTEGER);
    CREATE TABLE documents (name TEXT PRIMARY KEY, held TEXT);
    INSERT INTO stock VALUES (100000); INSERT INTO orders (name) VALUES ('eve');
"""
OWNED = """
    INSERT INTO accounts VALUES ('{name}', 100000); INSERT INTO notes VALUES ('{name}', 'begun;');
    INSERT INTO choices VALUES ('{name}', 'square', 0); INSERT INTO carts VALUES ('{name}', 'pen');
    INSERT INTO documents VALUES ('{name}', '{document}');
"""
DOCUMENT = {"cents": 100_000, "paid": [], "at": 0}
STATEMENTS = {
    "debit": "UPDATE accounts SET balance = balance - {amount} WHERE name = '{name}'",
    "append": "UPDATE notes SET body = body || 'paid {amount};' WHERE name = '{name}'",
    "insert": "INSERT INTO payments (name, amount, at) VALUES ('{name}', {amount}, {at})",
    "upsert": """INSERT INTO choices VALUES ('{name}', 'round', {at})
        ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at""",
    "counter": "INSERT INTO paid VALUES ('{name}', {amount}, 1) ON CONFLICT (name) DO UPDATE SET tries = paid.tries + 1",
    "audit": """INSERT INTO audited VALUES ('{name}', {amount}) ON CONFLICT (name) DO NOTHING;
        INSERT INTO audit (name, at) VALUES ('{name}', {at})""",
    "delete": "DELETE FROM carts WHERE name = '{name}'",
    "commit": """BEGIN; INSERT INTO orders (name, at) VALUES ('{name}', {at});
        INSERT INTO items (order_id, what) SELECT max(id), 'pen of {name}' FROM orders;
        INSERT INTO items (order_id, what) SELECT max(id), 'ink of {name}' FROM orders;
        UPDATE stock SET pieces = pieces - 2; COMMIT""",
}
QUERIES = {
    "append": "SELECT (length(body) - length(replace(body, ';', ''))) - 1 FROM notes WHERE name = '{name}'",
    "insert": "SELECT count(*) FROM payments WHERE name = '{name}'",
    "upsert": "SELECT count(*) FROM choices WHERE name = '{name}' AND value = 'round'",
    "counter": "SELECT coalesce(sum(tries), 0) FROM paid WHERE name = '{name}'",
    "audit": "SELECT count(*) FROM audit WHERE name = '{name}'",
    "delete": "SELECT 1 - count(*) FROM carts WHERE name = '{name}'",
    "commit": "SELECT count(*) / 2 FROM items WHERE what LIKE '% of {name}'",
}
Execute = Callable[[str, str], Any]
"""Executes SQL in a database, and returns the rows that it selects."""


def sql_of_shop(made_key: str) -> str:
    owned = (OWNED.replace("{name}", name).replace("{document}", json.dumps(DOCUMENT)) for name in OWNERS)
    return TABLES.replace("{made_key}", made_key) + "".join(owned)


def values_of(kind: str) -> dict[str, Any]:
    """Return what one doing of a kind says: whose it is, the amount, the time."""
    if kind.startswith("varying_"):
        return {"name": "bob", "amount": 900 + secrets.randbelow(200), "at": time.time()}
    return {"name": "ada", "amount": OTHER_DEBIT if kind == "other_debit" else AMOUNT, "at": 1_700_000_000}


def plain(kind: str) -> str:
    return {"other_debit": "debit"}.get(kind, kind.removeprefix("varying_"))


def paid_in(document: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    paid = [*document["paid"], {"amount": values["amount"]}]
    return {"cents": document["cents"] - values["amount"], "paid": paid, "at": values["at"]}


def do_by_sql(execute: Execute, place: str, kind: str) -> None:
    values = values_of(kind)
    if plain(kind) == "json":
        [[held]] = execute(place, f"SELECT held FROM documents WHERE name = '{values['name']}'")
        held = json.dumps(paid_in(json.loads(held), values))
        execute(place, f"UPDATE documents SET held = '{held}' WHERE name = '{values['name']}'")
    else:
        execute(place, STATEMENTS[plain(kind)].format(**values))


def counts_by_sql(execute: Execute, place: str) -> dict[str, int]:
    counts = dict[str, int]()
    for name, prefix in OWNERS.items():
        for kind, query in QUERIES.items():
            [[counts[prefix + kind]]] = execute(place, query.format(name=name))
        [[balance]] = execute(place, f"SELECT balance FROM accounts WHERE name = '{name}'")
        [[held]] = execute(place, f"SELECT held FROM documents WHERE name = '{name}'")
        counts |= of_balance(prefix, balance) | of_document(prefix, json.loads(held))
    return counts


def of_balance(prefix: str, balance: int) -> dict[str, int]:
    """Return how often was debited: amounts that vary lie around a thousand."""
    gone = 100_000 - balance
    if prefix:
        return {"varying_debit": round(gone / AMOUNT)}
    others = gone // 100 % 10 // 3
    return {"debit": (gone - others * OTHER_DEBIT) // AMOUNT, "other_debit": others}


def of_document(prefix: str, document: Mapping[str, Any]) -> dict[str, int]:
    assert len(document["paid"]) == round((100_000 - document["cents"]) / AMOUNT)
    return {f"{prefix}json": len(document["paid"])}


def execute_sqlite(place: str, sql: str) -> Any:
    with closing(sqlite3.connect(place, isolation_level=None)) as database:
        if sql.startswith("SELECT"):
            return database.execute(sql).fetchall()
        return database.executescript(sql) and None


def execute_postgres(place: str, sql: str) -> Any:
    import psycopg  # noqa: PLC0415  an extra

    with psycopg.connect(place, autocommit=True) as session:
        rows = session.execute(sql.encode())
        return rows.fetchall() if rows.description else None


def shop_folder(folder: Path) -> None:
    folder.mkdir()
    (folder / "accounts.json").write_text(json.dumps({name: {"balance": 100_000} for name in OWNERS}), encoding="utf-8")
    for name in OWNERS:
        for file, content in {"notes.txt": "begun;", "cart.txt": "pen", "document.json": json.dumps(DOCUMENT)}.items():
            (folder / f"{name}-{file}").write_text(content, encoding="utf-8")
    for file in ("audit.log", "orders.csv"):
        (folder / file).write_text("", encoding="utf-8")
    (folder / "stock.json").write_text('{"pieces": 100000}', encoding="utf-8")


def in_folder(place: str, kind: str) -> None:  # noqa: C901  a case for each kind
    values = values_of(kind)
    name, amount, at = values["name"], values["amount"], values["at"]
    folder, prefix = Path(place), Path(place, f"{values['name']}-")

    def append(file: str, line: str) -> None:
        with (folder / file).open("a", encoding="utf-8") as lines:
            lines.write(line)

    def rewrite(file: str, change: Callable[[Any], Any]) -> None:
        content = json.loads((folder / file).read_text(encoding="utf-8"))
        (folder / file).write_text(json.dumps(change(content)), encoding="utf-8")

    match plain(kind):
        case "debit":
            rewrite("accounts.json", lambda all_: {**all_, name: {"balance": all_[name]["balance"] - amount}})
        case "append":
            append(f"{name}-notes.txt", f"paid {amount};")
        case "insert":
            (folder / f"payment-of-{name}-{uuid4().hex}.json").write_text(
                f'{{"amount": {amount}, "at": {at}}}', encoding="utf-8"
            )
        case "upsert":
            Path(f"{prefix}choice.json").write_text(f'{{"value": "round", "updated_at": {at}}}', encoding="utf-8")
        case "counter":
            paid = Path(f"{prefix}paid.json")
            known = json.loads(paid.read_text(encoding="utf-8")) if paid.exists() else {"amount": amount, "tries": 0}
            paid.write_text(json.dumps({**known, "tries": known["tries"] + 1}), encoding="utf-8")
        case "audit":
            if not (audited := Path(f"{prefix}audited.txt")).exists():
                audited.write_text(f"{amount}", encoding="utf-8")
            append("audit.log", f"{name} {at}\n")
        case "delete":
            Path(f"{prefix}cart.txt").unlink(missing_ok=True)
        case "commit":
            append("orders.csv", f"{name},{at}\n")
            rewrite("stock.json", lambda stock: {"pieces": stock["pieces"] - 2})
        case "json":
            rewrite(f"{name}-document.json", lambda document: paid_in(document, values))


def in_folder_now(place: str) -> dict[str, int]:
    folder, counts = Path(place), dict[str, int]()
    for name, prefix in OWNERS.items():
        paid = folder / f"{name}-paid.json"
        counts[f"{prefix}append"] = (folder / f"{name}-notes.txt").read_text(encoding="utf-8").count(";") - 1
        counts[f"{prefix}insert"] = len(list(folder.glob(f"payment-of-{name}-*")))
        counts[f"{prefix}upsert"] = int((folder / f"{name}-choice.json").exists())
        counts[f"{prefix}counter"] = json.loads(paid.read_text(encoding="utf-8"))["tries"] if paid.exists() else 0
        counts[f"{prefix}audit"] = (folder / "audit.log").read_text(encoding="utf-8").count(name)
        counts[f"{prefix}delete"] = int(not (folder / f"{name}-cart.txt").exists())
        counts[f"{prefix}commit"] = (folder / "orders.csv").read_text(encoding="utf-8").count(name)
        balance = json.loads((folder / "accounts.json").read_text(encoding="utf-8"))[name]["balance"]
        document = json.loads((folder / f"{name}-document.json").read_text(encoding="utf-8"))
        counts |= of_balance(prefix, balance) | of_document(prefix, document)
    return counts


def shop_file(path: Path) -> None:
    shelf = {
        "balance": 100_000,
        "notes": "begun;",
        "cart": "pen",
        "document": DOCUMENT,
        "payments": [],
        "audit": [],
        "orders": [],
    }
    path.write_text(json.dumps({"stock": 100_000, **dict.fromkeys(OWNERS, shelf)}), encoding="utf-8")


def in_file(place: str, kind: str) -> None:
    path, values = Path(place), values_of(kind)
    shop = json.loads(path.read_text(encoding="utf-8"))
    shelf, amount, at = shop[values["name"]], values["amount"], values["at"]
    match plain(kind):
        case "debit":
            shelf["balance"] -= amount
        case "append":
            shelf["notes"] += f"paid {amount};"
        case "insert":
            shelf["payments"].append({"amount": amount, "at": at})
        case "upsert":
            shelf["choice"] = {"value": "round", "updated_at": at}
        case "counter":
            shelf.setdefault("paid", {"amount": amount, "tries": 0})["tries"] += 1
        case "audit":
            shelf.setdefault("audited", {"amount": amount})
            shelf["audit"].append({"at": at})
        case "delete":
            shelf.pop("cart", None)
        case "commit":
            shelf["orders"].append({"what": "pen, ink", "at": at})
            shop["stock"] -= 2
        case "json":
            shelf["document"] = paid_in(shelf["document"], values)
    path.write_text(json.dumps(shop), encoding="utf-8")


def in_file_now(place: str) -> dict[str, int]:
    shop, counts = json.loads(Path(place).read_text(encoding="utf-8")), dict[str, int]()
    for name, prefix in OWNERS.items():
        shelf = shop[name]
        counts[f"{prefix}append"] = shelf["notes"].count(";") - 1
        counts[f"{prefix}insert"] = len(shelf["payments"])
        counts[f"{prefix}upsert"] = int("choice" in shelf)
        counts[f"{prefix}counter"] = shelf["paid"]["tries"] if "paid" in shelf else 0
        counts[f"{prefix}audit"] = len(shelf["audit"])
        counts[f"{prefix}delete"] = int("cart" not in shelf)
        counts[f"{prefix}commit"] = len(shelf["orders"])
        counts |= of_balance(prefix, shelf["balance"]) | of_document(prefix, shelf["document"])
    return counts
