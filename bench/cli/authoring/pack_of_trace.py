"""`bench import`: a pack made from the steps of a run recorded elsewhere, and its configs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.cli.authoring.scaffold import TEMPLATE_SUFFIX, copy_template, environment_of, make_pack
from bench.common.errors import PackError, one_line
from bench.common.paths import CONFIGS
from bench.elsewhere.runs import ImportedStep, key_of, step_name, tool_names

TEMPLATE = Path(__file__).parent / "templates" / "trace"


def pack_of_trace(
    name: str, into: Path, steps: Sequence[ImportedStep], failing_step: int, source: str, same: Mapping[int, int] | None = None
) -> list[Path]:
    """Make a pack in `into/name` from a run recorded elsewhere, and write its configs.

    Args:
        failing_step: The number of the step that fails, from 1.
        source: The name of the file of the steps. It is written into the configs as one line.
        same: The number of a step -> the number of an earlier step, whose calls the step makes again. The two steps make one
            effect.

    Returns:
        The configs: for replies, and, if the failing step changes something, for effects.

    Raises:
        PackError: `new_scenario` would raise it, or a config of this name exists.
    """
    step_values: list[dict[str, Any]] = [
        {"name": step_name(number), **asdict(step), "calls": []} for number, step in enumerate(steps, 1)
    ]
    effects_of = dict[tuple[int, str, str], str]()
    for number, call, tool in tool_names(steps):
        effect = effects_of.get(((same or {}).get(number, 0), *key_of(call.tool, call.arguments)), tool)
        effects_of[number, *key_of(call.tool, call.arguments)] = effect
        step_values[number - 1]["calls"].append({**asdict(call), "tool": tool, "effect": effect})
    writing_calls = [call for call in step_values[failing_step - 1]["calls"] if not call["reads"]]
    variants = {"answers": CONFIGS / f"{name}.toml"} | ({"effects": CONFIGS / f"{name}_effects.toml"} if writing_calls else {})
    for path in variants.values():
        if path.exists():
            raise PackError(f"{path} exists already; choose another name, or remove it")

    def write(folder: Path) -> None:
        """Write the files of the pack into `folder`, and its configs beside the other configs."""
        copy_template(TEMPLATE, folder)
        effects = len({call["effect"] for step in step_values for call in step["calls"] if not call["reads"]})
        values = {
            "name": name,
            "source": one_line(source, 200),
            "steps": step_values,
            "effects": effects,
            "step": failing_step,
            "changing": writing_calls,
        }
        (folder / "trace.json").write_text(f"{json.dumps({'steps': step_values}, indent=1)}\n", encoding="utf-8")
        environment = environment_of(folder)
        (folder / "README.md").write_text(
            environment.get_template(f"README.md{TEMPLATE_SUFFIX}").render(values), encoding="utf-8"
        )
        for variant, path in variants.items():
            path.parent.mkdir(exist_ok=True)
            config_values = {
                **values,
                "variant": variant,
                "suffix": path.stem.removeprefix(name),
                "failing": step_name(failing_step),
            }
            path.write_text(environment.get_template(f"config.toml{TEMPLATE_SUFFIX}").render(config_values), encoding="utf-8")
        for file in folder.glob(f"*{TEMPLATE_SUFFIX}"):
            file.unlink()

    make_pack(name, into, write)
    return list(variants.values())
