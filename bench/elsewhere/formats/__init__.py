"""The formats in which others publish trials. Each has pydantic models of the JSON members that are read, and a function that
returns the trials in the common form.

A member that no number needs is not read. A model refuses a member of a wrong type.
"""
