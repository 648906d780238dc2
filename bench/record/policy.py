"""A learned policy: which subtasks of a pack are asked for in one call, and on which instances this was learned.

`bench more learn` writes it as a file, which a config's variant names. The ids of trials that follow it depend on its calls and
on the instances that it was learned on; the run that it was learned from is only noted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.common.bounds import Lookup, Many
from bench.common.errors import ConfigError
from bench.common.files import text_of
from bench.common.numbers import Count
from bench.common.wording import first_violation

MAX_BYTES = 2**18


class FirstReplies(BaseModel):
    """The number of distinct first replies for one subtask (`of`), and how many of them were rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    rejected: Count
    of: Count


class PackPolicy(BaseModel):
    """The policy for one pack. `calls` holds the subtasks' names, grouped by call, in the order of the calls."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    instances: Many[str] = Field(min_length=1)
    calls: Many[Many[str]] = Field(min_length=1)
    first_replies: Lookup[str, FirstReplies]


class LearnedPolicy(BaseModel):
    """A learned policy for `packs`, by name without a variant. The fields from `run` to `plan` say from which run it was
    learned."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    run: str
    digest: str
    architecture: str
    model: str
    plan: str
    packs: Lookup[str, PackPolicy]

    @property
    def identity(self) -> str:
        """A digest of all that a trial can depend on."""
        learned = {name: [pack.calls, pack.instances] for name, pack in self.packs.items()}
        return hashlib.sha256(json.dumps(learned, sort_keys=True).encode()).hexdigest()[:20]

    def calls_for(self, scenario: str, subtasks: Collection[str]) -> Many[Many[str]]:
        """Return the calls in which a scenario's subtasks are asked for. Raises ConfigError if the policy was not learned for
        them."""
        name = scenario.partition(":")[0]
        if name not in self.packs:
            raise ConfigError(f"the policy was learned for {', '.join(self.packs)}, and not for scenario '{scenario}'")
        calls = self.packs[name].calls
        if sorted(name for call in calls for name in call) != sorted(subtasks):
            raise ConfigError(f"the policy was learned for other subtasks than those of scenario '{scenario}'; learn it anew")
        return calls


def read_policy(path: Path) -> LearnedPolicy:
    """Read a policy's file. Raises ConfigError for a file that cannot be read, or is no policy."""
    try:
        return LearnedPolicy.model_validate_json(text_of(path, MAX_BYTES))
    except OSError as error:
        wrong = f"cannot be read: {error.strerror}"
    except ValidationError as error:
        wrong = f"is not a policy: {first_violation(error).line}"
    except ValueError as error:
        wrong = str(error)
    raise ConfigError(f"{path}: {wrong}; bench more learn RUN --to FILE writes a policy")


def seen_by(policies: Mapping[str, LearnedPolicy], pack: str) -> frozenset[str]:
    """Return the instances of a pack on which one of these policies was learned; variants share instance names."""
    name = pack.partition(":")[0]
    return frozenset(
        instance for policy in policies.values() if name in policy.packs for instance in policy.packs[name].instances
    )
