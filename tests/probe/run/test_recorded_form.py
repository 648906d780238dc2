"""The form in which what a run showed is recorded."""

from __future__ import annotations

from pathlib import Path

from bench.probe.run.recorded_form import owners_names


def test_a_copy_has_its_owners_name_however_its_path_is_seen_and_an_address_has_one_name(tmp_path: Path) -> None:
    here, copy = tmp_path / "shop", tmp_path / "probe-1f" / "copy" / "home"
    names = owners_names({"home": str(copy), "$DSN": "host=/tmp dbname=copy"}, here)
    assert names == {str(copy): "home", "../probe-1f/copy/home": "home", "host=/tmp dbname=copy": "$DSN"}
