"""What a report shows of trials in worlds."""
