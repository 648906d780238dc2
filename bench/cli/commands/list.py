"""`bench list`: the parts that exist by name; of one kind, what each part can do and what it needs.

Names are read without importing a part. A kind's parts are imported when it is asked for, or when a package brings some.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.cli.command import PacksOption
from bench.cli.command_part import COMMANDS
from bench.cli.terminal import Terminal, print_left_out
from bench.common.errors import ConfigError, nearest
from bench.common.packs import find_packs, no_packs_in, package_of
from bench.common.paths import CONFIGS, PACKS, STUDIES_FOLDER
from bench.common.registry import Registry, attribute_at, written_names
from bench.common.toml import read_toml

if TYPE_CHECKING:
    from bench.run.architectures.part import ArchitecturePart

REGISTRIES = {
    "packs": "bench.common.packs:PACKAGED",
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
LISTED_KINDS = ("packs", "architectures", "models", "effects", "studies", "exports")
"""The kinds whose parts a config or an option names: `bench list` lists these parts."""
KIND_SYNONYMS = {"scenarios": "packs", "systems": "architectures", "faults": "effects"}
"""Further words for a kind."""
out, err = Terminal(), Terminal(stderr=True)


def kind_names(incomplete: str) -> list[str]:
    """Return the kinds of parts that begin with these letters, for shell completion."""
    return [kind for kind in REGISTRIES if kind.startswith(incomplete)]


def list_(
    kind: Annotated[str | None, typer.Argument(autocompletion=kind_names, help="One kind of part, such as effects.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: the names of each kind.")] = False,
    scenarios: PacksOption = PACKS,
) -> None:
    """List what a config can name: packs, models, faults, and more.

    With a kind the command also says what each part can do and what it needs. The list has the parts of other installed
    packages too.

    For example: bench list effects
    """
    wanted_kind = KIND_SYNONYMS.get(kind, kind) if kind else None
    if wanted_kind is not None and wanted_kind not in REGISTRIES:
        raise ConfigError(f"list {kind}: is no kind of part; {nearest(wanted_kind, REGISTRIES)}")
    kinds = [name for name in REGISTRIES if wanted_kind == name or (wanted_kind is None and (as_json or name in LISTED_KINDS))]
    if as_json:
        out.print(json.dumps({name: _names_in(name, scenarios) for name in kinds}, indent=2))
        return
    if wanted_kind in DETAILS:
        DETAILS[wanted_kind](scenarios)
    else:
        for name in kinds:
            out.print(f"{name}\n  {', '.join(_names_in(name, scenarios, with_package=True)) or no_packs_in(scenarios)}")
    if wanted_kind is None:
        others = ", ".join(name for name in REGISTRIES if name not in LISTED_KINDS)
        out.print(f"`bench list KIND` says what each can do and what it needs; further kinds are {others}")
    print_left_out(err, *(_registry(name) for name in kinds if written_names(name) is None), COMMANDS)


def _registry(kind: str) -> Registry[Any]:
    """Return the registry of a kind of part."""
    registry: Registry[Any] = attribute_at(REGISTRIES[kind])
    return registry


def _names_in(kind: str, roots: Sequence[Path], with_package: bool = False) -> list[str]:
    """Return the names of a kind's parts. With `with_package` each name is followed by the package that adds the part."""
    if (names := written_names(kind)) is not None:
        parts = [(name, "") for name in names]
    elif kind == "packs":
        parts = [(name, package_of(folder)) for name, folder in find_packs(roots).items()]
    else:
        parts = [(part.name, part.package) for part in _registry(kind)]
    return list(dict.fromkeys(f"{name} (from {package})" if package and with_package else name for name, package in parts))


def _print_models(_: Sequence[Path]) -> None:
    """Print the models of each config, and the kinds of models."""
    out.print("models (by config)")
    for path in (*sorted(CONFIGS.glob("*.toml")), *sorted(STUDIES_FOLDER.glob("*/*.toml"))):
        tables = read_toml(path).get("model")
        out.print(f"  {path}: {', '.join(tables) if isinstance(tables, dict) else 'none'}")
    out.print(f"kinds of models\n  {', '.join(_names_in('models', (), with_package=True))}")


def _print_effects(_: Sequence[Path]) -> None:
    """Print each fault effect and the points at which it can be injected."""
    from bench.run.trial.effects import EFFECTS, points_of  # noqa: PLC0415  the same

    out.print("fault effects (and the points at which each can strike)")
    for name in EFFECTS.names:
        packages = dict.fromkeys(effect.package for effect in EFFECTS if effect.name == name and effect.package)
        out.print(f"  {name}: {', '.join(points_of(name))}{''.join(f'  from {package}' for package in packages)}")


def _print_packs(roots: Sequence[Path]) -> None:
    """Print each pack and its variants."""
    from bench.run.packs import missing_data, variants_of  # noqa: PLC0415  another kind should not wait for it

    out.print("packs")
    if not (packs := find_packs(roots)):
        out.print(f"  {no_packs_in(roots)}")
    for name, folder in packs.items():
        note = f"; not available here: {lacking}" if (lacking := missing_data(name, roots)) else ""
        package_note = f"  from {package}" if (package := package_of(folder)) else ""
        out.print(f"  {name}  (variants: {', '.join(variants_of(folder))}{note}){package_note}")


def _print_architectures(_: Sequence[Path]) -> None:
    """Print each architecture, what it needs, and its limits."""
    from bench.run.architectures.registry import ARCHITECTURES  # noqa: PLC0415  the same

    sections = {
        "architectures": [entry for entry in ARCHITECTURES if entry.acts_in != "world" and not entry.makes_own_calls],
        "architectures that act in a world": [entry for entry in ARCHITECTURES if entry.acts_in == "world"],
        "systems, as architectures over the measuring endpoint (and where each differs)": [
            entry for entry in ARCHITECTURES if entry.acts_in != "world" and entry.makes_own_calls
        ],
    }
    for heading, parts in sections.items():
        out.print(heading)
        for part in parts:
            needs = f"  needs .[{part.extra}]" if part.extra else ""
            package = f"  from {part.package}" if part.package else ""
            out.print(f"  {part.name}{needs}{package}{_notes_on_architecture(part)}")
            for limit in part.limits:
                out.print(f"    - {limit}")


def _notes_on_architecture(part: ArchitecturePart) -> str:
    """Return the notes on an architecture, in parentheses."""
    notes = (
        *(["an instrument: it asks, and does nothing"] if part.is_instrument else []),
        *(["in parallel as well"] if part.parallel else []),
        *([f"after {part.lineage}"] if part.lineage else []),
    )
    return f"  ({'; '.join(notes)})" if notes else ""


DETAILS: dict[str, Callable[[Sequence[Path]], None]] = {
    "packs": _print_packs,
    "architectures": _print_architectures,
    "models": _print_models,
    "effects": _print_effects,
}
"""Kind -> prints what each of its parts can do and needs."""
