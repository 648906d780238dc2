"""A made probe of a small shop: its cells as a probe yields them, written as a probe writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.common.digests import Texts
from bench.probe.points import points_of
from bench.probe.run.secrets import Secrets
from bench.probe.run.writing import CellRun, ProbeWriter
from bench.record.events import OfAKind
from bench.record.model_parameters import ModelParameters
from bench.record.origin import CodeVersion
from bench.record.probe_events import (
    CellFinding,
    CellJudged,
    CellsPlanned,
    GatewayCall,
    PlannedCall,
    StoresRead,
    plan_of,
)
from bench.record.probe_rows import RowDifference
from bench.record.probed import Probed, ProbedStore
from bench.record.process_events import ProcessEnded, ProcessStarted

READ, PAY, MODEL = "shop.get_order#1", "shop.pay#1", "model./v1/chat/completions#1"
PLANNED = (
    PlannedCall(READ, "shop", "get_order", "read", reads=True, rows=0),
    PlannedCall(PAY, "shop", "pay", "effect", reads=None, rows=1),
    PlannedCall(MODEL, "model", "/v1/chat/completions", "model", reads=None, rows=0),
)
PROBED = Probed(
    subject="5" * 20,
    doors={"shop": "mcp_stdio", "model": "model"},
    stores={"orders": ProbedStore(kind="sqlite")},
    settle=0.1,
    patience=10.0,
    limit=300.0,
    resumes=True,
)
PRICED = ModelParameters(model="small", price_in=1.0, price_out=2.0)


def row(number: int, amount: int = 30) -> RowDifference:
    return RowDifference("orders", "payments", str([number]), None, {"id": number, "order": 7, "amount": amount})


def cells(
    damaged: frozenset[str] = frozenset(("lost", "unacknowledged")), clean: int = 3, again: bool = True
) -> Iterator[CellRun]:
    """Yield the cells of a probe: at the `damaged` points of the payment it is made twice."""
    plans = [plan_of(call.name, point.name) for call in PLANNED for point in points_of(call.call_class)]
    for repetition in range(clean):
        plan = CellsPlanned(PLANNED, tuple(plans), 0, ("orders.payments.at",), one_by_one=True, seconds=1.5)
        yield cell("clean", repetition, further=[plan] if repetition == 2 else [])
    for planned in PLANNED:
        for point in (each.name for each in points_of(planned.call_class)):
            doubled = planned.name == PAY and point in damaged
            for repetition in range(1 + (doubled and again)):
                yield cell(plan_of(planned.name, point), repetition, planned, point, doubled)
    yield cell("control", 0)


def cell(
    plan: str,
    repetition: int,
    struck: PlannedCall | None = None,
    point: str | None = None,
    doubled: bool = False,
    further: Sequence[OfAKind] = (),
) -> CellRun:
    texts = Texts()
    calls = [_call(texts, 1, MODEL, 0.1), _call(texts, 2, READ, 0.3), _call(texts, 3, PAY, 0.5)]
    made = [row(1)]
    if struck:
        place = next(place for place, call in enumerate(calls) if call.name == struck.name)
        calls[place] = _call(texts, place + 1, struck.name, 0.1 + 0.2 * place, point)
    findings: tuple[CellFinding, ...] = ()
    if doubled:
        calls.append(_call(texts, 4, PAY, 1.0, repeats=3))
        made.append(row(2))
        findings = (CellFinding("doubled", PAY, 2, (row(2),), (4,)),)
    events: list[OfAKind] = [
        ProcessStarted(1, 0.0),
        *calls,
        StoresRead(1.2, "d" * 20, tuple(made), tuple(call.number for call in calls)),
    ]
    output = texts.keep("Order 7 is paid.\n")
    events += [ProcessEnded(1, 0, None, 1.3, "", 0, output, 17, None), *further]
    events.append(
        CellJudged(
            struck.name if struck else "",
            point,
            "",
            struck.call_class if struck else None,
            calls.index(next(call for call in calls if call.point)) + 1 if struck else None,
            "doubled" if doubled else "same",
            True,
            output,
            findings,
            "" if not doubled else "the payment stands twice",
        )
    )
    return CellRun(plan, repetition, events, texts, 1.5)


def _call(texts: Texts, number: int, name: str, at: float, point: str | None = None, repeats: int | None = None) -> GatewayCall:
    planned = next(call for call in PLANNED if call.name == name)
    is_model = planned.door == "model"
    return GatewayCall(
        number, name, planned.door, "model" if is_model else "mcp_stdio", planned.tool, planned.call_class, planned.reads,
        texts.keep(json.dumps({"order": 7})), texts.keep(json.dumps({"done": number})), 1, str(number), at, at + 0.01, at + 0.1,
        None if point in ("lost", "unacknowledged") else at + 0.11, point=point, form="broken" if point == "lost" else "",
        given_otherwise=point is not None, repeats=repeats, cause="client" if repeats else "",
        tokens_in=100 if is_model else 0, tokens_out=20 if is_model else 0, model="small" if is_model else "",
    )  # fmt: skip


def write(folder: Path, *runs: CellRun, secrets: Secrets | None = None, complete: bool = True, probed: Probed = PROBED) -> Path:
    """Write these cells, or those of a whole probe, as the probe's run."""
    writer = ProbeWriter(folder, "shop", probed, secrets or Secrets(()), PRICED, CodeVersion())
    writer.begin()
    for run in runs or tuple(cells()):
        writer.add(run)
    writer.end("all cells were run", complete)
    return folder
