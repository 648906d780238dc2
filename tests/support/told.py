"""How a document tells an estimate: with commas, and with the mark of an interval that is too narrow."""

from __future__ import annotations

from bench.read.analysis.statistics import Mean, is_narrow


def told(mean: Mean) -> str:
    """The estimate with its interval."""
    assert mean.mean is not None and mean.low is not None and mean.high is not None
    return f"{mean.mean:,.0f} [{mean.low:,.0f}, {mean.high:,.0f}]{'†' if is_narrow(mean) else ''}"
