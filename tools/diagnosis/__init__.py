"""How surely `bench diagnose` names what was planted: `PYTHONPATH=tools python -m diagnosis`."""
