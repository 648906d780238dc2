"""Recordings that other people and programs made. They are read, reported, counted and re-executed, and never pooled with ours.

trials     the common form of graded trials; `formats` has a reader for each form in which others publish them
runs       single runs as their steps: traces, trajectories, sessions of coding agents
telling    the report on a run: which calls were repeated, what preceded the repetitions, and what the file cannot say
reexecute  sends recorded calls to the user's own server
"""
