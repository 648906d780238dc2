"""What the policy and the terms say, as numbers and minutes. `documents/terms.md` and the prompts say the same in words; a test
compares them."""

from __future__ import annotations

VERSION = "desk-2026-1"
RETURN_DAYS = 30
"""Days after delivery within which an order can be returned."""
FREELY = 150
"""A refund of more needs the lead."""

LENGTH = 120
"""Minutes of a conversation's world."""
FIRST, CLOSE, CLOSING_DUE = 1, 75, 110
"""Minutes after its beginning: the first message, the closing, and its last moment."""
SILENCE = 30
"""Minutes without an answer, after which the desk is told so."""
ANSWERS, ANSWERS_LATE = 4, 15
"""Minutes until the lead answers, and until the lead answers late."""
THROTTLE = 30
"""Tool calls that are taken in a minute."""
