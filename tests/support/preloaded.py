"""What the process that forks itself for each command has loaded: the package, the tokenizer's table, the fonts of figures."""

from __future__ import annotations

import gc

import httpx2
import matplotlib.backends.backend_agg
import matplotlib.backends.backend_svg  # noqa: F401

import bench.cli.main
import bench.read.report.report
import bench.run.openai.model
import bench.run.serve.session  # noqa: F401
from bench.common.tokens import count_tokens
from bench.read.render.drawing import blank, finish, style

count_tokens("")
with style():
    figure = blank(2, 2)
    figure.subplots()
    finish(figure, "first", "The first figure reads the fonts", "")
httpx2.AsyncClient()  # imports what it needs when it is first made
gc.freeze()
