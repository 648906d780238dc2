"""Engines: they run trials outside of this process, and parts of a run are merged."""
