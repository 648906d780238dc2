"""The paper's figures and claims, each with its place in the paper, as `published.toml` has them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bench.common.errors import ConfigError
from bench.common.toml import read_toml
from bench.common.wording import first_violation
from bench.read.analysis.claim import Claim, MeasureName, RateClaim, RatioClaim
from bench.read.analysis.frames import Run

SIZED_VARIANT = "paper_sized"
"""The variant of the paper's packs in which monolithic's call has the size of the paper's call."""
PUBLISHED_FILE = Path(__file__).with_name("published.toml")


class _Strict(BaseModel):
    """A model that accepts no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MeanAndSd(_Strict):
    """A published mean. `sd` is None if none was published."""

    mean: float
    sd: float | None = Field(None, ge=0.0)


class Cells(BaseModel):
    """One row of a published table: its title in the paper, and a value for each architecture."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, MeanAndSd] = Field(init=False)

    row: str

    @property
    def values(self) -> dict[str, MeanAndSd]:
        """The published values by architecture."""
        return self.__pydantic_extra__


class PublishedTable(_Strict):
    """A published table.

    plan      our fault plan with the table's failure
    instead   fault plan with another failure -> that failure in words. Our numbers under such a plan have their own table,
              which names the failure
    counted   architecture -> the subtasks whose calls its cell of retry tokens has; the cell of another architecture has the
              whole round
    """

    number: int
    scenario: str
    plan: str
    failure: str
    instead: dict[str, str] = {}
    counted: dict[str, tuple[str, ...]] = {}
    cells: dict[str, Cells]


class NaturalFailures(_Strict):
    """The number of a scenario's subtask executions whose output did not fit its schema although no fault was injected."""

    scenario: str
    place: str
    failures: int = Field(ge=0)
    executions: int = Field(ge=1)
    note: str = ""


class Paper(_Strict):
    """The paper: its title, source and model, the model's temperature, and the number of its runs."""

    title: str
    source: str
    model: str
    temperature: float
    runs: int = Field(ge=1)

    @property
    def asked(self) -> str:
        """The model that was asked, and its temperature."""
        return f"{self.model} at temperature {self.temperature:g}"


class ComparedRow(_Strict):
    """Our measure that is compared with a row of the published tables: in trials without a fault, or if `struck`, under the
    table's fault plan."""

    measure: MeasureName
    struck: bool = False


class Published(_Strict):
    """The paper's figures and claims.

    size       the variant of the packs that the claims are about; "" for the plain packs
    columns    our architecture -> the paper's column
    monoliths  our further architectures with one call for the whole task, shown beside these
    """

    paper: Paper
    size: str = ""
    columns: dict[str, str] = {}
    monoliths: tuple[str, ...] = ()
    table: tuple[PublishedTable, ...] = ()
    natural_failures: tuple[NaturalFailures, ...] = ()
    rows: dict[str, ComparedRow] = {}
    claim: tuple[Claim, ...] = ()

    @model_validator(mode="after")
    def _tables_have_columns_and_rows_of_ours(self) -> Published:
        """Raise ValueError if a table has an architecture or a row without a counterpart of ours."""
        for table in self.table:
            for row, cells in table.cells.items():
                if unnamed := [name for name in (*cells.values, *table.counted) if name not in self.columns]:
                    raise ValueError(f"table {table.number}, {row}: '{unnamed[0]}' stands not in [columns]")
                if row not in self.rows:
                    raise ValueError(f"table {table.number}: what of ours is '{row}' compared with? [rows.{row}] is missing")
        return self

    @model_validator(mode="after")
    def _every_claim_has_a_name_of_its_own(self) -> Published:
        """Raise ValueError if two claims have the same id."""
        name, times = Counter(claim.id for claim in self.claim).most_common(1)[0] if self.claim else ("", 0)
        if times > 1:
            raise ValueError(f"two claims are called '{name}'")
        return self

    @model_validator(mode="after")
    def _every_claim_has_its_figures(self) -> Published:
        """Raise ValueError if the tables lack a figure that a claim compares, or if a claimed ratio is 0 or 1."""
        for claim in self.claim:
            if isinstance(claim, RateClaim):
                continue
            for architecture in claim.pair:
                try:
                    self.cell(claim.scenario, claim.row, architecture)
                except KeyError:
                    missing_figure = f"no '{claim.row}' of {architecture} on {claim.scenario}"
                    raise ValueError(f"{claim.id}: the tables have {missing_figure}") from None
            if isinstance(claim, RatioClaim) and self.value_of(claim) in (0.0, 1.0, None):
                raise ValueError(f"{claim.id}: a ratio needs two published means that differ, neither of them 0")
        return self

    def value_of(self, claim: Claim) -> float | None:
        """Return the published value of a claim: a direction's difference of two means, of which a verdict uses only the sign;
        a ratio, or None if its denominator is 0; 0 for a claim about a share."""
        if isinstance(claim, RateClaim):
            return 0.0
        first, second = (self.cell(claim.scenario, claim.row, name).mean for name in claim.pair)
        if isinstance(claim, RatioClaim):
            return first / second if second else None
        return first - second

    @property
    def has_figures(self) -> bool:
        """Whether there are tables of the paper."""
        return bool(self.table)

    @property
    def sized(self) -> tuple[Published, ...]:
        """The same figures and claims for the packs at the paper's sizes. Empty without tables."""
        if not self.table or self.size:
            return ()
        claims = tuple(
            claim.model_copy(update={"id": f"{claim.id}:{SIZED_VARIANT}", "scenario": f"{claim.scenario}:{SIZED_VARIANT}"})
            for claim in self.claim
        )
        at_size = {
            name: tuple(
                item.model_copy(update={"scenario": f"{item.scenario}:{SIZED_VARIANT}"}) for item in getattr(self, name)
            )
            for name in ("table", "natural_failures")
        }
        return (self.model_copy(update={"size": SIZED_VARIANT, "claim": claims, **at_size}),)

    def table_of(self, scenario: str, plan: str) -> PublishedTable | None:
        """Return the table for a scenario of ours, in any size, under a fault plan with the table's failure or another
        failure; None if there is none."""
        pack = scenario.partition(":")[0]
        tables = (table for table in self.table if table.scenario.partition(":")[0] == pack)
        return next((table for table in tables if plan in (table.plan, *table.instead)), None)

    def cell(self, scenario: str, row: str, architecture: str) -> MeanAndSd:
        """Return the value in a published table, under any fault plan. Raises KeyError if there is none."""
        for table in self.table:
            if table.scenario == scenario and row in table.cells:
                return table.cells[row].values[architecture]
        raise KeyError(row)

    def value(self, scenario: str, plan: str, measure: str, architecture: str) -> PublishedValue | None:
        """Return the published value of `measure`, a column of a run's trials, under the table's own failure; None if there is
        none."""
        for table in self.table:
            cells = table.cells.get(measure)
            if (table.scenario, table.plan) == (scenario, plan) and cells and architecture in cells.values:
                figure = cells.values[architecture]
                place = f"Table {table.number}, row '{cells.row}', column '{self.columns[architecture]}'"
                return PublishedValue(figure.mean, figure.sd, f"{self.paper.source}, {place}")
        return None

    def natural(self, scenario: str) -> NaturalFailures | None:
        """Return the paper's count of natural failures of a scenario; None if it has none."""
        return next((natural for natural in self.natural_failures if natural.scenario == scenario), None)


@dataclass(frozen=True)
class PublishedValue:
    """A published value. `source` names the paper, the table, the row and the column."""

    mean: float
    sd: float | None
    source: str


def published_for(run: Run) -> Published:
    """Return the paper's figures and claims if they apply to a run, else the paper without them. They apply if the run has one
    of the paper's tasks, all of its architectures, and the paper's failure or a failure that is compared with it."""
    published = load_published()
    scenarios, plans = run.names("scenario"), run.names("plan")
    if set(published.columns) <= set(run.names("architecture")):
        for table in chain.from_iterable(size.table for size in (published, *published.sized)):
            if table.scenario in scenarios and not {table.plan, *table.instead}.isdisjoint(plans):
                return published
    return published.model_copy(update={"table": (), "natural_failures": (), "claim": ()})


@cache
def load_published(path: Path = PUBLISHED_FILE) -> Published:
    """Return the paper's figures and claims from their file. Raises ConfigError if the file is missing, not TOML, or not of
    this form."""
    tables = read_toml(path)
    try:
        return Published.model_validate(tables)
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_violation(error, value=tables).line}") from error
