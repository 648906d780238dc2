"""The recovery scorecard: what happened to each system's work and its world when the system was killed and started again."""
