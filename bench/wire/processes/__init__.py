"""Processes of agents: each is watched over by a supervisor, so that none is left behind."""
