"""Files of JSON as rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.common.bounds import MAX_LEVELS
from bench.probe.run.witness.documents import MAX_FILE_BYTES, objects_in
from bench.probe.run.witness.folder import FolderStore
from bench.probe.run.witness.hiding import HiddenNames
from bench.probe.run.witness.ignored import Ignored
from bench.probe.run.witness.rows import Encoding

STATE = {"users": {"ada": {"certificates": {"c1": {"amount": 100}}, "cents": 500}}, "calls": [{"id": 1}]}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[tuple[FolderStore, Path]]:
    """A folder with a file of JSON, without its calls, and the copy."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "a.json").write_text(json.dumps(STATE))
    ignores = Ignored(["a.json/calls/*"])
    store = FolderStore("state", tmp_path / "state", tmp_path / "copies", Encoding(), {}, ignores=ignores)
    store.make()
    yield store, Path(store.replaces[str(tmp_path / "state")])
    store.remove()


def test_what_an_object_gained_is_a_row(folder: tuple[FolderStore, Path]) -> None:
    store, copy = folder
    state = json.loads(json.dumps(STATE))
    state["users"]["ada"]["certificates"]["c2"] = {"amount": 100}
    state["users"]["ada"]["cents"] = 400
    (copy / "a.json").write_text(json.dumps(state, indent=3))
    rows = {(row.table, row.key): (row.before, row.after) for row in store.read(9).differences}
    assert rows == {
        ("a.json", "/users/ada"): ({"cents": 500}, {"cents": 400}),
        ("a.json", "/users/ada/certificates/c2"): (None, {"amount": 100}),
    }


def test_a_file_written_anew_with_the_same_content_or_with_what_is_ignored_is_no_change(
    folder: tuple[FolderStore, Path],
) -> None:
    store, copy = folder
    (copy / "a.json").write_text(json.dumps(STATE | {"calls": [{"id": 1}, {"id": 2}]}, indent=1, sort_keys=True))
    assert not store.read(9).differences
    first = store.read(9)
    store.reset()
    assert store.read(9) == first


def test_a_file_that_is_no_json_any_more_is_one_row(folder: tuple[FolderStore, Path]) -> None:
    store, copy = folder
    (copy / "a.json").write_text("{")
    [row] = store.read(9).differences
    assert (row.table, row.key, (row.after or {})["text"]) == ("", "a.json", "{")


def test_a_line_before_others_renames_none_and_a_second_equal_line_is_a_second_row() -> None:
    ada, lamp = '{"name": "Ada", "seen": ["Bern"]}', '{"name": "lamp"}'
    before, after = (objects_in("m.jsonl", text.encode(), HiddenNames()) for text in (ada, f"{lamp}\n{ada}\n{ada}"))
    assert before and after and len(after) == 3
    assert before.items() < after.items()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b"{}"),
        ("a.json", b""),
        ("a.json", b"\xff"),
        ("a.json", b'"' + b"a" * MAX_FILE_BYTES + b'"'),
        ("a.json", b"[" * 100_000),
        ("a.json", (b"[" * (MAX_LEVELS + 1)) + (b"]" * (MAX_LEVELS + 1))),
    ],
)
def test_what_is_no_json_is_none(name: str, content: bytes) -> None:
    assert objects_in(name, content, HiddenNames()) is None


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, VALUES)
def test_equal_values_have_equal_objects_whatever_their_bytes_are(value: Any, other: Any) -> None:
    objects = objects_in("a.json", json.dumps(value).encode(), HiddenNames())
    assert objects == objects_in("a.json", json.dumps(value, indent=2, sort_keys=True).encode(), HiddenNames())
    assert objects_in("a.json", json.dumps([value, {"a": other}]).encode(), HiddenNames()) is not None


def test_a_hidden_object_is_a_digest_in_its_row_and_in_the_name_of_an_item() -> None:
    hidden = HiddenNames({"card"}, b"key")
    content = json.dumps({"payment": {"card": {"number": "4kanary7"}, "cents": 5}, "known": [{"card": "4kanary7"}]}).encode()
    objects = objects_in("a.json", content, hidden)
    assert objects and "4kanary7" not in str(objects)
    assert objects["/payment"] == {"card": hidden.digest({"number": "4kanary7"}), "cents": 5}
    assert [*objects] != [*(objects_in("a.json", content, HiddenNames({"card"}, b"other")) or ())]  # no guess can be tested
