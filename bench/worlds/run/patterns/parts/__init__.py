"""The parts that all patterns share. A pattern decides which step is done when, and what outlives a crash."""
