"""What the rooms above share of processes and of the wire: agents that run, who may ask, and what is blotted."""
