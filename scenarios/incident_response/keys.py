"""The business key of each effect: two deeds of one key mean the same effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

KEYS: Mapping[str, str] = {
    "open_incident": "opening of {incident}",
    "set_severity": "severity of {incident}",
    "announce": "announcement of {status}",
    "page": "page of {who}",
    "note_finding": "finding of {incident}",
    "roll_back": "rollback of {service}",
    "restart": "restart of {service}",
    "scale": "scale of {service}",
    "raise_limit": "limit of {service}",
    "renew_certificate": "certificate of {service}",
    "free_disk": "disk of {service}",
    "drain": "drain of {node}",
    "reboot": "reboot of {node}",
    "close_incident": "closing of {incident}",
}
UNDOES: Mapping[str, str] = {
    "roll_back": "roll_forward",
    "scale": "scale_back",
    "raise_limit": "lower_limit",
    "drain": "undrain",
}
"""Tool -> its undo."""
REMEDIES = ("roll_back", "restart", "scale", "raise_limit", "renew_certificate", "free_disk", "drain", "reboot")


def field_of(tool: str) -> str:
    """The argument that says what a tool is done to."""
    return KEYS[tool].partition("{")[2].rstrip("}")


def key_of(tool: str, target: str) -> str:
    return KEYS[tool].format(**{field_of(tool): target})


def keyed(tool: str) -> Callable[[Any], str]:
    """The business key, from a tool's arguments."""
    return lambda arguments: key_of(tool, getattr(arguments, field_of(tool)))
