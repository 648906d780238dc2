"""The effects of faults: each is one function, and one entry at the end of its file."""
