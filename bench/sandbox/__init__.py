"""Run code that nobody trusts."""

from bench.sandbox.parent import Limits, SandboxBroken, SandboxResult, run_python

__all__ = ["Limits", "SandboxBroken", "SandboxResult", "run_python"]
