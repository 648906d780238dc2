"""Architectures that act in a world, and what they share. A pattern decides which step is done when, and what outlives a
crash."""
