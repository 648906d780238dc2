"""The published schema of a run's files is that of the code, and a run's files fit it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import results_schema
from experiment_runs import config, run

from bench.record.files import FORMAT, MANIFEST


def test_the_schema_is_that_of_the_code_and_says_which_format_it_is_of() -> None:
    written = results_schema.PATH.read_text(encoding="utf-8")
    assert written == results_schema.text(), "write it anew: PYTHONPATH=tools python -m results_schema"
    assert f"Format {FORMAT}," in json.loads(written)["description"]


def test_each_line_of_a_run_fits_the_schema_and_one_without_its_link_does_not(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    run(config({"kind": "simulated", "failure_rate": 0.2}, repetitions=1), tmp_path)
    schema = results_schema.schema()
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({MANIFEST: json.loads((tmp_path / MANIFEST).read_text(encoding="utf-8"))})
    for name in ("trials.jsonl", "responses.jsonl", "texts.jsonl"):
        lines = [json.loads(line) for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()]
        assert lines and not [error.message for line in lines for error in validator.iter_errors({name: line})]
    first = json.loads((tmp_path / "trials.jsonl").read_text(encoding="utf-8").partition("\n")[0])
    assert validator.is_valid({"trials.jsonl": first})
    assert not validator.is_valid({"trials.jsonl": {key: value for key, value in first.items() if key != "chain"}})
    assert not validator.is_valid({"responses.jsonl": {"chain": "0" * 20}})
