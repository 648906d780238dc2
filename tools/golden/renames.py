"""What has another name today than in the golden file. A rename is declared here, in the commit that makes it, and the file of
digests stays as it is: whatever else the commit changed is then told."""

from __future__ import annotations

ITEMS = {"parallel": "forks", "repair_policies": "policy"}
"""Name of a config today -> its name in the golden file."""
FRAMES: dict[str, str] = {}
"""Name of a frame today -> its name in the golden file."""
COLUMNS: dict[str, str] = {"plan": "fault", "in_answer": "useful", "finish": "ended", "accepted_again": "recovered"}
"""Name of a column today -> its name in the golden file, in every frame that has it."""
VALUES: dict[str, dict[str, str]] = {
    "account": {"in_answer": "useful"},
    "ended": {"restarted": "recovered", "answered_wrong": "recovered", "answered": "recovered"},
}
"""Name of a column in the golden file -> value today -> value in the golden file."""
DROPPED: set[str] = set()
"""`frame.column`, by its names in the golden file: columns that are no longer made. A new column needs no entry."""
