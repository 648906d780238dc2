"""Sessions: an outside system gets trials, and hands in answers."""
