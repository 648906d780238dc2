"""The results of a probe, read from its records alone: a page, and ten lines for the terminal."""
