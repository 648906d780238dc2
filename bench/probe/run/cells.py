"""The cells of a probe. Each cell strikes one call at one point, once. The gravest cells come first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.common.errors import ConfigError, nearest
from bench.probe.points import IS_ERROR, JSON_RPC, POINTS, gravity_of, is_meant, points_of
from bench.probe.run.clean import Clean
from bench.probe.run.gateway.door_kinds import DOOR_KINDS
from bench.probe.run.gateway.striker import CellStrike
from bench.probe.run.gateway.subject import Subject
from bench.probe.run.meanwhile import step_before
from bench.record.probe_events import GatewayCall, plan_of


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


def cells_of(clean: Clean, subject: Subject, *, all_forms: bool = False, only: Sequence[str] = ()) -> list[ProbeCell]:
    """Return the cells. Cells of calls with an effect that a witness saw come before all others. In both groups the gravest
    cell of each call comes first, then the second of each, and so on.

    Args:
        clean: What the clean runs show.
        subject: What is probed.
        all_forms: Whether each wire form of a point is a cell; else its default is.
        only: Words of which a cell's plan must have one, such as a tool or a point; without any, all cells.
    """
    cells = [
        (rank, cell)
        for made in clean.reference.own_calls()
        for rank, cell in enumerate(_of_call(clean, subject, *made, all_forms))
    ]
    chosen = [(rank, cell) for rank, cell in cells if not only or any(is_meant(word, cell.plan) for word in only)]
    seen = {planned.name for planned in clean.calls.values() if planned.call_class == "effect"}
    chosen.sort(key=lambda ranked: (ranked[1].call not in seen, ranked[0], gravity_of(ranked[1].point)))
    return [cell for _, cell in chosen]


def require_cells(only: Sequence[str], plans: Sequence[str]) -> None:
    """Raise ConfigError for a word that none of these cells has in its name. The line names the nearest, or for a point that no
    call has the points that there are. Such a point is passed over if another word has a cell."""
    without = [word for word in only if not any(is_meant(word, plan) for plan in plans)]
    points = list(dict.fromkeys(plan.rpartition("#")[2].split(".")[1] for plan in plans))
    for word in without:
        known = {part for plan in plans for part in (plan, plan.partition("#")[0], f".{plan.rpartition('.')[2]}")}
        near = nearest(word, known)
        if re.sub(r"^[*.]*|[*.].*$", "", word) in POINTS:
            if len(without) < len(only):
                continue
            near = f"no call has this point; the points that there are: {', '.join(points)}"
        raise ConfigError(f"--only {word}: no cell has this in its name; {near}")


def possible_plans(names: Iterable[str]) -> list[str]:
    """Return the names of all cells that calls of these names could have."""
    return [plan_of(name, point.name, form) for name in names for point in POINTS for form in ("", *point.forms)]


def _of_call(
    clean: Clean, subject: Subject, call: GatewayCall, identity: str, nth: int, all_forms: bool
) -> Iterator[ProbeCell]:
    planned = clean.calls[identity, nth]
    step = step_before(clean, subject, call, identity)
    for point in points_of(planned.call_class):
        if point.after == "stale" and not _reads_again_after_effect(clean, call, identity):
            continue
        if (point.processes > 1 and not subject.goes_on) or (point.others and not step):
            continue
        if (point.before == "again" and not _has_effect_after(clean, call)) or (
            point.by_tool and call.door in subject.stand_ins
        ):
            continue
        within = (each.door_kind for each in clean.reference.calls if each.continues == call.number and point.before == "hold")
        if point.needs and not any(point.needs in DOOR_KINDS[kind].can for kind in (call.door_kind, *within)):
            continue
        if point.streams and '"stream":true' not in clean.reference.texts.get(call.arguments, ""):
            continue
        has_both = "mcp_error" in DOOR_KINDS[call.door_kind].can
        forms = [form for form in point.forms if has_both or form not in (IS_ERROR, JSON_RPC)] or [""]
        for at, form in enumerate(forms if all_forms else forms[: point.usual.get(call.door_kind, 1)]):
            plan = plan_of(planned.name, point.name, form if at else "")
            strike = CellStrike(identity, nth, point.name, form, clean.acting, step if point.others else None)
            yield ProbeCell(plan, planned.name, point.name, form, strike)


def _reads_again_after_effect(clean: Clean, call: GatewayCall, identity: str) -> bool:
    """Return whether the same read was made earlier, and a call with an effect came between the two reads."""
    reference = clean.reference
    earlier = [made.number for made, same, _ in reference.own_calls() if same == identity and made.number < call.number]
    effects = [made.number for made in reference.calls if made.call_class == "effect" and made.number < call.number]
    return bool(earlier and effects) and min(earlier) < max(effects)


def _has_effect_after(clean: Clean, call: GatewayCall) -> bool:
    """Return whether a call with an effect comes after this one."""
    return any(made.number > call.number and identity in clean.acting for made, identity, _ in clean.reference.own_calls())
