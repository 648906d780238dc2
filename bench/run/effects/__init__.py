"""The effects of faults. Each effect is a function, and an entry at the end of its file."""
