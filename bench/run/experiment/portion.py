"""The portion of an experiment that one command runs when several machines share its trials."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from bench.common.errors import ConfigError
from bench.run.experiment.matrix import Matrix, TrialSpec, TrialSpecs
from bench.run.models.cached import CachedModel
from bench.run.models.routed import answerers

_PAIR = re.compile(r"([1-9]\d{0,5})([/-])([1-9]\d{0,5})")
_NUMBER = re.compile(r"[1-9]\d{0,5}")


@dataclass(frozen=True)
class Portion:
    """The trials that a command runs; by default all trials.

    shard   (number, count): the shard's number, from 1, and the number of shards; a trial's shard depends on its id alone
    first   the number of the first repetition
    """

    shard: tuple[int, int] = (1, 1)
    first: int = 1

    @property
    def is_all(self) -> bool:
        """Whether the command runs all trials."""
        return self == Portion()

    @property
    def suffix(self) -> str:
        """The end of the run folder's name, so that portions in one place have different folders."""
        number, count = self.shard
        shard = f"-shard-{number}-of-{count}" if count > 1 else ""
        return f"{shard}-from-{self.first}" if self.first > 1 else shard

    def in_words(self, repetitions: int) -> str:
        """Return a description of these trials; "" for all. `repetitions` is the number of the last repetition."""
        number, count = self.shard
        parts = [f"shard {number} of {count}"] if count > 1 else []
        parts += [f"repetitions {self.first} to {repetitions}"] if self.first > 1 else []
        return ", ".join(parts)

    def holds(self, spec: TrialSpec) -> bool:
        """Return whether a trial is in this portion."""
        number, count = self.shard
        return spec.repetition >= self.first and int(spec.id, 16) % count == number - 1


def parse_shard(text: str | None) -> tuple[int, int]:
    """Return (number, count) of a shard such as `3/8`; (1, 1) for None. Raises ConfigError for any other text."""
    pair = _PAIR.fullmatch(text or "1/1")
    if not pair or pair[2] != "/" or int(pair[1]) > int(pair[3]):
        raise ConfigError(f"--shard {text}: say which shard of how many, such as 3/8")
    return int(pair[1]), int(pair[3])


def parse_repetitions(text: str | None) -> tuple[int, int | None]:
    """Return the first and the last repetition of `10` or `6-10`. For None the last is None, which stands for the config's.
    Raises ConfigError for any other text."""
    if text is None:
        return 1, None
    if _NUMBER.fullmatch(text):
        return 1, int(text)
    pair = _PAIR.fullmatch(text)
    if not pair or pair[2] != "-" or int(pair[1]) > int(pair[3]):
        raise ConfigError(f"--repetitions {text}: say how many, such as 10, or from which to which, such as 6-10")
    return int(pair[1]), int(pair[3])


def restrict_to(matrix: Matrix, portion: Portion) -> Matrix:
    """Return the matrix with only the trials of a portion.

    Raises:
        ConfigError: The portion is empty, or a shard would separate trials that must get the same replies.
    """
    if portion.is_all:
        return matrix
    for name, model in matrix.models.items():
        if portion.shard[1] > 1 and any(isinstance(answerer, CachedModel) and answerer.shared for answerer in answerers(model)):
            problem = (
                f"--shard: '{name}' gives equal requests of all arms one reply (cache = true), and shards share no replies"
            )
            raise ConfigError(f"{problem}; part the run by --repetitions 6-10 or by --scenario PACK/INSTANCE instead")
    chosen, description = TrialSpecs(lambda: filter(portion.holds, matrix.specs)), portion.in_words(matrix.config.repetitions)
    if not chosen:
        raise ConfigError(f"{description}: none of the {len(matrix.specs)} trials is in it; part the run in fewer")
    return replace(matrix, specs=chosen, portion=description)
