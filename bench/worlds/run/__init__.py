"""What makes a trial in a world: the environment, its tools, the process that can die, and the patterns that act there."""
