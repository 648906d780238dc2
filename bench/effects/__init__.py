"""What faults do: an effect is one function, and one entry at the end of its file."""
