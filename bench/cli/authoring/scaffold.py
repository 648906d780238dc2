"""Make a folder of code from templates, completely or not at all, and name the command that checks it."""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench.common.errors import PackError
from bench.common.paths import PACKS
from bench.record.files import write_files

TEMPLATE_SUFFIX = ".j2"
"""The suffix of a file that jinja renders. The rendered file has the name without the suffix."""


def render_templates(folder: Path, values: Mapping[str, object]) -> None:
    """Replace each template in a folder by its rendered text.

    Args:
        values: The values that the templates use.
    """
    for path in sorted(folder.rglob(f"*{TEMPLATE_SUFFIX}")):
        text = environment_of(folder).get_template(path.relative_to(folder).as_posix()).render(values)
        path.with_suffix("").write_text(text, encoding="utf-8")
        path.unlink()


def environment_of(folder: Path) -> Environment:
    """Return the renderer of the templates in a folder. The filter `quoted` writes a text as JSON."""
    environment = Environment(
        loader=FileSystemLoader(folder), undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    return environment


def copy_template(template: Path, folder: Path) -> None:
    """Copy a template's files into a folder. Raises ResultsError if a file cannot be written."""
    files = [path for path in sorted(template.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    write_files(folder, {str(path.relative_to(template)): path.read_bytes() for path in files})


def make_pack(name: str, into: Path, write: Callable[[Path], None]) -> Path:
    """Make the folder of a pack by calling `write`. On an error no folder is left."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise PackError(f"'{name}' cannot be the name; use lower-case letters, digits and underscores, a letter first")
    folder = into / name
    if folder.exists():
        raise PackError(f"{folder} exists already; choose another name, or remove it")
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into, prefix=".new-") as unfinished:
        draft = Path(unfinished) / name
        draft.mkdir()
        write(draft)
        draft.rename(folder)
    return folder


def check_command(folder: Path) -> str:
    """Return the command that checks the pack in this folder, as typed in the working directory."""
    option = "" if folder.parent in PACKS else f" --scenarios {shlex.quote(str(folder.parent))}"
    return f"bench check {folder.name}{option}"
