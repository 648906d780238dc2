"""The parts that all patterns share. A pattern is who does which step when, and what of it outlives a crash."""
