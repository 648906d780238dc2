"""The command `bench more advise`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli.terminal import Terminal
from bench.common.errors import ResultsError, nearest
from bench.common.files import write_whole
from bench.rerun.workload import read_workload

out = Terminal()


def advise(
    workload: Annotated[Path, typer.Argument(help="A file that describes your work, such as configs/workloads/returns.toml.")],
    to: Annotated[Path | None, typer.Option(help="The file to write; WORKLOAD-advice.md, if not given.")] = None,
) -> None:
    """Advise on which pattern to build for a workload.

    The workload file describes the work and how often each failure happens in it. The advice comes from recorded runs: each
    recommendation has damage, price and break-even, or says that there is no measurement. The command writes it to a file.

    For example: bench more advise configs/workloads/returns.toml
    """
    # They import pandas, which slows down the start.
    from bench.rerun.advice import advise as advice_of  # noqa: PLC0415
    from bench.rerun.advice import held_out  # noqa: PLC0415
    from bench.rerun.advice_artifact import advice_lines, artifact_of  # noqa: PLC0415
    from bench.rerun.evidence import read_evidence  # noqa: PLC0415

    work_load = read_workload(workload)
    evidence = read_evidence(work_load.evidence.run, work_load.evidence.scenario)
    advice = advice_of(work_load, evidence)
    held_out_result = None
    if held_out_ref := work_load.held_out:
        unseen = read_evidence(held_out_ref.run, held_out_ref.scenario)
        if held_out_ref.plan not in unseen.plans:
            raise ResultsError(
                f"{held_out_ref.run}: has no fault plan '{held_out_ref.plan}'; {nearest(held_out_ref.plan, unseen.plans)}"
            )
        held_out_result = held_out(advice, unseen, held_out_ref.plan)
    for line in advice_lines(work_load, advice, evidence, held_out_result):
        out.print(line)
    path = to or Path(f"{workload.stem}-advice.md")
    write_whole(path, artifact_of(work_load, advice, evidence, held_out_result).encode())
    out.print(f"5. artifact: {path}")
