"""`bench list`: the parts that exist, what each can do, and what it needs. A kind's parts are imported when it is listed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.cli.command import PacksOption
from bench.cli.command_part import COMMANDS
from bench.cli.terminal import Terminal, tell_left_out
from bench.common.errors import ConfigError, nearest
from bench.common.paths import CONFIGS, PACKS, STUDIES_FOLDER
from bench.common.registry import Registry, attribute_at, written_names
from bench.common.toml import read_toml

if TYPE_CHECKING:
    from bench.run.architectures.part import ArchitecturePart

REGISTRIES = {
    "packs": "bench.run.packs.packaged:PACKAGED",
    "architectures": "bench.run.architectures.registry:ARCHITECTURES",
    "models": "bench.run.experiment.model_entries:MODELS",
    "effects": "bench.run.trial.effects:EFFECTS",
    "studies": "bench.read.report.studies:STUDIES",
    "metrics": "bench.read.analysis.metrics:METRICS",
    "tables": "bench.read.report.tables:TABLES",
    "figures": "bench.read.report.figures:FIGURES",
    "exports": "bench.read.report.export_part:EXPORTS",
}
"""The kinds that `bench list` lists, in its order, and where the registry of each stands."""
SAME = {"scenarios": "packs", "systems": "architectures", "faults": "effects"}
"""Further words for a kind."""
out, err = Terminal(), Terminal(stderr=True)


def kind_names(incomplete: str) -> list[str]:
    """Return the kinds that begin so, for a shell."""
    return [kind for kind in REGISTRIES if kind.startswith(incomplete)]


def list_(
    kind: Annotated[str | None, typer.Argument(autocompletion=kind_names, help="One kind of part, such as effects.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: of each kind its names.")] = False,
    scenarios: PacksOption = PACKS,
) -> None:
    """List what a config can name: packs, models, faults, and more.

    Architectures, metrics, tables, studies and export forms are listed too, and what other packages bring.

    For example: bench list effects
    """
    asked = SAME.get(kind, kind) if kind else None
    if asked is not None and asked not in REGISTRIES:
        raise ConfigError(f"list {kind}: is no kind of part; {nearest(asked, REGISTRIES)}")
    kinds = [name for name in REGISTRIES if asked in (None, name)]
    if as_json:
        from bench.run.packs import find_packs  # noqa: PLC0415  another kind should not wait for it

        names = {name: list(find_packs(scenarios)) if name == "packs" else names_in(name, bare=True) for name in kinds}
        out.print(json.dumps(names, indent=2))
        return
    printers: dict[str, Callable[[], None]] = {
        "packs": lambda: _print_packs(scenarios),
        "architectures": _print_architectures,
        "models": _print_models,
        "effects": _print_effects,
    }
    for name in kinds:
        if name in printers:
            printers[name]()
        else:
            out.print(f"{name}\n  {', '.join(names_in(name))}")
    tell_left_out(err, *(_registry(name) for name in kinds if written_names(name) is None), COMMANDS)


def _registry(kind: str) -> Registry[Any]:
    registry: Registry[Any] = attribute_at(REGISTRIES[kind])
    return registry


def names_in(kind: str, bare: bool = False) -> list[str]:
    """Return the names of a kind's parts, and by whom they are; `bare` are the names alone."""
    if (names := written_names(kind)) is not None:
        return names
    registry = _registry(kind)
    if bare:
        return list(registry.names)
    return [f"{part.name}{f' (from {part.package})' if part.package else ''}" for part in registry]


def _print_models() -> None:
    out.print("models (by config)")
    for path in (*sorted(CONFIGS.glob("*.toml")), *sorted(STUDIES_FOLDER.glob("*/*.toml"))):
        tables = read_toml(path).get("model")
        out.print(f"  {path}: {', '.join(tables) if isinstance(tables, dict) else 'none'}")
    out.print(f"kinds of models\n  {', '.join(names_in('models'))}")


def _print_effects() -> None:
    from bench.run.trial.effects import EFFECTS, points_of  # noqa: PLC0415  another kind should not wait for it

    out.print("fault effects (and the points at which each can strike)")
    for name in EFFECTS.names:
        packages = dict.fromkeys(effect.package for effect in EFFECTS if effect.name == name and effect.package)
        out.print(f"  {name}: {', '.join(points_of(name))}{''.join(f'  from {package}' for package in packages)}")


def _print_packs(roots: Sequence[Path]) -> None:
    from bench.run.packs import find_packs, lacks, variants_of  # noqa: PLC0415  another kind should not wait for it
    from bench.run.packs.packaged import PACKAGED  # noqa: PLC0415  the same

    out.print("scenarios")
    if not (packs := find_packs(roots)):
        todo = "begin one with `bench new scenario NAME`, or name a folder of packs with --scenarios"
        out.print(f"  none in {', '.join(f'{root}/' for root in roots)}; {todo}")
    for name, folder in packs.items():
        note = f"; not available here: {lacking}" if (lacking := lacks(name, roots)) else ""
        package = next((part.package for part in PACKAGED if folder.is_relative_to(part.folder)), "")
        whose = f"  from {package}" if package else ""
        out.print(f"  {name}  (variants: {', '.join(variants_of(folder))}{note}){whose}")


def _print_architectures() -> None:
    from bench.run.architectures.registry import ARCHITECTURES  # noqa: PLC0415  another kind should not wait for it

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
