"""Run untrusted code."""

from bench.errors import SandboxBroken
from bench.sandbox.guards import Guard, Guards, guards
from bench.sandbox.parent import Limits, SandboxResult, run_python

__all__ = ["Guard", "Guards", "Limits", "SandboxBroken", "SandboxResult", "guards", "run_python"]
