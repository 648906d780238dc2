"""The agent's side of the door of functions. It runs in the agent's own process, and imports from the standard library alone.

hook   finds functions as their modules are imported, once the door is open
"""

import json

from .acting import watch_functions
from .door import Door
from .frameworks import PLACES
from .imports import ImportHook
from .watching import watch

hook: ImportHook


def open_door(given: str) -> None:
    """Open the door.

    Args:
        given: JSON with the gateway's port, the token, `MODULE:FUNCTION` of what is named, each with its tool's name, and
            whether this process is `watched`.
    """
    global hook  # noqa: PLW0603  an interpreter has one
    settings = json.loads(given)
    door = Door(settings["port"], settings["token"])
    hook = ImportHook(door, settings["functions"], PLACES)
    hook.install()
    if settings["watched"]:
        watch(door)
        watch_functions(door)
