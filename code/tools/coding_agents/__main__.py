"""`python -m coding_agents --project PYTHON`: an agent repairs code, and runs all tests, a selection, or the failing test.

The agent is mini-swe-agent, and this runs where mini-swe-agent is installed. PYTHON has pytest, what the packages need, and
`bench code` (`pip install typer pytest`, `pip install --no-deps recovery-bench ./code`). Without `--endpoint` the model is
scripted. `python -m coding_agents.report` makes the report of the rows.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from coding_agents.agent import repair_by_agent
from coding_agents.tasks import PACKAGES, Project, Task, package_tasks, prepare, repair_task, write
from impact.rows import read
from impact.rows import write as write_rows

ARMS = ("all", "selection", "failing", "both")


def main() -> None:
    """Let the agent repair all tasks in all arms, and add a row of each."""
    parser = argparse.ArgumentParser(prog="coding_agents", description=__doc__)
    parser.add_argument("--project", type=Path, required=True, help="the Python of the repositories' environment")
    parser.add_argument("--work", type=Path, default=Path("build/coding_agents"), help="where packages are fetched to")
    parser.add_argument("--to", type=Path, default=Path("reports/coding_agents/retesting.csv"))
    parser.add_argument("--packages", default=",".join(package.name for package in PACKAGES))
    parser.add_argument("--tasks", type=int, default=4, help="so many tasks of each package")
    parser.add_argument("--repairs", default=",".join(f"case_{number:02}" for number in range(1, 13)))
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--model", default="scripted")
    parser.add_argument("--endpoint", default="", help="of a real model; without it the model is scripted")
    parser.add_argument("--steps", type=int, default=20, help="the most calls of a run")
    asked = parser.parse_args()
    work, project = asked.work.resolve(), Project(asked.project.absolute())
    for package in PACKAGES:
        if package.name in asked.packages.split(","):
            for task in package_tasks(package, work, project, asked.tasks):
                repair_in_all_arms(task, project, asked)
    for name in filter(None, asked.repairs.split(",")):
        repair_in_all_arms(repair_task(name, work, project), project, asked)


def repair_in_all_arms(task: Task, project: Project, asked: argparse.Namespace) -> None:
    """Repair a task once in each arm; each task begins with another arm. A row that is there is not made again."""
    rows = [*read(asked.to)]
    arms = asked.arms.split(",")
    turn = sum(map(ord, task.name)) % len(arms)
    for arm in arms[turn:] + arms[:turn]:
        if any((row["task"], row["arm"], row["model"]) == (task.name, arm, asked.model) for row in rows):
            continue
        recording = prepare(task, arm, project)
        row = repair_by_agent(task, arm, project, asked.endpoint, asked.model, asked.steps)
        rows.append(row | {"recording": f"{recording:.1f}"})
        print(json.dumps(rows[-1]), flush=True)
        write_rows(asked.to, rows)
    write(task.root, task.states[-1])


if __name__ == "__main__":
    main()
