"""`bench list`: the parts that exist, what each can do, and what it needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.cli.command_part import COMMANDS
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, nearest
from bench.common.paths import CONFIGS, STUDIES_FOLDER
from bench.common.registry import Part, Registry
from bench.read.report.studies import STUDIES
from bench.run.architectures.part import ArchitecturePart
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.experiment.config import load_config
from bench.run.experiment.model_entries import MODELS
from bench.run.packs import find_packs, lacks, variants_of
from bench.run.packs.packaged import PACKAGED
from bench.run.trial.effects import EFFECTS, points_of

KINDS = (
    *("packs", "architectures", "models", "effects"),
    *("studies", "metrics", "tables", "figures", "exports"),
)
"""What `bench list` lists, in its order."""
SAME = {"scenarios": "packs", "systems": "architectures", "faults": "effects"}
"""Further words for a kind."""


def kind_names(incomplete: str) -> list[str]:
    """Return the kinds that begin so, for a shell."""
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def print_parts(out: Terminal, err: Terminal, roots: Sequence[Path], kind: str | None, as_json: bool) -> None:
    """Print the parts of one kind, or of all.

    Args:
        out: The terminal for the parts.
        err: The terminal for what is left out.
        roots: Folders of packs.
        kind: The kind; all if None.
        as_json: Whether JSON is printed, of each kind its names.

    Raises:
        ConfigError: There is no such kind.
    """
    # Here, because these import pandas, and no other command should wait for that.
    from bench.read.analysis.metrics import METRICS  # noqa: PLC0415
    from bench.read.report.export_part import EXPORTS  # noqa: PLC0415
    from bench.read.report.figures import FIGURES  # noqa: PLC0415
    from bench.read.report.tables import TABLES  # noqa: PLC0415

    asked = SAME.get(kind, kind) if kind else None
    if asked is not None and asked not in KINDS:
        raise ConfigError(f"list {kind}: is no kind of part; {nearest(asked, KINDS)}")
    registries: dict[str, Registry[Any]] = {
        **{"architectures": ARCHITECTURES, "models": MODELS, "effects": EFFECTS, "studies": STUDIES},
        **{"metrics": METRICS, "tables": TABLES, "figures": FIGURES, "exports": EXPORTS},
    }
    if as_json:
        names = {"packs": list(find_packs(roots)), **{name: list(parts.names) for name, parts in registries.items()}}
        out.print(json.dumps({name: names[name] for name in KINDS if asked in (None, name)}, indent=2))
        return
    printers: dict[str, Callable[[], None]] = {
        "packs": lambda: _print_packs(out, roots),
        "architectures": lambda: _print_architectures(out),
        "models": lambda: _print_models(out),
        "effects": lambda: _print_effects(out),
    }
    for name in KINDS:
        if asked not in (None, name):
            continue
        if name in printers:
            printers[name]()
        else:
            out.print(f"{registries[name].plural}\n  {_named(registries[name])}")
    tell_left_out(err, *registries.values(), PACKAGED, COMMANDS)


def _print_models(out: Terminal) -> None:
    out.print("models (by config)")
    for path in (*sorted(CONFIGS.glob("*.toml")), *sorted(STUDIES_FOLDER.glob("*/*.toml"))):
        out.print(f"  {path}: {', '.join(load_config(path, {}).model)}")
    out.print(f"kinds of models\n  {_named(MODELS)}")


def _print_effects(out: Terminal) -> None:
    out.print("fault effects (and the points at which each can strike)")
    for name in EFFECTS.names:
        packages = dict.fromkeys(effect.package for effect in EFFECTS if effect.name == name and effect.package)
        out.print(f"  {name}: {', '.join(points_of(name))}{''.join(f'  from {package}' for package in packages)}")


def tell_left_out(err: Terminal, *kinds: Registry[Any]) -> None:
    """Print which parts of other packages are missing, a line each."""
    for line in dict.fromkeys(line for kind in kinds for line in kind.left_out):
        err.print(f"bench: {line}")


def _print_packs(out: Terminal, roots: Sequence[Path]) -> None:
    out.print("scenarios")
    if not (packs := find_packs(roots)):
        todo = "begin one with `bench new scenario NAME`, or name a folder of packs with --scenarios"
        out.print(f"  none in {', '.join(f'{root}/' for root in roots)}; {todo}")
    for name, folder in packs.items():
        note = f"; not available here: {lacking}" if (lacking := lacks(name, roots)) else ""
        package = next((part.package for part in PACKAGED if folder.is_relative_to(part.folder)), "")
        whose = f"  from {package}" if package else ""
        out.print(f"  {name}  (variants: {', '.join(variants_of(folder))}{note}){whose}")


def _print_architectures(out: Terminal) -> None:
    headed = {
        "architectures": [entry for entry in ARCHITECTURES if entry.acts_in != "world" and not entry.makes_own_calls],
        "architectures that act in a world": [entry for entry in ARCHITECTURES if entry.acts_in == "world"],
        "systems, as architectures over the measuring endpoint (and where each differs)": [
            entry for entry in ARCHITECTURES if entry.acts_in != "world" and entry.makes_own_calls
        ],
    }
    for head, parts in headed.items():
        out.print(head)
        for part in parts:
            needs = f"  needs .[{part.extra}]" if part.extra else ""
            package = f"  from {part.package}" if part.package else ""
            out.print(f"  {part.name}{needs}{package}{_forms(part)}")
            for limit in part.limits:
                out.print(f"    - {limit}")


def _forms(part: ArchitecturePart) -> str:
    line = (
        *(["an instrument: it asks, and does nothing"] if part.is_instrument else []),
        *(["in parallel as well"] if part.parallel else []),
        *([f"after {part.lineage}"] if part.lineage else []),
    )
    return f"  ({'; '.join(line)})" if line else ""


def _named(parts: Iterable[Part]) -> str:
    return ", ".join(f"{part.name}{f' (from {part.package})' if part.package else ''}" for part in parts)
