"""The cells of a probe. Each cell injects one fault into one call, once. The most severe cells come first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.common.errors import ConfigError, nearest
from bench.probe.points import IS_ERROR, JSON_RPC, POINTS, points_of, selects_cell, severity_rank
from bench.probe.run.clean import Clean
from bench.probe.run.gateway.door_kinds import DOOR_KINDS
from bench.probe.run.gateway.fault_injector import CellFault
from bench.probe.run.gateway.subject import Subject
from bench.probe.run.meanwhile import others_statement_before
from bench.record.probe_events import GatewayCall, plan_of


@dataclass(frozen=True)
class ProbeCell:
    """One cell: a call of the clean run, the point at which the fault is injected, and the wire form of the response.

    plan   the name of the cell
    call   the name of the call
    fault  what the gate injects
    """

    plan: str
    call: str
    point: str
    form: str
    fault: CellFault


def cells_of(clean: Clean, subject: Subject, *, all_forms: bool = False, only: Sequence[str] = ()) -> list[ProbeCell]:
    """Return the cells of a probe.

    Cells of calls with a witnessed effect come before all others. In both groups the most severe cell of each call comes
    first, then the second of each, and so on.

    Args:
        clean: What the clean runs show.
        subject: What is probed.
        all_forms: Whether each wire form of a point is a cell; otherwise only the default form.
        only: Words that select cells, such as a tool or a point; () for all cells.
    """
    witnessed = {planned.name for planned in clean.calls.values() if planned.call_class == "effect"}
    cells = list[tuple[bool, int, int, ProbeCell]]()
    for planned_call in clean.reference.outer_calls():
        for rank, cell in enumerate(_cells_of_call(clean, subject, *planned_call, all_forms)):
            if not only or any(selects_cell(word, cell.plan) for word in only):
                cells.append((cell.call not in witnessed, rank, severity_rank(cell.point), cell))
    return [cell for *_, cell in sorted(cells, key=lambda ranked: ranked[:3])]


def require_cells(only: Sequence[str], plans: Sequence[str]) -> None:
    """Raise ConfigError for a word that selects none of these cells.

    The error names the nearest cell, or the points that a call has. A point that no call has is allowed if another word
    selects a cell.
    """
    unmatched = [word for word in only if not any(selects_cell(word, plan) for plan in plans)]
    points = list(dict.fromkeys(plan.rpartition("#")[2].split(".")[1] for plan in plans))
    for word in unmatched:
        hint = nearest(word, {part for plan in plans for part in (plan, plan.partition("#")[0], f".{plan.rpartition('.')[2]}")})
        if re.sub(r"^[*.]*|[*.].*$", "", word) in POINTS:
            if len(unmatched) < len(only):
                continue
            hint = f"no call has this point; the points that there are: {', '.join(points)}"
        raise ConfigError(f"--only {word}: no cell has this in its name; {hint}")


def possible_plans(names: Iterable[str]) -> list[str]:
    """Return the names of all cells that calls with these names could have."""
    return [plan_of(name, point.name, form) for name in names for point in POINTS for form in ("", *point.forms)]


def _cells_of_call(
    clean: Clean, subject: Subject, call: GatewayCall, identity: str, nth: int, all_forms: bool
) -> Iterator[ProbeCell]:
    """Yield the cells of one call, the most severe first. A point is left out if the call cannot have it, or it could show
    nothing there."""
    planned = clean.calls[identity, nth]
    others_statement = others_statement_before(clean, subject, call, identity)
    for point in points_of(planned.call_class):
        if point.after == "stale" and not _reads_again_after_effect(clean, call, identity):
            continue
        if (point.processes > 1 and not subject.can_resume) or (point.others and not others_statement):
            continue
        if (point.before == "again" and not _has_effect_after(clean, call)) or (
            point.by_tool and call.door in subject.stand_ins  # the probe's own stand-in is no tool of the owner's
        ):
            continue
        # in place of a function's call, its request to a server or service can be held
        inner_doors = (
            inner_call.door_kind
            for inner_call in clean.reference.calls
            if inner_call.continues == call.number and point.before == "hold"
        )
        if point.needs and not any(point.needs in DOOR_KINDS[kind].can for kind in (call.door_kind, *inner_doors)):
            continue
        if point.streams and '"stream":true' not in clean.reference.texts.get(call.arguments, ""):
            continue
        has_mcp_errors = "mcp_error" in DOOR_KINDS[call.door_kind].can
        forms = [form for form in point.forms if has_mcp_errors or form not in (IS_ERROR, JSON_RPC)] or [""]
        for index, form in enumerate(forms if all_forms else forms[: point.usual.get(call.door_kind, 1)]):
            plan = plan_of(planned.name, point.name, form if index else "")  # the default form has no name in the plan
            fault = CellFault(identity, nth, point.name, form, clean.acting, others_statement if point.others else None)
            yield ProbeCell(plan, planned.name, point.name, form, fault)


def _reads_again_after_effect(clean: Clean, call: GatewayCall, identity: str) -> bool:
    """Return whether an equal read was made before this call, and a call with an effect between the two."""
    reads = [earlier.number for earlier, same, _ in clean.reference.outer_calls() if same == identity]
    effects = [earlier.number for earlier in clean.reference.calls if earlier.call_class == "effect"]
    return any(min(reads) < number < call.number for number in effects)


def _has_effect_after(clean: Clean, call: GatewayCall) -> bool:
    """Return whether a call with an effect comes after this call."""
    return any(
        later_call.number > call.number and identity in clean.acting
        for later_call, identity, _ in clean.reference.outer_calls()
    )
