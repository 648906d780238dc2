"""The PostgreSQL server of the witnesses' tests."""

from __future__ import annotations

from tests.probe.run.witness.conftest import server

__all__ = ["server"]
