"""An MCP client that asks for a refund with plain HTTP, and says what came back: so that a lost answer is seen as it is."""

import http.client
import json
import os

HOST, _, PATH = os.environ["MCP_URL"].removeprefix("http://").partition("/")


def ask(method: str, version: str | None, **params: object) -> str:
    headers = {
        "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **({"MCP-Protocol-Version": version} if version else {}),
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    connection = http.client.HTTPConnection(HOST)
    connection.request("POST", f"/{PATH}", body, headers)
    try:
        answer = connection.getresponse()
    except http.client.HTTPException as error:
        return type(error).__name__
    reply = json.loads(answer.read())
    return f"{answer.status} {'result' if 'result' in reply else reply['error']['code']}"


CALL = {"name": "refund", "arguments": {"order": 1, "amount": 40}}
print(ask("tools/call", None, **CALL))
print(ask("tools/list", None))
print(ask("tools/list", "1999-01-01"))
print(ask("no/such", None))
