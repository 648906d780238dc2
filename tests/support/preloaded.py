"""What the process that forks itself for each command has loaded: the package, and the tokenizer's table."""

from __future__ import annotations

import gc

import httpx2
import matplotlib.backends.backend_agg
import matplotlib.backends.backend_svg  # noqa: F401

import bench.cli.main
import bench.models.openai
import bench.report.report
import bench.serve.session  # noqa: F401
from bench.tokens import count_tokens

count_tokens("")
httpx2.AsyncClient()  # imports what it needs when it is first made
gc.freeze()
