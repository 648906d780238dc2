"""Frameworks: published architectures, and the frameworks that people build agents with."""
