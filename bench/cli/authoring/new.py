"""`bench new`: makes a small working pack, or a package of parts, from a template."""

from __future__ import annotations

import keyword
from importlib.util import find_spec
from pathlib import Path

from bench.cli.authoring.scaffold import copy_template, make_pack, render_templates
from bench.common.errors import PackError

TEMPLATES = Path(__file__).parents[1] / "templates"


def new_scenario(name: str, into: Path) -> Path:
    """Copy the template to `into/name`. Raises PackError if the name is no identifier or is taken."""

    def write(folder: Path) -> None:
        copy_template(TEMPLATES / "scenario", folder)
        readme = folder / "README.md"
        readme.write_text(readme.read_text(encoding="utf-8").replace("SCENARIO_NAME", name), encoding="utf-8")

    return make_pack(name, into, write)


def new_plugin(name: str, into: Path) -> Path:
    """Make a package of parts in `into/name`: an architecture, an effect and a metric, with tests.

    Raises:
        PackError: The name is no identifier or is taken, here or by a module that Python finds.
    """
    if name.isidentifier() and (keyword.iskeyword(name) or find_spec(name)):
        raise PackError(f"'{name}' is a word or a module of Python already; choose another name")

    def write(folder: Path) -> None:
        copy_template(TEMPLATES / "plugin", folder)
        (folder / "package").rename(folder / name)
        render_templates(folder, {"name": name})

    return make_pack(name, into, write)
