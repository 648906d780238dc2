"""What is read off the events of trials in worlds."""
