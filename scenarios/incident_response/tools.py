"""The tools, each with what an agent is told of it."""

from __future__ import annotations

from dataclasses import replace

from .reading import READING
from .writing import WRITING

ABOUT = {
    "read_alert": "What the alert says.",
    "read_metrics": "How many requests fail now, and how long they take, by service.",
    "read_overview": "What each service calls, and the last line of its log. Takes 2 minutes.",
    "read_log": "A service's log. Takes 3 minutes.",
    "read_changes": "What was changed of late. Takes 2 minutes.",
    "read_deployment": "A service's version, replicas and limits, and what it depends on.",
    "read_capacity": "The nodes, and how many of them are needed.",
    "read_incident": "The incident's record: its severity, the finding, what was done, who was paged.",
    "open_incident": "Open the incident. Once.",
    "set_severity": "Set its severity. Once.",
    "announce": "Tell all users.",
    "page": "Wake somebody: the lead, the service's owner, or the provider.",
    "note_finding": "Note which service is at fault, and why. Once.",
    "roll_back": "Return a service to the version before.",
    "roll_forward": "Return a service to the version that it was rolled back from.",
    "scale": "Run so many replicas of a service.",
    "scale_back": "Run as many replicas of a service as before.",
    "raise_limit": "Allow a service so many database connections.",
    "lower_limit": "Allow a service as many database connections as before.",
    "drain": "Move everything off a node.",
    "undrain": "Let a node be used again.",
    "reboot": "Start a drained node anew.",
    "restart": "Start a service anew.",
    "renew_certificate": "Renew a service's certificate.",
    "free_disk": "Delete what a service no longer needs.",
    "close_incident": "Close the incident, with a note. Once.",
}
"""Without the policy: that is told in its document, and knowing it is part of the work."""

TOOLS = tuple(replace(tool, description=ABOUT[tool.name]) for tool in (*READING, *WRITING))
