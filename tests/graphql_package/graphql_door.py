"""A door before a GraphQL service, as a package of somebody else brings it: this file, and an entry point. Over HTTP each
call is the same POST; here a call is an operation, and a query reads."""

from __future__ import annotations

import re

from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import LiveCall
from bench.probe.run.gateway.http import HttpDoor
from bench.probe.run.gateway.http_exchange import ServiceRequest


class GraphqlDoor(HttpDoor):
    """Names a call by its operation."""

    def call_of(self, request: ServiceRequest) -> LiveCall:
        call, body = super().call_of(request), request.value
        if isinstance(body, dict) and (operation := re.match(r"\s*(query|mutation)\b\s*(\w*)", str(body.get("query", "")))):
            call.tool, call.arguments = " ".join(filter(None, operation.groups())), body.get("variables")
            call.reads = operation[1] == "query" or None
        return call


KIND = DoorKind("graphql", can=frozenset(("hold", "twice")), opens=GraphqlDoor)
