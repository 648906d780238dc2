"""Runs that other people recorded. They are read, counted and re-executed, and never pooled with ours."""
