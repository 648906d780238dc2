"""The names of the instances, and of the two files of tests."""

from __future__ import annotations

FRESH = tuple(f"case_{number:02}" for number in range(1, 21))
DEVELOPMENT = tuple(f"dev_{number:02}" for number in range(1, 11))
MANY = tuple(f"many_{number:03}" for number in range(1, 121))
"""For simulations: no model's run takes them."""
PATCH_ALONE = ("patch", "rewrite")
"""The variants that ask for a patch alone: in edits of lines, and in whole files."""
VISIBLE, HIDDEN = "tests/test_visible.py", "tests/test_hidden.py"
