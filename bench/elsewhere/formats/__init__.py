"""The formats in which others publish trials, each as the pydantic models of what is read, and a function to the common form.

A member that no number needs is not read. A model refuses a member of a wrong type.
"""
