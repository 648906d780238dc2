"""`bench list`: the parts that there are, what each can, and what it needs."""

from __future__ import annotations

from bench.architectures.registry import ARCHITECTURES, ArchitecturePart
from bench.cli.terminal import Terminal
from bench.registry import Part


def print_architectures(out: Terminal) -> None:
    headed = {
        "architectures": [one for one in ARCHITECTURES if one.acts_in != "world" and not one.makes_own_calls],
        "architectures that act in a world": [one for one in ARCHITECTURES if one.acts_in == "world"],
        "systems, as architectures over the measuring endpoint (and where each differs)": [
            one for one in ARCHITECTURES if one.acts_in != "world" and one.makes_own_calls
        ],
    }
    for head, parts in headed.items():
        out.print(head)
        for part in parts:
            out.print(f"  {part.name}{_needs(part)}{_forms(part)}")
            for limit in part.limits:
                out.print(f"    - {limit}")


def _forms(part: ArchitecturePart) -> str:
    said = (
        *(["an instrument: it asks, and does nothing"] if part.is_instrument else []),
        *(["in parallel as well"] if part.parallel else []),
        *([f"after {part.lineage}"] if part.lineage else []),
    )
    return f"  ({'; '.join(said)})" if said else ""


def _needs(part: Part) -> str:
    """What a part comes with, or what is to be installed for it."""
    return (f"  needs .[{part.extra}]" if part.extra else "") + (f"  from {part.package}" if part.package else "")
