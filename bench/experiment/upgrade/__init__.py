"""Runs of earlier formats carried over to the one that is read now, a step from each to the next."""
