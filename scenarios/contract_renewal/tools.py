"""The tools, each with its description for an agent."""

from __future__ import annotations

from dataclasses import replace

from .reading import READING
from .writing import WRITING

ABOUT = {
    "look_up": "The customer's name, product, what it asks for, and its churn risk as it was scored.",
    "read_usage": "How much the customer uses, and whether that alarm is on.",
    "read_network": "How often its network failed, and whether that alarm is on.",
    "read_billing": "How late it pays, and whether that alarm is on.",
    "read_support": "Its tickets, and whether that alarm is on.",
    "read_catalogue": "The products that are no longer sold.",
    "read_offer": "The offer that stands; empty where none does.",
    "read_reply": "What the customer answered.",
    "read_price": "The price of what was accepted.",
    "open_renewal": "Open the renewal. Once for each customer.",
    "note_crm": "Write a note on the customer into the CRM.",
    "remove_note": "Remove the last note from the CRM.",
    "score_churn": "Score the risk that the customer leaves.",
    "draft_offer": "Draft an offer. It is not sent yet.",
    "withdraw_offer": "Withdraw an offer that is not published yet.",
    "publish_offer": "Publish the offer that stands. It cannot be withdrawn any more.",
    "send_outreach": "Send the published offer to the customer, who answers days later, or never.",
    "accept": "Accept on the customer's word, at the terms that were published: the contract goes on.",
    "close": "End the renewal without a contract.",
    "expire": "End the renewal of a customer who never answered.",
    "invoice": "Send the invoice for what was accepted.",
}
"""Without the policy: that is told in its document, and knowing it is part of the work."""

TOOLS = tuple(replace(tool, description=ABOUT[tool.name]) for tool in (*READING, *WRITING))
