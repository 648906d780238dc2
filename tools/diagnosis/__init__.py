"""How surely `bench explain diagnose` names what was planted: `PYTHONPATH=tools python -m diagnosis`."""
