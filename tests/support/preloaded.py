"""What the process that forks itself for each command has loaded: the package, the tokenizer's table, the fonts of figures, the
digest of our code, what git says of it, the options of all commands."""

from __future__ import annotations

import functools
import gc

import httpx2
import matplotlib.backends.backend_agg
import matplotlib.backends.backend_svg  # noqa: F401
import typer.main

import bench.cli.main
import bench.read.report.written_report
import bench.run.openai.model
import bench.run.serve.session
from bench.common.tokens import count_tokens
from bench.read.render.drawing import blank, finish, style
from bench.read.report.figures import FIGURES
from bench.read.report.tables import TABLES
from bench.record.provenance import package_versions
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.experiment import code
from bench.run.experiment.model_entries import MODELS
from bench.run.trial.effects import EFFECTS

count_tokens("")
with style():
    figure = blank(2, 2)
    figure.subplots()
    finish(figure, "first", "The first figure reads the fonts", "")
httpx2.AsyncClient()  # imports what it needs when it is first made
for part in (*ARCHITECTURES, *EFFECTS, *MODELS):
    code.our_codebase().of_part(part)
code._git = functools.cache(code._git)  # no test changes the checkout
code.code_version(), package_versions()
names = [kind.names for kind in (TABLES, FIGURES)]  # their entries lead to what makes them, which is imported for it
typer.main.get_command = functools.cache(typer.main.get_command)
typer.main.get_command(bench.cli.main.app)
gc.freeze()
