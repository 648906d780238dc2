"""How surely `bench explain diagnose` names what was planted in a package of a user's own: `python -m diagnosis.own`."""
