"""How an agent acts in its world within a trial: its process, the faults that strike there, and the events that it leaves."""
