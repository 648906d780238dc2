"""`bench new`: a small pack that works, copied from the package's template or made of a table's rows, or a package of parts."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench.cli.rows import ColumnKind, SourceRow, SourceRows
from bench.errors import PackError
from bench.export.imported import ImportedStep, step_name, tool_names
from bench.paths import CONFIGS, PACKS

TEMPLATES = Path(__file__).parents[1] / "templates"
RENDERED = ".j2"
TYPES: dict[ColumnKind, str] = {"text": "str", "integer": "int", "number": "float", "boolean": "bool"}
COMPARED: dict[ColumnKind, str] = {
    "word": "exactly",
    "text": "without regard to case and space",
    "integer": "exactly",
    "number": "up to the ninth digit",
    "boolean": "exactly",
}


def new_scenario(name: str, into: Path) -> Path:
    """Copy the template to `into/name`. Raises PackError where the name is no identifier or is taken."""

    def write(folder: Path) -> None:
        _copy(TEMPLATES / "scenario", folder)
        readme = folder / "README.md"
        readme.write_text(readme.read_text(encoding="utf-8").replace("SCENARIO_NAME", name), encoding="utf-8")

    return _made(name, into, write)


def scenario_of_rows(name: str, into: Path, rows: SourceRows, source: str) -> Path:
    """Make a pack in `into/name` whose instances are the rows. Raises PackError as `new_scenario` does.

    source   the name of the file that the rows were read from
    """

    def write(folder: Path) -> None:
        _copy(TEMPLATES / "rows", folder)
        values = {
            "name": name,
            "source": source,
            "rows": rows.rows,
            "fields": rows.fields,
            "inputs": list(rows.rows[0].input),
            "most_common": rows.most_common,
            "types": TYPES,
            "compared": COMPARED,
        }
        _render(folder, values)
        (folder / "rows.jsonl").write_text("".join(map(_line, rows.rows)), encoding="utf-8")

    return _made(name, into, write)


def new_plugin(name: str, into: Path) -> Path:
    """Make a package of parts in `into/name`: an architecture, an effect and a metric, with a test of them.

    Raises:
        PackError: As `new_scenario` does.
    """

    def write(folder: Path) -> None:
        _copy(TEMPLATES / "plugin", folder)
        (folder / "package").rename(folder / name)
        _render(folder, {"name": name})

    return _made(name, into, write)


def pack_of_trace(name: str, into: Path, steps: Sequence[ImportedStep], failing: int, source: str) -> list[Path]:
    """Make a pack in `into/name` of a run that was recorded elsewhere, and write its configs.

    Args:
        failing: The number of the step that fails, from 1.
        source: The name of the file that the steps were read from.

    Returns:
        The configs: of replies, and, where the failing step changes something, of effects.

    Raises:
        PackError: As `new_scenario` does, or a config of this name exists.
    """
    named: list[dict[str, Any]] = [
        {"name": step_name(number), **asdict(step), "calls": []} for number, step in enumerate(steps, 1)
    ]
    for number, call, tool in tool_names(steps):
        named[number - 1]["calls"].append({**asdict(call), "tool": tool})
    changing = [call for call in named[failing - 1]["calls"] if not call["reads"]]
    variants = {"answers": CONFIGS / f"{name}.toml"} | ({"effects": CONFIGS / f"{name}_effects.toml"} if changing else {})
    for path in variants.values():
        if path.exists():
            raise PackError(f"{path} exists already; choose another name, or remove it")

    def write(folder: Path) -> None:
        _copy(TEMPLATES / "trace", folder)
        effects = sum(not call["reads"] for step in named for call in step["calls"])
        values = {"name": name, "source": source, "steps": named, "effects": effects, "step": failing, "changing": changing}
        (folder / "trace.json").write_text(f"{json.dumps({'steps': named}, indent=1)}\n", encoding="utf-8")
        environment = _environment(folder)
        (folder / "README.md").write_text(environment.get_template(f"README.md{RENDERED}").render(values), encoding="utf-8")
        for variant, path in variants.items():
            path.parent.mkdir(exist_ok=True)
            given = {**values, "variant": variant, "suffix": path.stem.removeprefix(name), "failing": step_name(failing)}
            path.write_text(environment.get_template(f"config.toml{RENDERED}").render(given), encoding="utf-8")
        for file in folder.glob(f"*{RENDERED}"):
            file.unlink()

    _made(name, into, write)
    return list(variants.values())


def _render(folder: Path, values: Mapping[str, object]) -> None:
    """Put in the place of each template in a folder what comes of it."""
    for path in sorted(folder.rglob(f"*{RENDERED}")):
        text = _environment(folder).get_template(path.relative_to(folder).as_posix()).render(values)
        path.with_suffix("").write_text(text, encoding="utf-8")
        path.unlink()


def _line(row: SourceRow) -> str:
    return f"{json.dumps(asdict(row), ensure_ascii=False)}\n"


def _environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folder), undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    return environment


def _copy(template: Path, folder: Path) -> None:
    shutil.copytree(template, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


def _made(name: str, into: Path, write: Callable[[Path], None]) -> Path:
    """Have a pack's folder written, whole or not at all."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise PackError(f"'{name}' is no name here; use lower-case letters, digits and underscores, a letter first")
    folder = into / name
    if folder.exists():
        raise PackError(f"{folder} exists already; choose another name, or remove it")
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into, prefix=".new-") as unfinished:
        made = Path(unfinished) / name
        made.mkdir()
        write(made)
        made.rename(folder)
    return folder


def check_command(folder: Path) -> str:
    """The command that checks the pack in this folder, from where we stand."""
    where = "" if folder.parent in PACKS else f" --scenarios {shlex.quote(str(folder.parent))}"
    return f"bench check {folder.name}{where}"
