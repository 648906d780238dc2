"""The agent's side of the door of functions. It runs in the agent's own process, and imports from the standard library alone.

hook   finds functions as their modules are imported, once the door is open
"""

import json

from .door import Door
from .frameworks import PLACES
from .imports import ImportHook

hook: ImportHook


def open_door(given: str) -> None:
    """Open the door.

    Args:
        given: JSON with the gateway's port, the token, and `MODULE:FUNCTION` of what is named, each with its tool's name.
    """
    global hook  # noqa: PLW0603  an interpreter has one
    settings = json.loads(given)
    hook = ImportHook(Door(settings["port"], settings["token"]), settings["functions"], PLACES)
    hook.install()
