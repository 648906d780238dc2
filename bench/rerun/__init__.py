"""Counterfactuals: a recorded trial is run again on the same draws, with a change in the agent or in the faults."""
