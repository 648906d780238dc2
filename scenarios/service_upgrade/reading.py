"""The tools that read."""

from __future__ import annotations

import difflib
import json
from typing import Any

from bench.common.errors import ToolRefused
from bench.worlds.run.environment import Db, Moment, Tool

from .forms import (
    Changes,
    CheckResults,
    CommitShown,
    Diff,
    Everything,
    Log,
    Metrics,
    Mistake,
    ModuleText,
    OfBranch,
    OfModule,
    OfTree,
    Refs,
    Service,
    TestRun,
)
from .in_sandbox import is_right_line
from .offered import offered_tests
from .policy import results_of
from .repository import files_in, module_text, tree_of
from .story import NEARLY, Case, Module, case_of, shuffled
from .trees import MAIN, history, upgraded
from .written import line_of


def case_in(db: Db) -> Case:
    """Return the case of this world."""
    return case_of(db.value("SELECT name FROM upgrade"))


def module_in(case: Case, name: str) -> Module:
    """Return the module with this name. Raises ToolRefused if there is none."""
    module = next((each for each in case.modules if each.name == name), None)
    if module is None:
        raise ToolRefused(f"there is no module {name} that uses {case.library}")
    return module


def rewrites_of(case: Case, module: Module) -> dict[str, str]:
    """Return the offered rewrites by letter: lines that can replace the old line."""
    return dict(zip("abcd", shuffled((module.right, *module.wrong), case.name, module.part, "rewrites"), strict=True))


def rewrite_of(case: Case, module: Module, line: str) -> str:
    """Return the identifier of a line as a rewrite: its letter, or the line itself if the model wrote it."""
    return line if case.is_written else next(letter for letter, each in rewrites_of(case, module).items() if each == line)


def lines_written(db: Db) -> list[str]:
    """Return the lines that a model wrote into modules."""
    if not case_in(db).is_written:
        return []
    given = db.all("SELECT given FROM deed WHERE tool = 'rewrite' ORDER BY rowid")
    return list(dict.fromkeys(json.loads(row["given"])["rewrite"] for row in given))


def right_tree(db: Db) -> str:
    """Return the right tree at the end of the upgrade: the tree of main if it has a right line that the model wrote, else the
    tree with the pack's lines."""
    case = case_in(db)
    if case.is_written:
        for line in lines_written(db):
            tree = tree_of(upgraded(case, **{case.modules[0].name: line_of(line)}))
            if is_right_line(case, case.modules[0], line_of(line)) and tree == tree_at(db, MAIN):
                return tree
    return tree_of(upgraded(case))


def tree_at(db: Db, ref: str) -> str:
    """Return the tree of a ref. Raises ToolRefused if there is no such ref."""
    tree = db.value("SELECT tree FROM ref WHERE name = ?", ref)
    if tree is None:
        raise ToolRefused(f"there is no branch {ref}")
    return str(tree)


def _service(db: Db, _: Everything, __: Moment) -> Service:
    case = case_in(db)
    version, following = case.versions
    return Service(
        service=case.service,
        library=case.library,
        version=version,
        next_version=following,
        branch=case.branch,
        modules=[module.name for module in case.modules],
    )


def _changes(db: Db, _: Everything, __: Moment) -> Changes:
    return Changes(changes=[module.changed for module in case_in(db).modules])


def _module(db: Db, arguments: OfModule, _: Moment) -> ModuleText:
    case = case_in(db)
    module = module_in(case, arguments.module)
    rewrites = {} if case.is_written else rewrites_of(case, module)
    offered = [{"rewrite": letter, "line": line} for letter, line in rewrites.items()]
    text = module_text(case, module, module.old)
    return ModuleText.model_validate(
        {"module": module.name, "library": case.library, "text": text, "line": module.old, "rewrites": offered}
    )


def _refs(db: Db, arguments: OfBranch, _: Moment) -> Refs:
    head = tree_at(db, arguments.branch)
    base = db.value("SELECT base FROM ref WHERE name = ?", arguments.branch)
    return Refs(main=tree_at(db, MAIN), head=head, base=base)


def _diff(db: Db, arguments: OfTree, _: Moment) -> Diff:
    """Return the changes of a tree against main."""
    before, after = files_in(db, tree_at(db, MAIN)), files_in(db, arguments.tree)
    lines: list[str] = []
    for path in sorted({**before, **after}):
        old, new = before.get(path, "").splitlines(), after.get(path, "").splitlines()
        changed = difflib.unified_diff(old, new, path, path, n=0, lineterm="")
        lines += [line[:80] for line in changed if not line.startswith(("---", "@@"))]
    return Diff(lines=lines)


def _checks(db: Db, arguments: OfTree, _: Moment) -> CheckResults:
    return CheckResults.model_validate(results_of(db, arguments.tree))


def _log(db: Db, _: Everything, __: Moment) -> Log:
    shown = []
    for commit in history(case_in(db)):
        tree = tree_at(db, commit.ref)
        runs = [TestRun.model_validate(run) for run in results_of(db, tree)["tests"]]
        edits = f"{commit.module.name}.py"
        shown.append(CommitShown(commit=commit.number, author=commit.author, edits=edits, tree=tree, tests=runs))
    return Log(commits=shown)


def _mistake(db: Db, arguments: OfModule, _: Moment) -> Mistake:
    case = case_in(db)
    module = module_in(case, arguments.module)
    return Mistake.model_validate(
        {
            "module": module.name,
            "library": case.library,
            "present": module_text(case, module, module.wrong[NEARLY]),
            "mended": module_text(case, module, module.right),
            "orders": [dict(row) for row in case.orders],
            "tests": [
                {"test": letter, "order": order, "expects": expects}
                for letter, (order, expects) in ({} if case.is_written else offered_tests(case)).items()
            ],
        }
    )


def _metrics(db: Db, arguments: OfTree, _: Moment) -> Metrics:
    row = db.row("SELECT requests, failed FROM metric WHERE tree = ? ORDER BY rowid DESC LIMIT 1", arguments.tree)
    if row is None:
        raise ToolRefused("no canary of it was measured")
    return Metrics(**dict(row))


def of_branch(arguments: Any) -> tuple[str, ...]:
    """Return the names of the things whose versions a read or a change of the refs concerns."""
    return (f"branch {arguments.branch}", MAIN)


def of_tree(arguments: Any) -> tuple[str, ...]:
    return (f"checks of {arguments.tree}",)


def of_canary(arguments: Any) -> tuple[str, ...]:
    return (f"canary of {arguments.tree}",)


def of_ticket(_: Any) -> tuple[str, ...]:
    return ("ticket",)


READ_LOG = Tool(
    "read_log",
    "read",
    Everything,
    Log,
    _log,
    about=of_ticket,
    description="The last commits of main, and what their tests gave.",
)
READ_MISTAKE = Tool(
    "read_mistake",
    "read",
    OfModule,
    Mistake,
    _mistake,
    description="A module that answers wrongly, and tests that are offered.",
)
READING = (
    Tool("read_service", "read", Everything, Service, _service, description="The service, its library, and who uses it."),
    Tool("read_changes", "read", Everything, Changes, _changes, description="What the next version of the library changes."),
    Tool(
        "read_module", "read", OfModule, ModuleText, _module, description="A module, and the rewrites that are offered for it."
    ),
    Tool("read_refs", "read", OfBranch, Refs, _refs, about=of_branch, description="The trees of main and of a branch."),
    Tool("read_diff", "read", OfTree, Diff, _diff, description="What a tree changes in main."),
    Tool("read_checks", "read", OfTree, CheckResults, _checks, about=of_tree, description="What the checks of a tree gave."),
    Tool("read_metrics", "read", OfTree, Metrics, _metrics, about=of_canary, description="What a canary was measured to do."),
)
