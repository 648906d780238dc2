"""The program that replaces an MCP server over stdio while a cell is played from a tape: it answers requests that are no calls.

    tape_server.py ANSWERS

ANSWERS is JSON: method -> the message with which the server answered in the recording. The gateway answers the calls from
the tape. The program imports only the standard library, since it starts with each process of the agent.
"""

import json
import sys


def main() -> None:
    """Answer each request on stdin."""
    answers = json.loads(sys.argv[1])
    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and "id" in message and "method" in message:
            unknown_method = {"error": {"code": -32601, "message": "this method is not on the tape"}}
            answer = answers.get(message["method"], {"result": {}} if message["method"] == "ping" else unknown_method)
            print(json.dumps({**answer, "jsonrpc": "2.0", "id": message["id"]}), flush=True)


if __name__ == "__main__":
    main()
