"""The tools, each with what an agent is told of it."""

from __future__ import annotations

from dataclasses import replace

from .reading import READING
from .writing import WRITING

ABOUT = {
    "read_conversation": "What the customer and the desk have written.",
    "read_aside": "The customer's second request; empty where there is none.",
    "read_orders": "The customer's orders, with their state and price.",
    "read_stock": "How many are left of an order's item in another size.",
    "read_account": "The customer's name and present address.",
    "read_ticket": "The ticket's record: the request, what was offered, what was done.",
    "open_ticket": "Open the ticket. Once.",
    "note_request": "Note what the customer wants, as it is settled. Once.",
    "reply": "Answer the customer: turn 1 for the first message, turn 2 with the offer. Each once.",
    "reserve": "Hold an item of a size back for an exchange.",
    "release": "Give back what was held for an exchange.",
    "refund": "Return the price of an order. It cannot be taken back.",
    "ship": "Send what was reserved in exchange to an address. It cannot be taken back.",
    "cancel_order": "Cancel an order that is not on its way. It cannot be taken back.",
    "change_address": "Send an order that is not on its way to another address.",
    "restore_address": "Send an order to the address that it had before.",
    "close_ticket": "Close the ticket, with a note. Once.",
}
"""Without the policy: that is told in its document, and knowing it is part of the work."""

TOOLS = tuple(replace(tool, description=ABOUT[tool.name]) for tool in (*READING, *WRITING))
