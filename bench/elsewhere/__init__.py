"""Recordings that other people and programs made. They are read, told, counted and re-executed, and never pooled with ours.

trials     the common form of graded trials; `formats` has a reader for each form in which others publish them
runs       a single run as its steps: traces, trajectories, sessions of coding agents
telling    which calls were made again, after what, and what the file cannot say
reexecute  recorded calls, sent to the user's own server
"""
