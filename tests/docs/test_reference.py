"""The generated pages hold all that there is, and say what each thing means."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from reference import command_pages, config_keys, effects, probe_keys, providers, systems, workbench_calls
from reference.docstrings import restructured
from reference.pages import HELD, built_pages, filled, inside, listed, renewed
from trials import SYSTEMS

from bench.cli.main import app
from bench.run.experiment.config import Config
from bench.run.experiment.model_entries import MODELS
from bench.run.openai.words import PHRASES, ROWS
from bench.run.trial.effects import EFFECTS

DOCS = Path(__file__).parents[2] / "docs"
TABLES = [*config_keys.tables(), *probe_keys.tables()]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.heading)
def test_each_table_of_a_config_and_each_key_in_it_says_what_it_means(table: config_keys.Table) -> None:
    keys = {key: value for key, value in table.schema["properties"].items() if "const" not in value}
    assert table.about and [key for key, value in keys.items() if not value.get("description")] == []


def test_each_table_that_a_config_can_hold_has_a_section() -> None:
    headings = {table.heading for table in config_keys.tables()}
    assert set(config_keys.tables()[0].schema["$defs"]) and len(headings) == len(Config.model_json_schema()["$defs"]) + 1 + len(
        MODELS.names
    )
    assert {"`[back_off]`", "Each entry of `plan.NAME.faults`"} < headings


def test_each_table_of_a_probe_has_a_section() -> None:
    assert {table.heading for table in probe_keys.tables()} == {
        "The file itself",
        "Each entry of `mcp`",
        "Each entry of `store`",
        "Each entry of `service`",
        "Each entry of `check`",
        "Each entry of `meanwhile`",
        "`[model]`",
    }
    assert "| `limit` | number above 0 | `300.0` |" in probe_keys.page()


def test_a_keys_row_says_what_may_be_written_and_what_holds_without_it() -> None:
    page = config_keys.page()
    assert "| `max_attempts` | whole number at least 1 at most 1000 | `3` |" in page
    assert "| `seed` | whole number | required |" in page
    assert "| `draft_tags` | list: (text, text) | – |" in page
    assert "| `top_p` | number above 0 at most 1 | – |" in page


def test_each_command_and_each_of_its_options_stands_in_the_reference() -> None:
    page, program = command_pages.page(), typer.main.get_command(app)
    assert {name.split()[1] for name, _ in command_pages.commands()} == set(program.commands)  # type: ignore[attr-defined]
    for name, command in command_pages.commands():
        assert f"## `{name}`" in page and command.help
        for parameter in command.params:
            stands = any(f"`{option}" in page for option in parameter.opts)
            assert stands or parameter.metavar or getattr(parameter, "hidden", False), parameter


def test_a_star_or_a_bar_in_an_options_help_is_shown_and_ends_no_cell() -> None:
    rows = [line for line in command_pages.page().splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.replace(r"\|", "").count("|") != 3] == []
    assert any("`*`" in row for row in rows) and any(row.startswith(r"| `--repetitions N\|N-M` |") for row in rows)
    assert any(row.startswith("| `--to PATH` | The policy file") for row in rows)  # a required option, which typer marks


def test_each_effect_and_each_system_stands_in_the_reference() -> None:
    assert [effect.name for effect in EFFECTS if f"| `{effect.name}` |" not in effects.page()] == []
    assert [limit for system in SYSTEMS.values() for limit in system.limits if f"- {limit}" not in systems.page()] == []


def test_each_word_of_a_provider_stands_in_the_table_with_what_it_is() -> None:
    page = providers.page()
    assert [word for row in ROWS for word in row.words if f"`{word}`" not in page] == []
    assert [phrase for phrase in PHRASES if f'"{phrase}"' not in page] == []


def test_the_page_on_frameworks_says_of_each_how_it_recovers() -> None:
    page = (DOCS / "frameworks.md").read_text(encoding="utf-8")
    assert [name for name in SYSTEMS if f"`{name}`" not in page] == []


def test_the_calls_of_the_workbench_are_shown_with_readable_signatures() -> None:
    page = workbench_calls.page()
    assert "`await propose(*subtasks: Subtask" in page
    assert " at 0x" not in page and "bench." not in page


def test_each_generated_part_of_a_page_has_its_generator_and_its_end() -> None:
    pages = [path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")]
    assert sum(len(HELD.findall(text)) for text in pages) >= 8
    assert [text for text in pages if "<!-- generated:" in filled(text)] == []


def test_a_generated_part_that_a_clone_has_is_what_the_code_says() -> None:
    held = [text for path in DOCS.rglob("*.md") if HELD.search(text := path.read_text(encoding="utf-8"))]
    assert held and [text.partition("\n")[0] for text in held if renewed(text) != text] == []


def test_a_link_to_what_is_no_page_becomes_a_path_and_others_and_figures_stay(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "reference" / "page.md"
    text = "[a](../b.md) [the run](../../results/one) [c](d.md) ([it](../../e.md#part))"
    assert inside(text, page, tmp_path / "docs") == "[a](../b.md) the run (`results/one`) [c](d.md) (it: `e.md`)"
    figure = "![it](../../reports/one.png)"
    assert inside(figure, page, tmp_path / "docs") == figure


def test_a_link_to_a_report_whose_page_is_built_leads_to_its_table_and_the_first_page_lists_what_is_built(
    tmp_path: Path,
) -> None:
    pages, beside = tmp_path / "docs", tmp_path / "pages"
    (beside / "one").mkdir(parents=True)
    (beside / "one" / "report.html").write_text(
        "<h1>B took <b>less</b> than A &amp; C</h1><section id='x'><table id=\"table-ours\">"
    )
    (beside / "two").mkdir()
    (beside / "two" / "probe.html").write_text("no heading")
    built = built_pages([beside])
    page = pages / "results" / "page.md"
    text = "[a](../../reports/one/tables/ours.md) [b](../../reports/one/tables/other.md) [c](../../reports/three/report.md)"
    assert inside(text, page, pages, built) == (
        '<a href="../one/report.html#table-ours">a</a> <a href="../one/report.html">b</a> c (`reports/three/report.md`)'
    )
    first = "# Title\n\n## Tutorials\n"
    assert listed(first, built) == (
        "# Title\n\n## Pages to look at\n\n"
        '- <a href="two/probe.html">two</a>\n- <a href="one/report.html">B took less than A &amp; C</a>\n\n## Tutorials\n'
    )
    assert listed(first, {}) == first and "\n## Tutorials\n" in (DOCS / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("docstring", "made"),
    [
        ("`reads` names what_ it shows", "``reads`` names what\\_ it shows"),
        ("a | b, and a *", "a \\| b, and a \\*"),
        ("*paid* and **never**", "*paid* and **never**"),
        (
            "name    what it is,\n        at length\nother   another",
            "\n* ``name``: what it is,\n  at length\n* ``other``: another",
        ),
        ("Prose first.\nname    what it is", "Prose first.\n\n* ``name``: what it is"),
        (
            "Args:\n    path: The folder,\n        or `file`.\n    most: How many.",
            ":param path: The folder,\n  or ``file``.\n:param most: How many.",
        ),
        ("Returns:\n    The rows,\n    in order.", ":returns: The rows,\n  in order."),
        ("Raises:\n    BenchError: It is gone.", ":raises BenchError: It is gone."),
        ("    code(as, it_stands)", "::\n\n    code(as, it_stands)"),
        ("    Base          one\n    |-- Derived   two", "::\n\n    Base          one\n    |-- Derived   two"),
    ],
)
def test_a_docstring_is_shown_in_the_form_that_it_was_written_in(docstring: str, made: str) -> None:
    assert "\n".join(restructured(docstring.splitlines())).rstrip() == made
