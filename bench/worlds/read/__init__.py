"""Reads the records of trials in worlds: steps, damage, tables, the scorecard."""
