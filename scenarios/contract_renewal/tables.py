"""The tables of a renewal's world, and the first rows of a customer. No tool shows the table `behind`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .replies import reply
from .story import REFUSED, SUCCESSORS, Case

SCHEMA = """
CREATE TABLE customer (
  id TEXT NOT NULL, name TEXT NOT NULL, product TEXT NOT NULL, yearly INTEGER NOT NULL,
  asks_discount INTEGER NOT NULL, asks_term INTEGER NOT NULL);
CREATE TABLE behind (
  settles_for INTEGER NOT NULL, reply_after INTEGER NOT NULL, meaning TEXT NOT NULL, text TEXT NOT NULL,
  haggling TEXT NOT NULL, sound INTEGER NOT NULL);
CREATE TABLE signal (kind TEXT NOT NULL, shown TEXT NOT NULL);
CREATE TABLE product (name TEXT NOT NULL, successor TEXT NOT NULL, retired_at INTEGER);
CREATE TABLE renewal (at INTEGER NOT NULL);
CREATE TABLE note (text TEXT NOT NULL, standing INTEGER NOT NULL DEFAULT 1, at INTEGER NOT NULL);
CREATE TABLE score (risk TEXT NOT NULL, at INTEGER NOT NULL);
CREATE TABLE offer (
  product TEXT NOT NULL, discount INTEGER NOT NULL, term INTEGER NOT NULL, standing INTEGER NOT NULL DEFAULT 1,
  at INTEGER NOT NULL);
CREATE TABLE publication (product TEXT NOT NULL, discount INTEGER NOT NULL, term INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE outreach (product TEXT NOT NULL, discount INTEGER NOT NULL, term INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE reply (meaning TEXT NOT NULL, text TEXT NOT NULL, at INTEGER NOT NULL);
CREATE TABLE review (approved INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE closing (
  outcome TEXT NOT NULL, product TEXT NOT NULL, discount INTEGER NOT NULL, term INTEGER NOT NULL, merger INTEGER NOT NULL,
  at INTEGER NOT NULL);
CREATE TABLE invoice (amount INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE switch (why TEXT NOT NULL, at INTEGER NOT NULL);
"""


def rows(case: Case) -> dict[str, Sequence[Mapping[str, Any]]]:
    return {
        "customer": [
            {
                "id": case.customer,
                "name": case.name,
                "product": case.product,
                "yearly": case.yearly,
                "asks_discount": case.asks_discount,
                "asks_term": case.asks_term,
            }
        ],
        "behind": [
            {
                "settles_for": case.settles_for,
                "reply_after": case.reply_after,
                "meaning": case.answer,
                "text": reply(case.answer, case.wording, case.asks_discount),
                "haggling": reply("haggles", case.wording, case.asks_discount),
                "sound": int(case.kind not in REFUSED),
            }
        ],
        "signal": [{"kind": kind, "shown": json.dumps(shown)} for kind, shown in case.signals.items()],
        "product": [
            *({"name": name, "successor": successor, "retired_at": None} for name, successor in SUCCESSORS.items()),
            *({"name": name, "successor": "", "retired_at": None} for name in SUCCESSORS.values() if name not in SUCCESSORS),
        ],
    }
