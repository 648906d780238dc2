"""Regressions: whether a run is worse than an earlier one, arm by arm, and how many pairs would decide it."""
