"""Architectures that act in a world."""
