"""Worlds: environments in which an agent acts, the tools and patterns that act in them, and what is read of their records."""
