"""The content of a report: warnings, summary, facts about the run, tables and figures; and the report as Markdown. `page_html`
writes the same content as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.read.analysis.arms import instances_of, shortfalls
from bench.read.analysis.frames import Run
from bench.read.analysis.results import Results
from bench.read.compare.models import compared_models
from bench.read.render.drawing import Picture
from bench.read.render.escaping import escape_markdown
from bench.read.render.finding import SummaryFinding
from bench.read.render.labels import model_label
from bench.read.render.limits import coverage_sentence, numbers_in
from bench.read.render.table import Table, markdown
from bench.read.render.table_part import LEADING_SECTION, OPEN_TABLES, SECTIONS
from bench.read.report.history import history_facts, name_values_text, sandbox_text, sessions_text
from bench.read.report.summary import Summary, summary_of
from bench.record.config import FAULT_FREE
from bench.record.manifest import Manifest
from bench.record.origin import digests_text
from bench.record.plan_entries import EVERY, FaultEntry

OPEN_VERDICT_COLUMNS = ("What is said", "Verdict", "Ours", "Published", "Ours, the whole round", "N", "Model", "Claim")
"""The columns that the page shows of an open table of verdicts, in this order. Only these tables have the first column."""
NAME_COLUMNS = ("architecture", "scenario", "model", "plan")
"""The columns of the trials whose values the page's sentences set as code."""
CLAIMS_TABLE = "claims"
"""The table of the paper's claims."""
LONG_TABLES = frozenset({"failure_differences", "scorecard-failures", "scorecard-cost", "scorecard-pass", "scorecard-receipts"})
"""Tables that compare everything with everything. `report.md` shows their first MAX_MARKDOWN_ROWS rows; the HTML page, which
can be sorted and searched, shows all."""
MAX_MARKDOWN_ROWS = 25
SIMULATED_WARNING = (
    "Models marked SIMULATED are no models: they answer from the packs' references, and their tokens, seconds and failures are "
    "declared in the config, not measured. Only framework seconds are real there. Nothing of it says how good a real model is."
)


@dataclass(frozen=True)
class Section:
    """A section of the page. `name` is its anchor."""

    name: str
    title: str
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def open_tables(self) -> tuple[Table, ...]:
        """The first tables that have rows. Tables of verdicts have only OPEN_VERDICT_COLUMNS, and their first note."""
        return tuple(map(_open_form, self._first_tables()))

    @property
    def further_tables(self) -> tuple[Table, ...]:
        """The tables with rows that are not open, and all columns of the tables that are open with only some columns."""
        opened = self._first_tables()
        cut = [replace(table, name=f"{table.name}-whole") for table in opened if _open_form(table) is not table]
        return (*cut, *(table for table in self.tables if table.rows and table not in opened))

    def _first_tables(self) -> Sequence[Table]:
        """Return the tables that the page shows open: as many of those with rows as OPEN_TABLES says."""
        return [table for table in self.tables if table.rows][: OPEN_TABLES.get(self.name, 0)]


def _open_form(table: Table) -> Table:
    """Return a table as the page shows it open: a table of verdicts has only OPEN_VERDICT_COLUMNS and its first note, any
    other table is whole."""
    if OPEN_VERDICT_COLUMNS[0] not in table.columns:
        return table
    columns = tuple(name for name in OPEN_VERDICT_COLUMNS if name in table.columns)
    indices = [table.columns.index(name) for name in columns]
    rows = tuple(tuple(row[index] for index in indices) for row in table.rows)
    return replace(table, columns=columns, rows=rows, notes=table.notes[:1])


@dataclass(frozen=True)
class Page:
    """The content of a report.

    warnings   what a reader must know before any number
    first      the figure beside the summary; None if there is none
    facts      descriptions of the run: (name, text)
    on_claims  whether the paper's claims hold; "" if none was judged
    names      the architectures, packs, models and plans that sentences may name
    lead       the tables on the first screen
    """

    title: str
    warnings: tuple[str, ...]
    summary: Summary
    first: Picture | None
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    on_claims: str = ""
    names: tuple[str, ...] = ()
    lead: tuple[Table, ...] = ()

    @property
    def findings(self) -> tuple[SummaryFinding, ...]:
        """The summary's findings. If `on_claims` says whether the paper's claims hold, the finding on them is left out."""
        return tuple(finding for finding in self.summary.findings if not (self.on_claims and finding.table == CLAIMS_TABLE))

    @property
    def opened(self) -> tuple[Section, ...]:
        """The sections with an open table, each with only its open tables (`Section.open_tables`)."""
        sections = (replace(section, tables=section.open_tables, pictures=()) for section in self.sections)
        return tuple(section for section in sections if section.tables)

    @property
    def further(self) -> tuple[Section, ...]:
        """The sections with their figures and the tables that are not open (`Section.further_tables`)."""
        sections = (replace(section, tables=section.further_tables) for section in self.sections)
        return tuple(section for section in sections if section.tables or section.pictures)


def page_of(
    results: Results,
    tables: Sequence[Table],
    pictures: Sequence[Picture],
    verdicts: Sequence[SummaryFinding] = (),
    on_claims: str = "",
) -> Page:
    """Return a report's content, before it is written as Markdown or HTML. `verdicts` has a finding for each source of
    published claims, such as the paper, of which a claim was judged."""
    run, summary = results.run, summary_of(results.run, results.arms, verdicts, results.once(compared_models))
    numbers = (number for table in tables for number in numbers_in(table))
    if limit := coverage_sentence(numbers, "That every interval is wide enough: with so few trials some are too narrow"):
        summary = replace(summary, limits=(*summary.limits, limit))
    return Page(
        title=f"Report of {'runs' if run.parts else 'run'} {run.name}",
        warnings=tuple(_warnings(run)),
        summary=summary,
        first=next(iter(pictures), None),
        facts=tuple(_facts(run)),
        sections=_sections(tables, pictures[1:]),
        on_claims=on_claims,
        lead=tuple(table for table in tables if table.section == LEADING_SECTION),
        names=tuple(name for column in NAME_COLUMNS for name in run.names(column) if name != FAULT_FREE),
    )


def _sections(tables: Sequence[Table], pictures: Sequence[Picture]) -> tuple[Section, ...]:
    """Return the sections that have a table, and a last one with the figures. The leading tables are in none."""
    sections = [
        Section(name, title, tuple(table for table in tables if table.section == name))
        for name, title in SECTIONS.items()
        if name != LEADING_SECTION
    ]
    sections.append(Section("figures", "Figures", pictures=tuple(pictures)))
    return tuple(section for section in sections if section.tables or section.pictures)


def _warnings(run: Run) -> list[str]:
    """Return what a reader must know before any number: that models are simulated, how runs were merged, whether their code
    differs, and which trials are missing."""
    lines = [SIMULATED_WARNING] if any(map(run.is_simulated, run.names("model"))) else []
    lines += run.notes
    digests = [digests_text(part.manifest.codes) for part in run.recorded]
    if len(set(digests)) > 1:
        codes = ", ".join(f"{part.name} by {digest}" for part, digest in zip(run.recorded, digests, strict=True))
        lines.append(f"These runs were made by different code, so that a difference may be the code's alone: {codes}.")
    return [*lines, *shortfalls(run)]


def _facts(run: Run) -> list[tuple[str, str]]:
    """Return what was run, and with what, as (name, text)."""
    trials = run.trials
    arms = trials.assign(instance=instances_of(trials)).groupby(["scenario", "model", "plan", "architecture"])
    counts = arms[["instance", "repetition"]].apply(lambda rows: len(rows.drop_duplicates()))
    least, most = int(counts.min()), int(counts.max())
    n, packs = str(most) if least == most else f"{least} to {most}", run.names("scenario")
    return [
        ("Runs" if run.parts else "Run", run.name),
        ("Models", "; ".join(_model(run, model) for model in run.names("model"))),
        ("Answer format", "; ".join(_formats(run))),
        ("Trials", f"{len(trials)}; N = {n} by scenario, model, fault plan and architecture"),
        *_response_cache(run),
        ("Errors run again", f"{run.errors_rerun} records of errors were superseded on resume"),
        *_graded_anew(run),
        ("Packs", "; ".join(f"{name} (variant {run.pack(name).variant}, asked {run.pack(name).asked[:12]})" for name in packs)),
        ("Architectures", ", ".join(_architecture(run, name) for name in run.names("architecture"))),
        ("Fault plans", "; ".join(_plan(run, plan) for plan in run.names("plan"))),
        ("Made from", _of_each(run, lambda part: part.sources)),
        ("Code", _of_each(run, lambda part: _code_text(part.manifest))),
        ("Packages", _of_each(run, lambda part: name_values_text(part.manifest.packages))),
        ("Machine", _of_each(run, lambda part: name_values_text(part.manifest.machine.shown))),
        *([("Sandbox", _of_each(run, sandbox_text))] if any(part.manifest.sandbox for part in run.recorded) else []),
        ("Sessions", _of_each(run, lambda part: sessions_text(part.sessions))),
        *history_facts(run),
    ]


def _formats(run: Run) -> list[str]:
    """Return the answer formats. If there are several, each is followed by the models that were asked for it."""
    models_of: dict[str, list[str]] = {}
    for model in run.names("model"):
        models_of.setdefault(run.parameters_of(model).answer_format, []).append(model)
    if len(models_of) == 1:
        return list(models_of)
    return [f"{answer_format} ({', '.join(models)})" for answer_format, models in models_of.items()]


def _graded_anew(run: Run) -> list[tuple[str, str]]:
    """Return a fact on the grades that another grader changed after the run; none if no answer was graded again."""
    texts = []
    for regrade in run.regrades:
        changed = f"{regrade.changed} of {regrade.answers} grades of {regrade.scenario} changed on {regrade.at[:10]}"
        without = f", whose sandbox lacked {', '.join(regrade.unguarded)} (--unguarded)" if regrade.unguarded else ""
        texts.append(f"{changed}, by the grader {regrade.graded_by[:12]}{without}")
    return [("Graded anew", "; ".join(texts))] if texts else []


def _response_cache(run: Run) -> list[tuple[str, str]]:
    """Return a fact on the calls whose reply came from another trial's call; none if no call did."""
    reused = int(run.calls["reused"].sum())
    text = f"{reused} of {len(run.calls)} calls repeated a request of another trial and reused its reply and seconds"
    earlier = dict.fromkeys(source.name for model in run.manifest.models.values() for source in model.cache_from)
    sources = f"; some of these trials belong to {', '.join(earlier)}" if earlier else ""
    return [("Response cache", f"{text}{sources}")] if reused else []


def _of_each(run: Run, text_of: Callable[[Run], str]) -> str:
    """Return the text of each run of the report, with the run's name; the text alone if it is the same for all runs."""
    texts = [text_of(part) for part in run.recorded]
    if len(set(texts)) == 1:
        return texts[0]
    return "; ".join(f"{part.name}: {text}" for part, text in zip(run.recorded, texts, strict=True))


def _model(run: Run, model: str) -> str:
    """Describe a model by its parameters. If it routes calls to other models, only those that the report does not describe by
    themselves are included."""
    described = {name: parameters.shown for name, parameters in run.manifest.models.items()}
    parameters = run.parameters_of(model).shown
    targets = {name: values for name, values in parameters.pop("models", {}).items() if described.get(name) != values}
    parameters |= {"models": targets} if targets else {}
    return f"{model_label(run, model)}: {name_values_text(parameters)}" if parameters else model_label(run, model)


def _architecture(run: Run, name: str) -> str:
    """Return an architecture's name, with the base and the settings of a variant."""
    variant = run.config.architecture.get(name)
    if variant is None:
        return name
    settings = variant.model_dump(mode="json", exclude={"base"}, exclude_none=True)
    return f"{name} ({', '.join([variant.base, *(f'{key} {value}' for key, value in settings.items())])})"


def _plan(run: Run, plan: str) -> str:
    """Return a fault plan's name and its faults: the effect, the point and subtask that it strikes, and when."""
    faults = [f"{fault.effect} at {fault.point} of {_target(fault)}" for fault in run.config.faults_of(plan)]
    return f"{plan}: {' + '.join(faults) or 'no fault'}"


def _target(fault: FaultEntry) -> str:
    """Return in words which subtask a fault strikes, and at which attempts or with what probability."""
    if fault.position:
        subtask = f"the {fault.position} subtask"
    elif isinstance(fault.subtask, Mapping):
        subtask = " or ".join(dict.fromkeys(fault.subtask.values()))
    else:
        subtask = "every subtask" if fault.subtask == EVERY else fault.subtask
    if fault.attempts == "every":
        return f"{subtask}, every attempt"
    if fault.attempts:
        return f"{subtask}, attempt {', '.join(map(str, fault.attempts))}"
    return f"{subtask}, probability {fault.probability}"


def _code_text(manifest: Manifest) -> str:
    """Return the code versions that made a run, in order, and the older format of records that it was upgraded from."""
    codes = "; then ".join(code.text for code in manifest.codes)
    return codes + (f"; carried over from format {manifest.upgraded_from}" if manifest.upgraded_from else "")


def as_markdown(page: Page, max_rows: int | None = MAX_MARKDOWN_ROWS) -> str:
    """Return the page as Markdown. LONG_TABLES have at most `max_rows` rows; None for all."""
    parts = [
        f"# {escape_markdown(page.summary.headline)}\n",
        f"{escape_markdown(page.title)}\n",
        *(f"**{escape_markdown(warning)}**\n" for warning in page.warnings),
        f"{escape_markdown(page.summary.ran)}\n",
    ]
    parts += (_with_anchor(table, max_rows) for table in page.lead)
    parts += [_image(page.first)] if page.first else []
    parts.append(
        "\n".join(f"- {escape_markdown(finding.text)} ([table](#{finding.table}))" for finding in page.summary.findings) + "\n"
    )
    parts.append("What this does not show:\n")
    parts.append("\n".join(f"- {escape_markdown(limit)}" for limit in page.summary.limits) + "\n")
    for section in page.sections:
        parts.append(f"## {section.title}\n")
        parts += (_with_anchor(table, max_rows) for table in section.tables)
        parts += map(_image, section.pictures)
    parts.append("## What was run\n")
    parts.append("\n".join(f"- {name}: {escape_markdown(text)}" for name, text in page.facts) + "\n")
    return "\n".join(parts)


def _with_anchor(table: Table, max_rows: int | None) -> str:
    """Return a table as Markdown, between an anchor for links and a comment at its end by which a document can include it."""
    text = markdown(table, max_rows if table.name in LONG_TABLES else None)
    return f'<a id="{table.name}"></a>\n\n{text}\n<!-- end of {table.name} -->\n'


def _image(picture: Picture) -> str:
    """Return a figure as a Markdown image."""
    return f"![{escape_markdown(picture.caption)}](figures/{picture.name}.png)\n"
