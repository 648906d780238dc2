"""Runs that others recorded: read, counted and re-executed. They are never pooled with ours."""
