"""The cells of a probe. Each cell strikes one call at one point, once. The gravest cells come first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.probe.points import IS_ERROR, JSON_RPC, DoorKind, StrikePoint, gravity_of, points_of
from bench.probe.run.clean import Clean
from bench.probe.run.gateway.striker import CellStrike
from bench.record.probe.events import GatewayCall, plan_of

MCP: frozenset[DoorKind] = frozenset(("mcp_stdio", "mcp_http"))


@dataclass(frozen=True)
class ProbeCell:
    """One cell: a call of the clean run, the point at which it is struck, and the form of the answer on the wire.

    plan  names it; `call` is the name of the call
    """

    plan: str
    call: str
    point: str
    form: str
    strike: CellStrike


def cells_of(clean: Clean, *, all_forms: bool = False, only: Sequence[str] = ()) -> list[ProbeCell]:
    """Return the cells. Cells of calls with an effect that a witness saw come before all others, and in both groups the gravest
    come first.

    Args:
        clean: What the clean runs show.
        all_forms: Whether each wire form of a point is a cell; else its default is.
        only: Words of which a cell's plan must have one, such as a tool or a point; without any, all cells.
    """
    cells = [cell for made in clean.reference.own_calls() for cell in _of_call(clean, *made, all_forms)]
    chosen = [cell for cell in cells if not only or any(word in cell.plan for word in only)]
    seen = {planned.name for planned in clean.calls.values() if planned.call_class == "effect"}
    return sorted(chosen, key=lambda cell: (cell.call not in seen, gravity_of(cell.point)))


def _of_call(clean: Clean, call: GatewayCall, identity: str, nth: int, all_forms: bool) -> Iterator[ProbeCell]:
    planned = clean.calls[identity, nth]
    for point in points_of(planned.call_class):
        if point.after == "stale" and not _has_earlier(clean, call, identity):
            continue
        within = (each.door_kind for each in clean.reference.calls if each.continues == call.number and point.before == "hold")
        if point.doors and {call.door_kind, *within}.isdisjoint(point.doors):
            continue
        if point.streams and not _streams(clean, call):
            continue
        forms = _forms(call, point)
        for at, form in enumerate(forms if all_forms else forms[: point.usual.get(call.door_kind, 1)]):
            plan = plan_of(planned.name, point.name, form if at else "")
            yield ProbeCell(plan, planned.name, point.name, form, CellStrike(identity, nth, point.name, form))


def _forms(call: GatewayCall, point: StrikePoint) -> Sequence[str]:
    """Return the wire forms of a point at the call's door, the default first; "" if it has one."""
    return [form for form in point.forms if call.door_kind in MCP or form not in (IS_ERROR, JSON_RPC)] or [""]


def _has_earlier(clean: Clean, call: GatewayCall, identity: str) -> bool:
    """Return whether the same read was made earlier, and a call with an effect came in between."""
    reference = clean.reference
    earlier = [made.number for made, same, _ in reference.own_calls() if same == identity and made.number < call.number]
    effects = [made.number for made in reference.calls if made.call_class == "effect" and made.number < call.number]
    return any(number < effect for number in earlier for effect in effects[-1:])


def _streams(clean: Clean, call: GatewayCall) -> bool:
    return '"stream":true' in clean.reference.texts.get(call.arguments, "")
