"""The part of the door of functions that runs in the agent's own process. It imports only the standard library.

hook   wraps functions when their modules are imported, once the door is open
"""

import json

from .acting import watch_functions
from .door import Door
from .frameworks import TOOL_PLACES
from .imports import ImportHook
from .watching import watch_servers

hook: ImportHook


def open_door(settings_json: str) -> None:
    """Connect this process to the gateway, and wrap functions from now on.

    Args:
        settings_json: JSON with the gateway's `port`, the `token`, `functions` (`MODULE:FUNCTION` of each named function ->
            the name of its tool), and whether this process is `watched`.
    """
    global hook  # noqa: PLW0603  an interpreter has one
    settings = json.loads(settings_json)
    door = Door(settings["port"], settings["token"])
    hook = ImportHook(door, settings["functions"], TOOL_PLACES)
    hook.install()
    if settings["watched"]:
        watch_servers(door)
        watch_functions(door)
