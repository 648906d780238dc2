"""How Sphinx builds these pages: `nox -s docs`. It reads the checkout alone; the pages load nothing from anywhere else."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

project = "recovery-bench"
copyright = "the recovery-bench authors, Apache-2.0"  # noqa: A001  Sphinx reads this name
version = release = metadata.version("recovery-bench")

extensions = ["myst_parser", "sphinx.ext.autodoc", "reference.sphinx_extension"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
smartquotes = False  # it would make one dash of the two of an option
nitpicky = False  # types from other projects are named and not linked

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True, "exclude-members": "model_config, Seldom"}

html_theme = "furo"
html_title = "recovery-bench"
html_static_path = ["style"]
html_css_files = ["tables.css"]
html_copy_source = False
html_show_sphinx = False
