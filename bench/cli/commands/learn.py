"""The command `bench more learn`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.command import PacksOption
from bench.cli.commands.completion import run_names
from bench.cli.remembered import packs_of
from bench.cli.terminal import Terminal
from bench.common.paths import PACKS, folder_of
from bench.record.config import FAULT_FREE
from bench.record.files import write_files
from bench.record.verify import require_sound

out, err = Terminal(), Terminal(stderr=True)


def learn(
    run: Annotated[
        str,
        typer.Argument(
            autocompletion=run_names, help="The run to learn from: its name under results/, its folder, or its archive."
        ),
    ],
    to: Annotated[Path, typer.Option(help="The policy file to write, for a variant of `learned_policy` in a config.")],
    architecture: Annotated[
        str, typer.Option(help="The architecture to learn from; it must request each subtask in a separate call.")
    ] = "runtime_structured",
    plan: Annotated[str, typer.Option(help="The fault plan to learn under.")] = FAULT_FREE,
    model: Annotated[str | None, typer.Option(help="The model to learn from; the run's first, if not given.")] = None,
    instances: Annotated[
        int | None, typer.Option(min=1, help="Learn from this many instances of each pack, chosen by the run's seed.")
    ] = None,
    scenarios: PacksOption = PACKS,
) -> None:
    """Learn from a run's rejections which subtasks share a call.

    The command writes the policy to a file. A config that uses the policy runs no instance from which it was learned.

    For example: bench more learn learning-simulated --to policy.json
    """
    folder = folder_of(run)
    require_sound(folder)
    from bench.rerun.learning import learn as learn_policy  # noqa: PLC0415  no other command should wait for it

    policy = learn_policy(folder, packs_of(scenarios, folder, err), architecture, plan, model, instances)
    write_files(to.parent, {to.name: f"{policy.model_dump_json(indent=1)}\n".encode()})
    for name, pack in policy.packs.items():
        calls = "; ".join(" + ".join(call) for call in pack.calls)
        rejected = sum(replies.rejected for replies in pack.first_replies.values())
        total = sum(replies.of for replies in pack.first_replies.values())
        out.print(f"{name}: {calls} ({rejected} of {total} first replies were rejected, {len(pack.instances)} instances)")
    out.print(f'wrote {to}; a config\'s variant: base = "learned_policy", policy = "{to}"')
