"""A system that is none of ours: it knows an address and JSON."""

from __future__ import annotations

import json
from typing import Any

import httpx2


class OutsideSystem:
    def __init__(self, root: str, client: httpx2.Client):
        self.root, self._client = root, client

    def get(self, path: str) -> Any:
        return self._client.get(self.root + path).json()

    def status_of(self, path: str) -> int:
        return self._client.get(self.root + path).status_code

    def post(self, path: str, body: object = None) -> httpx2.Response:
        """`body` as JSON in ASCII, which can say half a surrogate pair."""
        if body is None:
            return self._client.post(self.root + path)
        return self._client.post(self.root + path, content=json.dumps(body), headers={"Content-Type": "application/json"})

    def ask(self, base_url: str, messages: object, **fields: object) -> httpx2.Response:
        return self._client.post(f"{base_url}/chat/completions", json={"model": "any", "messages": messages, **fields})

    def hello(self, words: str = "hello") -> int:
        return self.ask(f"{self.root}/v1", [{"role": "user", "content": words}]).status_code

    def reply_to(self, subtask: dict[str, Any]) -> str:
        """Ask until a reply comes."""
        while (response := self.ask(subtask["base_url"], subtask["messages"])).status_code == 429:
            pass
        return str(response.json()["choices"][0]["message"]["content"])

    def solve(self) -> dict[str, str]:
        """Ask for each subtask once."""
        return {subtask["name"]: self.reply_to(subtask) for subtask in self.get("/trial")["subtasks"]}

    def hand_in(self, outputs: dict[str, Any]) -> Any:
        """The account of the trial."""
        return self.post("/trial/answer", outputs).json()
