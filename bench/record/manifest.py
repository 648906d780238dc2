"""The manifest of a run: the type that its writers and its readers share."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from bench.common.bounds import MIN_BYTES_PER_VALUE, Lookup, Many, excess_in
from bench.common.numbers import Count, Seconds, finite, no_number
from bench.common.wording import first_violation
from bench.record.config import StoredConfig
from bench.record.described import Described, described_earlier
from bench.record.entry import STORED, ManifestPart
from bench.record.files import FORMAT, READ_BY
from bench.record.history import History
from bench.record.model_parameters import ModelParameters
from bench.record.origin import CodeVersion, Machine
from bench.record.policy import LearnedPolicy
from bench.record.probed import Probed


def _is_none(value: object) -> bool:
    return value is None


TAG = r"^[A-Za-z0-9][A-Za-z0-9._:=+-]{0,49}$"
MAX_TAGS, LONGEST_NOTE = 20, 500


class BaselineGrades(ManifestPart):
    """The grades of keyword rules without any model, which every score in the run should exceed."""

    solved: Count
    of: Count
    score: Seconds


class ManifestPack(ManifestPart):
    """A scenario of the run. `asked` and `graded_by` are digests over all its instances in this run. `asked_by_instance` has a
    digest for each instance, so that runs with different instances can be compared."""

    variant: str = "–"
    instances: Many[str] = ("",)
    asked: str = "–"
    asked_by_instance: Lookup[str, str] = Field(default_factory=dict)
    graded_by: str = ""
    subtasks: Many[str] = ()
    document_tokens: Count = 0
    stages: Many[Many[str]] = ()
    baseline: BaselineGrades | None = None
    """None if nothing is graded."""
    reference: str | None = Field(None, exclude_if=_is_none)
    """The digest of the references, if trials of this run depend on them."""
    graded_by_instance: Lookup[str, str] = Field(default_factory=dict, exclude_if=operator.not_)
    reference_by_instance: Lookup[str, str] = Field(default_factory=dict, exclude_if=operator.not_)

    def asks(self, instance: str) -> str:
        """Return the digest of what this instance asks. An earlier manifest has only one digest of all instances."""
        return self.asked_by_instance.get(instance, self.asked)

    def digests(self, instance: str) -> Mapping[str, str]:
        """Return the digests of one instance, by field name; "" if there is no reference."""
        return {
            "asked": self.asks(instance),
            "graded_by": self.graded_by_instance.get(instance, self.graded_by),
            "reference": self.reference_by_instance.get(instance, self.reference or ""),
        }


class Merged(ManifestPart):
    """A part of a run from `bench more merge`, as it was recorded: its number of trials, the digest of all its files (`bench
    verify`), and its machine."""

    name: str
    started: str = ""
    portion: str = ""
    trials: Count
    digest: str
    commit: str | None = None
    machine: Machine = Machine()


class Replaced(ManifestPart):
    """The files from which a run was converted: their format, and the SHA-256 of each by its name."""

    format: int
    files: Lookup[str, str]


class OtherCode(ManifestPart):
    """Other code that continued a run: the time, the number of trial records at that time, and the code's digests."""

    started: str
    records: Count
    code: CodeVersion
    architectures: Lookup[str, str]
    parts: Lookup[str, str]
    packages: Lookup[str, str | None]
    machine: Machine = Machine()


class Manifest(ManifestPart):
    """The manifest of a run. It contains no key, no path and no host name of the machine that made it."""

    format: int
    name: str
    started: str = ""
    config: StoredConfig
    models: Lookup[str, ModelParameters]
    concurrency: Lookup[str, Count] = Field(default_factory=dict)
    """Model -> how many calls at a time its endpoint took."""
    recordings: Lookup[str, History] = Field(default_factory=dict, exclude_if=operator.not_)
    """Model -> the history of the recording from which it answered; a replay by an earlier version has none."""
    architectures: Lookup[str, str] = Field(default_factory=dict)
    """Architecture -> the digest of its code."""
    described: Described | None = Field(None, exclude_if=_is_none)
    """What its architectures and effects are; None in a manifest of an earlier version."""
    parts: Lookup[str, str] = Field(default_factory=dict)
    """Other parts that determine trials, such as an effect or a model -> the digest of their code."""
    policies: Lookup[str, LearnedPolicy] = Field(default_factory=dict, exclude_if=operator.not_)
    """Architecture -> the policy that it follows, with the instances on which that was learned: none of them is in this run."""
    scenarios: Lookup[str, ManifestPack]
    tokenizer: str = ""
    code: CodeVersion = CodeVersion()
    """The code under which the run began."""
    other_code: Many[OtherCode] = Field((), exclude_if=operator.not_)
    """The other code that went on with the run because its user asked for that, in the order of time."""
    packages: Lookup[str, str | None] = Field(default_factory=dict)
    """Package -> its version."""
    machine: Machine = Machine()
    sandbox: Lookup[str, str] = Field(default_factory=dict)
    """Guard of the sandbox -> "in force", or why it is missing."""
    unguarded: Many[str] | None = Field(None, exclude_if=_is_none)
    """The missing guards despite which the user let a model's code run."""
    stored_grades: Lookup[str, Lookup[str, str]] = Field(default_factory=dict, exclude_if=operator.not_)
    """Run -> scenario -> digest of the grader that gave the grades shown instead of new ones."""
    prepared: Lookup[str, Any] = Field(default_factory=dict, exclude_if=operator.not_)
    """What the run's study keeps."""
    probe: Probed | None = Field(None, exclude_if=_is_none)
    """What was probed; None if this is no probe."""
    tags: Many[Annotated[str, Field(pattern=TAG)]] = Field((), exclude_if=operator.not_, max_length=MAX_TAGS)
    """Words of the user's on the run, by which `bench runs` finds it."""
    note: str = Field("", exclude_if=operator.not_, max_length=LONGEST_NOTE)
    """A line of the user's on the run."""
    portion: str = Field("", exclude_if=operator.not_)
    """Which trials of the experiment were run here, in words (`bench.run.experiment.portion`); "" for all."""
    merged: Many[Merged] = Field((), exclude_if=operator.not_)
    """The parts from which the run was merged."""
    upgraded_from: int | None = Field(None, exclude_if=_is_none)
    """The format of the files from which this run was first converted."""
    replaces: Replaced | None = Field(None, exclude_if=_is_none)
    """The files that a converted run replaces: its chains were made anew then."""

    @property
    def descriptions(self) -> Described:
        """The descriptions of its architectures and effects."""
        return self.described or described_earlier()

    def recorded_name(self, scenario: str) -> str:
        """Return the name under which the trials of a scenario in the config are recorded: without the pack's default variant,
        which the config may name in full."""
        pack, slash, instance = scenario.partition("/")
        base, _, variant = pack.partition(":")
        default = self.scenarios.get(base)
        return f"{base}{slash}{instance}" if default and default.variant == variant else scenario

    @property
    def codes(self) -> tuple[CodeVersion, ...]:
        """The versions of the code that ran the trials, in the order of time."""
        return (self.code, *(other.code for other in self.other_code))

    @property
    def under_last_code(self) -> Manifest:
        """This manifest with the code, parts and packages of the last code that continued the run."""
        if not self.other_code:
            return self
        last = self.other_code[-1]
        update = {"code": last.code, "architectures": last.architectures, "parts": last.parts, "packages": last.packages}
        return self.model_copy(update=update)

    def continued_by(self, now: Manifest, records: int) -> Manifest:
        """Return this manifest with a note that the code of `now` continues after this number of trial records."""
        mark = OtherCode(
            started=now.started,
            records=records,
            code=now.code,
            architectures=now.architectures,
            parts=now.parts,
            packages=now.packages,
            machine=now.machine,
        )
        return self.model_copy(update={"other_code": (*self.other_code, mark)})

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences on the run's origin that a reader must know before its numbers."""
        return tuple(filter(None, (self.origin, self.mixture)))

    @property
    def mixture(self) -> str:
        """A sentence on the versions of the code that ran the trials, if several did; else ""."""
        if not self.other_code:
            return ""
        later = "; ".join(f"from record {other.records + 1} on by {other.code.digest}" for other in self.other_code)
        return (
            f"Different code ran the trials of this run, because its user asked for that (--go-on-with-other-code), so that"
            f" a difference may be the code's alone: the first trials by {self.code.digest}; {later}."
        )

    @property
    def origin(self) -> str:
        """A sentence that says which parts the run was merged from, or which portion of the experiment it is; "" for a whole
        run of one machine."""
        if self.merged:
            parts = ", ".join(f"{part.name} ({part.trials} trials)" for part in self.merged)
            machines = len({part.machine.model_dump_json() for part in self.merged})
            kinds = "" if machines == 1 else f", on machines of {machines} kinds"
            return f"This run was merged of {len(self.merged)} parts{kinds}: {parts}."
        return f"These are not all trials of the experiment: {self.portion}." if self.portion else ""

    def with_labels_of(self, other: Manifest) -> Manifest:
        """Return this manifest with the tags of the other manifest added, and with its note if it has one."""
        tags = tuple(dict.fromkeys((*self.tags, *other.tags)))
        return self.model_copy(update={"tags": tags, "note": other.note or self.note})

    @property
    def text(self) -> str:
        """The text of the manifest's file."""
        return json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


class OtherFormat(Exception):
    """The files of a run have another format than the one read here; the message is one line."""


def manifest_in(text: bytes) -> Manifest:
    """Parse a manifest. Raises OtherFormat; ValueError or RecursionError if the text is no manifest, or contains more values
    than any run has, a number that does not fit into 64 bits, or half a surrogate pair, which no report could hold."""
    if why := excess_in(text, 2 * MIN_BYTES_PER_VALUE):
        raise ValueError(why)
    value = json.loads(text.decode(), parse_constant=no_number, parse_float=finite, parse_int=_whole)
    json.dumps(value, ensure_ascii=False).encode()
    version = value.get("format") if isinstance(value, dict) else None
    if version != FORMAT:
        raise OtherFormat(f"is of format {version}, this version reads format {FORMAT}; {_reader_of(version)}")
    try:
        return Manifest.model_validate_json(text, extra="allow", context=STORED)
    except ValidationError as error:
        raise ValueError(first_violation(error).line) from error


def _reader_of(version: object) -> str:
    """Return in words which version of bench reads manifests of this format."""
    if isinstance(version, int) and (version in READ_BY or version > FORMAT):
        return f"recovery-bench {READ_BY.get(version, 'in a later version')} reads it"
    return "no version reads it; restore the file from a copy"


def _whole(text: str) -> int:
    if len(text) < 22 and -(2**63) <= int(text) < 2**64:
        return int(text)
    raise ValueError(f"{text[:20]} is too large to be calculated with")
