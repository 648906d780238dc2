"""Resolve the architectures that a config names. An architecture that cannot run as the config asks is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench.common.errors import ConfigError
from bench.common.registry import attribute_at, module_of
from bench.record.architecture_entry import TIME_LIMIT, ArchitectureEntry
from bench.record.policy import LearnedPolicy
from bench.record.provenance import extra_versions
from bench.run.architectures.part import Architecture
from bench.run.architectures.registry import ARCHITECTURES, OUTSIDE, architecture_named, load_architecture
from bench.run.experiment.arm import ResolvedArchitecture
from bench.run.experiment.code import Codebase
from bench.run.experiment.config import Config
from bench.run.trial.trial import Settings
from bench.scenario import Scenario


def resolve_architectures(
    config: Config, served: Mapping[str, Architecture], codebase: Codebase, policies: Mapping[str, LearnedPolicy]
) -> dict[str, ResolvedArchitecture]:
    """Return each architecture that the config runs, by name. `served` holds the functions of architectures that are served
    from outside.

    Raises ConfigError for an architecture that does not exist, cannot be loaded, or lacks the form that a variant asks for.
    """
    for name in config.architecture:
        if name in ARCHITECTURES:  # no table could tell the two apart
            raise ConfigError(f"architecture.{name}: there is an architecture of this name; give the variant another name")
    resolved: dict[str, ResolvedArchitecture] = {}
    for name in config.architectures:
        default = ArchitectureEntry(base=name)
        variant = default if name in served else config.architecture.get(name, default)
        settings = Settings(variant.max_attempts or config.max_attempts, variant.repair or config.repair)
        versions: Mapping[str, str] = {}
        work, policy = served.get(name), policies.get(name)
        if work:
            part = OUTSIDE["served"]
            digest = codebase.of_part(part, module_of(work))
        elif variant.command:
            part = OUTSIDE["command"]
            work = command = attribute_at(part.path)(  # aiohttp is slow to import, and few users run commands
                variant.command,
                variant.folder,
                variant.env,
                f"architecture.{name}",
                files=variant.files,
                packages=variant.packages,
                seconds=variant.time_limit_seconds or TIME_LIMIT,
                model_calls=variant.model_calls,
                kills_caller=variant.kills == "caller",
            )
            digest, versions = f"{command.digest}+{codebase.of_part(part)}", command.versions
        else:
            part = architecture_named(variant.base, config.architecture)
            if part.learns and not policy:
                problem = f"architecture '{part.name}' follows a learned policy; give its variant one"
                raise ConfigError(f'{problem}: policy = "FILE", which bench more learn RUN --to FILE writes')
            work = load_architecture(part, variant.parallel, variant.form, policy)
            digest = "+".join((codebase.of_part(part, module_of(work)), *([policy.identity] if policy else [])))
            versions = extra_versions([part.extra]) if part.extra and not part.package else {}
        form = (variant.parallel, variant.form, policy)
        resolved[name] = ResolvedArchitecture(name, part, work, settings, digest, versions, *form)
    return resolved


def refuse_misfits(config: Config, architectures: Iterable[ResolvedArchitecture], scenarios: Mapping[str, Scenario]) -> None:
    """Raise ConfigError if an architecture cannot ask in a model's answer format, or cannot act in a scenario."""
    for architecture in architectures:
        for form in map(config.format_of, config.models):
            if form not in architecture.part.answer_formats:  # all use one format, so that no difference comes from it
                why = "asks for JSON in words of its own"
                if form == "schema":
                    why = "makes its calls itself, and nothing holds them to a schema"
                raise ConfigError(f"architecture '{architecture.name}' {why}; run it in another answer format than \"{form}\"")
        for scenario in scenarios.values():
            if architecture.policy:
                try:
                    architecture.policy.calls_for(scenario.name, [subtask.name for subtask in scenario.task.subtasks])
                except ConfigError as error:
                    raise ConfigError(f"architecture.{architecture.name}: {error}") from error
            if architecture.part.acts_in == "world" and scenario.environment is None:
                raise ConfigError(
                    f"architecture '{architecture.name}' acts in a world, and scenario '{scenario.name}' has none"
                )
            if architecture.part.acts_in == "task" and scenario.environment is not None:
                acting = (part.name for part in ARCHITECTURES if part.acts_in == "world" and not part.is_instrument)
                problem = f"scenario '{scenario.name}' has a world, in which architecture '{architecture.name}' cannot act"
                raise ConfigError(f"{problem}; name one that can: {', '.join(acting)}")
