"""The scripted model of a task, and the endpoint at which it answers."""

from __future__ import annotations

import difflib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench.common.tokens import count_tokens
from coding_agents.tasks import Task

SUMMARY = re.compile(r"^(?:=+ )?(\d+ .*) in \d[\d.]*s\b", re.MULTILINE)
"""The last line of pytest."""
COUNTED = re.compile(r"(\d+) (?:passed|failed|errors?|skipped|xfailed|xpassed)\b")
Reply = Callable[[Sequence[Mapping[str, str]]], str]


def count_tests(printed: str) -> int:
    """Return how many tests ran, by the last line of each pytest that printed this."""
    return sum(int(count) for line in SUMMARY.findall(printed) for count in COUNTED.findall(line))


def scripted(task: Task, command: str) -> Reply:
    """Return the scripted model: it runs the tests, patches while they fail, and hands in if they pass or no patch is left."""
    patches = iter([_patch(*pair) for pair in zip(task.states, task.states[1:], strict=False)])

    def reply(messages: Sequence[Mapping[str, str]]) -> str:
        asked = [message["content"] for message in messages if message["role"] == "assistant"]
        if not asked or "git apply" in asked[-1]:
            return _action("I run the tests.", command)
        patch = None if "<returncode>0</returncode>" in messages[-1]["content"] else next(patches, None)
        if patch is None:
            return _action("I hand in.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")
        return _action("Tests fail, so I patch.", f"git apply --whitespace=nowarn - <<'PATCH'\n{patch}PATCH")

    return reply


def _action(thought: str, command: str) -> str:
    return f"THOUGHT: {thought}\n\n```mswea_bash_command\n{command}\n```"


def _patch(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    parts = []
    for path, text in after.items():
        texts = (before[path].splitlines(keepends=True), text.splitlines(keepends=True))
        lines = difflib.unified_diff(*texts, f"a/{path}", f"b/{path}")
        parts += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
    return "".join(parts)


@contextmanager
def endpoint(reply: Reply) -> Iterator[str]:
    """Answer chat completions on loopback within the block, and count their tokens."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = reply(asked["messages"])
            read, written = sum(count_tokens(message["content"]) for message in asked["messages"]), count_tokens(text)
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
            whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted"}
            body = json.dumps({**whole, "choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
