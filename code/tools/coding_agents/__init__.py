"""What a coding agent pays for its tests, and what it believes, if it runs all tests, a selection, or the failing test."""
