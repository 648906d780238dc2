"""A tool that asks a GraphQL service, for agents whose environment names one in SHOP_URL."""

import json
import os
import urllib.request

URL = os.environ.get("SHOP_URL", "")


def graphql(query: str) -> str:
    """Ask the shop's GraphQL API."""
    request = urllib.request.Request(
        f"{URL}/graphql", json.dumps({"query": query}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()
