"""Support for the import paths from before the package had rooms, for packs and packages of that time. Each former path still
leads to its module, with all names of the module, and a line on standard error gives the present path.

`bench` installs the finder. The finder only checks whether a name begins with a former path.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = "bench."
KEPT_NAMES = {
    "cli": "authoring",
    "cli.authoring": "exchange.pack_of_rows exchange.pack_of_trace exchange.rows exchange.tables",
    "common": ("bounds digests errors files numbers paths raised registry seeding signals tokens toml values wording"),
    "read": "analysis overview render report studies.claims tables",
    "read.analysis": "studies.plans",
    "read.claims": "studies.closed_forms",
    "read.tables": "studies.contrasts",
    "record": (
        "analysis.ledger answers.formats architectures.form architectures.policy experiment.agreement "
        "experiment.architecture_entry experiment.archive experiment.chain experiment.cost experiment.entry "
        "experiment.files experiment.graded experiment.history experiment.manifest "
        "experiment.model_parameters experiment.places experiment.plan_entries experiment.reading "
        "experiment.record experiment.repeated_call experiment.store experiment.verify models.extra_fields "
        "models.tool_calls runtime.events runtime.intervals runtime.lineage worlds.environment.journal "
        "worlds.environment.moment worlds.runtime.process_events"
    ),
    "rerun": "worlds.analysis.remade",
    "run": ("answers architectures endpoint experiment frameworks models openai packs sandbox serve"),
    "wire": "endpoint.access_guard endpoint.problem openai.blotting worlds.driver.program",
    "worlds.read": "worlds.scorecard",
    "worlds.run": (
        "worlds.driver worlds.effects worlds.entries worlds.environment worlds.patterns worlds.runtime worlds.simulated"
    ),
}
"""New parent -> the modules that moved below it and kept their last name."""
RENAMED = {
    "dialects": "run.endpoint",
    "effects": "run.trial",
    "effects.calls": "run.trial.call_effects",
    "effects.texts": "run.trial.text_effects",
    "exchange": "read.export",
    "exchange.imported": "elsewhere.runs",
    "experiment.model_part": "run.models.model_part",
    "nesting": "common.bounds",
    "record.worlds": "record",
    "record.worlds.events": "record.world_events",
    "read.report.figure_part": "read.render.figure_part",
    "read.report.results": "read.analysis.results",
    "read.report.table_part": "read.render.table_part",
    "read.written_report": "read.report.written_report",
    "regression": "read.compare",
    "report.figure_part": "read.render.figure_part",
    "report.results": "read.analysis.results",
    "report.table_part": "read.render.table_part",
    "run.dialects": "run.endpoint",
    "run.effects": "run.trial",
    "run.effects.calls": "run.trial.call_effects",
    "run.effects.texts": "run.trial.text_effects",
    "run.experiment.model_part": "run.models.model_part",
    "run.packs.packaged": "common.packs",
    "runtime": "run.trial",
    "runtime.answering": "run.trial.endpoint_session",
    "runtime.asking": "run.trial.workbench",
    "studies": "rerun",
    "studies.counterfactual": "rerun",
    "studies.replay_divergence": "rerun.divergence",
    "worlds.analysis": "worlds.read",
    "worlds.analysis.processes": "record.booked",
    "worlds.bank": "worlds.run.simulated.bank",
    "worlds.environment.scene": "worlds.run.environment.world",
    "worlds.patterns.parts": "worlds.run.patterns",
    "worlds.read.analysis": "worlds.read",
    "worlds.read.report": "worlds.read",
    "worlds.read.report.workflow": "worlds.read.workflow_tables",
    "worlds.report": "worlds.read",
    "worlds.report.workflow": "worlds.read.workflow_tables",
    "worlds.run.bank": "worlds.run.simulated.bank",
    "worlds.run.patterns.parts": "worlds.run.patterns",
    "worlds.runtime.events": "record.world_events",
    "worlds.tool_servers": "worlds.run.driver",
}
REST = {
    "architectures.part": "record.described",
    "experiment.config": "record.config",
    "models.base": "record.messages",
    "packs.equivalents": "record.equivalents",
    "report.studies": "rerun.prepared",
    "worlds.environment.damage": "record.damage",
    "worlds.environment.database": "record.journal",
    "worlds.environment.procedure": "record.world_events",
}
"""Former path -> the module that has those of its names that did not move with it."""
FORMER = {old: f"{parent}.{old.rpartition('.')[2]}" for parent, names in KEPT_NAMES.items() for old in names.split()} | RENAMED


def present_path(name: str) -> str | None:
    """Return the present path of a module.

    Args:
        name: An import path in the package, `bench.runtime.effects`.

    Returns:
        Its present path, `bench.run.trial.effects`; None if the path is not a former one.
    """
    parts = name.removeprefix(PACKAGE).split(".")
    for end in range(len(parts), 0, -1):
        if new := FORMER.get(".".join(parts[:end])):
            return ".".join((PACKAGE + new, *parts[end:]))
    return None


class FormerPaths:
    """An import finder and loader for former paths. The import returns the present module, and no second copy of it."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(self, fullname: str, _: Sequence[str] | None, __: ModuleType | None = None) -> ModuleSpec | None:
        if not fullname.startswith(PACKAGE) or (path := present_path(fullname)) is None:
            return None
        return ModuleSpec(fullname, self, origin=path)  # type: ignore[arg-type]  # a loader by its methods: its base is slow to load

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        assert spec.origin is not None
        module = import_module(spec.origin)
        self._specs[spec.name] = module.__spec__
        if rest := REST.get(spec.name.removeprefix(PACKAGE)):
            vars(module)["__getattr__"] = lambda name: getattr(import_module(PACKAGE + rest), name)
        if "__path__" not in vars(module) or "__all__" in vars(module):
            print(f"bench: the import of {spec.name} still works; write {spec.origin}", file=sys.stderr)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the spec of the present module, which the import has just replaced."""
        assert module.__spec__ is not None
        module.__spec__ = self._specs.pop(module.__spec__.name)


def install() -> None:
    """Enable the import of former paths."""
    if not any(isinstance(finder, FormerPaths) for finder in sys.meta_path):
        sys.meta_path.insert(0, FormerPaths())
