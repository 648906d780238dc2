"""The part of a probe's manifest on what was probed. It has no command, no path, no address and no value of a variable."""

from __future__ import annotations

from bench.common.bounds import Lookup, Many
from bench.common.numbers import Seconds
from bench.record.entry import ManifestPart

AGENT, WITHOUT_MODEL = "agent", "none"
"""The architecture of every cell, and the model of a probe that has no model's gateway."""


class ProbedStore(ManifestPart):
    """A store, of which the probe worked on a copy."""

    kind: str


class Probed(ManifestPart):
    """The agent that was probed, and how, from its owner's `probe.toml`.

    subject   the digest of all that determines what its cells do
    doors     servers and services by name, each with its kind
    patience  the seconds of silence after which a client counts as waiting longer
    limit     the most seconds for all lives of the agent together
    hide      columns, arguments and members of JSON whose values are in no output
    reads     patterns of `DOOR.TOOL` for the tools that only read, as the owner says
    boxed     whether the agent ran in a box, where its files are copies; None in older records
    unsaid_fails  whether it counts as damage if all effects happened but the agent said that it failed
    """

    subject: str
    doors: Lookup[str, str]
    stores: Lookup[str, ProbedStore]
    settle: Seconds
    patience: Seconds
    limit: Seconds
    resumes: bool
    all_forms: bool = False
    only: Many[str] = ()
    hide: Many[str] = ()
    reads: Many[str] = ()
    boxed: bool | None = None
    unsaid_fails: bool = False
