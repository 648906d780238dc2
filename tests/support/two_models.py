"""Two models behind an endpoint of our own on loopback: `good` always gives the reference answer; `weak` has a twentieth of the
price, and gives every ninth total wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from scripted_server import ScriptedServer, Step, completion

from bench.run.packs import load_pack

CONFIG = """
name = "two_models"
scenarios = ["tiny"]
architectures = ["monolithic", "static"]
models = ["good", "weak"]
plans = ["none", "first_reply"]
repetitions = {repetitions}
seed = 3

[plan.first_reply]
faults = [{{ point = "output", effect = "missing_field", subtask = "total", attempts = [1] }}]

[model.good]
kind = "openai"
base_url = "{url}"
model = "good"
price_in = 10.0
price_out = 10.0
concurrency = 1

[model.weak]
kind = "openai"
base_url = "{url}"
model = "weak"
price_in = 0.5
price_out = 0.5
concurrency = 1
"""
PACKS = Path(__file__).parent / "packs"


class TwoModels(ScriptedServer):
    """The endpoint. `wrong_of` is by model how many of the answers with a total were wrong, and how many there were."""

    def __init__(self, every: int = 9) -> None:
        super().__init__(self._answer)
        self._reference, self._every = load_pack("tiny", [PACKS]).reference, every
        self.totals, self.wrong = Counter[str](), Counter[str]()

    def config(self, folder: Path, repetitions: int) -> Path:
        path = folder / "two_models.toml"
        path.write_text(CONFIG.format(url=self.base_url, repetitions=repetitions), encoding="utf-8")
        return path

    def _answer(self, body: Any) -> Step:
        model, asked = body["model"], body["messages"][-1]["content"]
        name = next((name for name in self._reference if f"# Task: {name}" in asked), None)
        outputs = json.loads(json.dumps(self._reference))
        if name in ("total", None):
            self.totals[model] += 1
            if model == "weak" and self.totals[model] % self._every == 0:
                self.wrong[model] += 1
                outputs["total"]["total"] += 1
        return completion(json.dumps(outputs[name] if name else outputs))
