"""The experiments beyond the paper: for each a module of pure functions from a run's frames to what its table and figure show.

They raise ResultsError, in one line, where a run lacks what the experiment needs.
"""
