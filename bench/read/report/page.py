"""The report in words: what the run is, its tables and its figures. Markdown is written here, the HTML page in `page_html`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.read.analysis.arms import instances_of, shortfalls
from bench.read.analysis.frames import Run
from bench.read.render.drawing import Picture
from bench.read.render.escaping import escape_markdown
from bench.read.render.labels import model_label
from bench.read.render.limits import coverage_sentence, numbers_in
from bench.read.render.table import Table, markdown
from bench.read.report.history import history_facts, name_values_text, sandbox_text, sessions_text
from bench.read.report.results import Results
from bench.read.report.summary import Summary, SummaryFinding, summary_of
from bench.read.report.table_part import LEAD, OPEN, SECTIONS
from bench.record.config import FAULT_FREE
from bench.record.manifest import Manifest
from bench.record.origin import digests_text
from bench.record.plan_entries import EVERY, FaultEntry

READ_FIRST = ("What is said", "Verdict", "Ours", "Published", "Ours, the whole round", "N", "Model", "Claim")
"""The columns of a table of verdicts that a page shows open, in this order."""
NAMED = ("architecture", "scenario", "model", "plan")
"""The columns whose values are set apart in the page's sentences."""
TALLY = "claims"
"""The table that the tally of the paper's claims leads to."""
LONG_TABLES = frozenset({"failure_differences", "scorecard-failures", "scorecard-cost", "scorecard-pass", "scorecard-receipts"})
MOST_ROWS = 25
"""Tables that compare everything with everything, and how many of their rows `report.md` shows at most. The page can be sorted
and searched, so it has all rows."""
SIMULATED = (
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
        """The first tables that have rows. A table of verdicts is in the order in which it is read: the sentences first, the
        ids last, and without the columns that explain a verdict."""
        shown = []
        for table in self._first_tables():
            places = [table.columns.index(name) for name in READ_FIRST if name in table.columns]
            if READ_FIRST[0] in table.columns:
                columns = tuple(table.columns[place] for place in places)
                rows = tuple(tuple(row[place] for place in places) for row in table.rows)
                table = replace(table, columns=columns, rows=rows, notes=table.notes[:1])  # noqa: PLW2901
            shown.append(table)
        return tuple(shown)

    @property
    def further_tables(self) -> tuple[Table, ...]:
        """The tables that are not open, and the whole of those that are open with only some of their columns."""
        opened = self._first_tables()
        return tuple(
            replace(table, name=f"{table.name}-whole") if table in opened else table
            for table in self.tables
            if (READ_FIRST[0] in table.columns if table in opened else table.rows)
        )

    def _first_tables(self) -> Sequence[Table]:
        return [table for table in self.tables if table.rows][: OPEN.get(self.name, 0)]


@dataclass(frozen=True)
class Page:
    """The text of a report. `warnings` are what a reader must know before any number. `on_claims` says whether the paper's
    claims hold ("" if none was judged). `first` is the figure beside the summary (None if there is none). `facts` describe the
    run, line by line. `names` are the architectures, packs, models and plans that the sentences name.
    `lead` are the tables on the first screen."""

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
        """The summary's findings without the tally of the paper's claims, if `on_claims` has it."""
        return tuple(each for each in self.summary.findings if not (self.on_claims and each.table == TALLY))

    @property
    def opened(self) -> tuple[Section, ...]:
        """The tables that are open on the page: the first tables of some sections. Tables of verdicts have only the columns
        that are read first."""
        shown = (replace(each, tables=each.open_tables, pictures=()) for each in self.sections)
        return tuple(section for section in shown if section.tables)

    @property
    def further(self) -> tuple[Section, ...]:
        """The figures and the tables that are not open. Open tables stand here again if they were shown with only some of their
        columns."""
        shown = (replace(each, tables=each.further_tables) for each in self.sections)
        return tuple(section for section in shown if section.tables or section.pictures)


def page_of(
    results: Results,
    tables: Sequence[Table],
    pictures: Sequence[Picture],
    verdicts: Sequence[SummaryFinding] = (),
    on_claims: str = "",
) -> Page:
    """Return what a report's pages show, before it is written as Markdown or HTML. `verdicts` has a sentence for each source of
    claims that judged a claim."""
    run, summary = results.run, summary_of(results.run, results.arms, verdicts, results.models)
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
        lead=tuple(table for table in tables if table.section == LEAD),
        names=tuple(name for column in NAMED for name in run.names(column) if name != FAULT_FREE),
    )


def _sections(tables: Sequence[Table], pictures: Sequence[Picture]) -> tuple[Section, ...]:
    """Return the tables by section, and the figures last."""
    sections = [
        Section(name, title, tuple(table for table in tables if table.section == name))
        for name, title in SECTIONS.items()
        if name != LEAD
    ]
    sections.append(Section("figures", "Figures", pictures=tuple(pictures)))
    return tuple(section for section in sections if section.tables or section.pictures)


def _warnings(run: Run) -> list[str]:
    lines = [SIMULATED] if any(map(run.is_simulated, run.names("model"))) else []
    lines += run.notes
    digests = [digests_text(part.manifest.codes) for part in run.recorded]
    if len(set(digests)) > 1:
        named = ", ".join(f"{part.name} by {digest}" for part, digest in zip(run.recorded, digests, strict=True))
        lines.append(f"These runs were made by different code, so that a difference may be the code's alone: {named}.")
    return [*lines, *shortfalls(run)]


def _facts(run: Run) -> list[tuple[str, str]]:
    trials = run.trials
    pairs = trials.assign(instance=instances_of(trials)).groupby(["scenario", "model", "plan", "architecture"])
    numbers = pairs[["instance", "repetition"]].apply(lambda rows: len(rows.drop_duplicates()))
    least, most = int(numbers.min()), int(numbers.max())
    each, packs = str(most) if least == most else f"{least} to {most}", run.names("scenario")
    return [
        ("Runs" if run.parts else "Run", run.name),
        ("Models", "; ".join(_model(run, model) for model in run.names("model"))),
        ("Answer format", "; ".join(_formats(run))),
        ("Trials", f"{len(trials)}; N = {each} by scenario, model, fault plan and architecture"),
        *_response_cache(run),
        ("Errors run again", f"{run.errors_rerun} records of errors were superseded on resume"),
        *_graded_anew(run),
        ("Packs", "; ".join(f"{name} (variant {run.pack(name).variant}, asked {run.pack(name).asked[:12]})" for name in packs)),
        ("Architectures", ", ".join(_architecture(run, name) for name in run.names("architecture"))),
        ("Fault plans", "; ".join(_plan(run, plan) for plan in run.names("plan"))),
        ("Made from", _of_each(run, lambda part: part.sources)),
        ("Code", _of_each(run, lambda part: _code(part.manifest))),
        ("Packages", _of_each(run, lambda part: name_values_text(part.manifest.packages))),
        ("Machine", _of_each(run, lambda part: name_values_text(part.manifest.machine.shown))),
        *([("Sandbox", _of_each(run, sandbox_text))] if any(part.manifest.sandbox for part in run.recorded) else []),
        ("Sessions", _of_each(run, lambda part: sessions_text(part.sessions))),
        *history_facts(run),
    ]


def _formats(run: Run) -> list[str]:
    """Return the answer formats, each with the models asked for it if there are several."""
    asked: dict[str, list[str]] = {}
    for model in run.names("model"):
        asked.setdefault(run.parameters_of(model).answer_format, []).append(model)
    return list(asked) if len(asked) == 1 else [f"{text} ({', '.join(models)})" for text, models in asked.items()]


def _graded_anew(run: Run) -> list[tuple[str, str]]:
    """Return in words which grades are not the run's own grades."""
    texts = []
    for regrade in run.regrades:
        changed = f"{regrade.changed} of {regrade.answers} grades of {regrade.scenario} changed on {regrade.at[:10]}"
        lacked = f", whose sandbox lacked {', '.join(regrade.unguarded)} (--unguarded)" if regrade.unguarded else ""
        texts.append(f"{changed}, by the grader {regrade.graded_by[:12]}{lacked}")
    return [("Graded anew", "; ".join(texts))] if texts else []


def _response_cache(run: Run) -> list[tuple[str, str]]:
    reused = int(run.calls["reused"].sum())
    text = f"{reused} of {len(run.calls)} calls repeated a request of another trial and reused its reply and seconds"
    earlier = dict.fromkeys(run_taken.name for model in run.manifest.models.values() for run_taken in model.cache_from)
    took_over = f"; some of these trials belong to {', '.join(earlier)}" if earlier else ""
    return [("Response cache", f"{text}{took_over}")] if reused else []


def _of_each(run: Run, text_of: Callable[[Run], str]) -> str:
    """Return a text that holds for all runs of the report. If the runs differ, return the text of each run with the run's
    name."""
    texts = [text_of(part) for part in run.recorded]
    if len(set(texts)) == 1:
        return texts[0]
    return "; ".join(f"{part.name}: {text}" for part, text in zip(run.recorded, texts, strict=True))


def _model(run: Run, model: str) -> str:
    """Describe a model by its parameters. Of the models behind a routed one, only those not listed on their own are shown."""
    models = {name: model.shown for name, model in run.manifest.models.items()}
    parameters = run.parameters_of(model).shown
    behind = {name: values for name, values in parameters.pop("models", {}).items() if models.get(name) != values}
    parameters |= {"models": behind} if behind else {}
    return f"{model_label(run, model)}: {name_values_text(parameters)}" if parameters else model_label(run, model)


def _architecture(run: Run, name: str) -> str:
    """Describe a variant by its base and settings."""
    variant = run.config.architecture.get(name)
    if variant is None:
        return name
    given = variant.model_dump(mode="json", exclude={"base"}, exclude_none=True)
    return f"{name} ({', '.join([variant.base, *(f'{key} {value}' for key, value in given.items())])})"


def _plan(run: Run, plan: str) -> str:
    """Describe a plan by the config's faults."""
    faults = [f"{fault.effect} at {fault.point} of {_where(fault)}, {_when(fault)}" for fault in run.config.faults_of(plan)]
    return f"{plan}: {' + '.join(faults) or 'no fault'}"


def _where(fault: FaultEntry) -> str:
    if fault.position:
        return f"the {fault.position} subtask"
    if isinstance(fault.subtask, Mapping):
        return " or ".join(dict.fromkeys(fault.subtask.values()))
    return "every subtask" if fault.subtask == EVERY else fault.subtask


def _when(fault: FaultEntry) -> str:
    if fault.attempts == "every":
        return "every attempt"
    if fault.attempts:
        return f"attempt {', '.join(map(str, fault.attempts))}"
    return f"probability {fault.probability}"


def _code(manifest: Manifest) -> str:
    codes = "; then ".join(code.text for code in manifest.codes)
    return codes + (f"; carried over from format {manifest.upgraded_from}" if manifest.upgraded_from else "")


def as_markdown(page: Page, most: int | None = MOST_ROWS) -> str:
    """Return the page as Markdown, with at most `most` rows of the long tables."""
    parts = [
        f"# {escape_markdown(page.summary.headline)}\n",
        f"{escape_markdown(page.title)}\n",
        *(f"**{escape_markdown(warning)}**\n" for warning in page.warnings),
        f"{escape_markdown(page.summary.ran)}\n",
    ]
    parts += (_with_anchor(table, most) for table in page.lead)
    parts += [_figure(page.first)] if page.first else []
    parts.append(
        "\n".join(f"- {escape_markdown(finding.text)} ([table](#{finding.table}))" for finding in page.summary.findings) + "\n"
    )
    parts.append("What this does not show:\n")
    parts.append("\n".join(f"- {escape_markdown(limit)}" for limit in page.summary.limits) + "\n")
    for section in page.sections:
        parts.append(f"## {section.title}\n")
        parts += (_with_anchor(table, most) for table in section.tables)
        parts += map(_figure, section.pictures)
    parts.append("## What was run\n")
    parts.append("\n".join(f"- {name}: {escape_markdown(text)}" for name, text in page.facts) + "\n")
    return "\n".join(parts)


def _with_anchor(table: Table, most: int | None) -> str:
    """Return a table between its anchor and a mark of its end, so that a document can link to it and include it."""
    text = markdown(table, most if table.name in LONG_TABLES else None)
    return f'<a id="{table.name}"></a>\n\n{text}\n<!-- end of {table.name} -->\n'


def _figure(picture: Picture) -> str:
    return f"![{escape_markdown(picture.caption)}](figures/{picture.name}.png)\n"
