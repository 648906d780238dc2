"""Run untrusted code."""

from bench.common.errors import SandboxBroken
from bench.run.sandbox.guards import Guard, Guards, guards
from bench.run.sandbox.parent import Limits, SandboxResult, run_python

__all__ = ["Guard", "Guards", "Limits", "SandboxBroken", "SandboxResult", "guards", "run_python"]
