"""Analysis of the events of trials in worlds."""
