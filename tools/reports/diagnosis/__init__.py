"""How surely `bench explain diagnose` names what was planted: `PYTHONPATH=tools/reports python -m diagnosis`."""
