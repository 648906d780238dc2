"""Counterfactuals: a recorded trial is run again on the same draws, with something in it changed."""
