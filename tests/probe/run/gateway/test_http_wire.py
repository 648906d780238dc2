"""Heads and bodies are read in whatever pieces they come, and bytes that are no HTTP are refused."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.probe.run.gateway.bodies import Body, ContentDecoder, json_of, value_of
from bench.probe.run.gateway.http_wire import BadMessage, Framing, Head, chunk, framing_of, head_of, make_head
from bench.probe.run.gateway.server_sent import EventSplitter, data_of, events_of, with_data

NAMES = st.from_regex(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}", fullmatch=True)
VALUES = st.binary(max_size=30).filter(lambda value: not set(value) & set(b"\r\n\0"))
HEADS = st.lists(st.tuples(NAMES, VALUES), max_size=8)


def in_pieces(raw: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(raw), *(cut % (len(raw) + 1) for cut in cuts)})
    return [raw[a:b] for a, b in pairwise(places)]


def body_of(framing: Framing, pieces: list[bytes]) -> tuple[bytes, int]:
    """Return what a body carries, and how many bytes it took."""
    data, used = b"", 0
    for piece in pieces:
        if framing.is_whole:
            break
        more, taken = framing.feed(piece)
        data, used = data + more, used + taken
    return data, used


@given(HEADS)
def test_a_head_keeps_its_lines(fields: list[tuple[bytes, bytes]]) -> None:
    raw = b"GET /a?b HTTP/1.1\r\n" + b"".join(name + b":" + value + b"\r\n" for name, value in fields) + b"\r\n"
    head = head_of(raw)
    assert head.raw == raw and (head.method, head.target) == ("GET", b"/a?b")
    assert [(name, value) for name, value, _ in head.fields] == [
        (name.decode().lower(), value.strip().decode("latin-1")) for name, value in fields
    ]


@given(st.binary(max_size=300))
def test_any_bytes_are_a_head_that_says_them_again_or_none(raw: bytes) -> None:
    try:
        head = head_of(b"GET / HTTP/1.1\r\n" + raw + b"\r\n\r\n")
    except BadMessage:
        return
    assert b"".join(line for _, _, line in head.fields).rstrip(b"\r\n") == raw.rstrip(b"\r\n")


@given(st.lists(st.binary(max_size=40), max_size=8), st.binary(max_size=20), st.lists(st.integers(0, 10**4), max_size=12))
def test_chunks_are_read_in_whatever_pieces_they_come(datas: list[bytes], behind: bytes, cuts: list[int]) -> None:
    raw = b"".join(map(chunk, datas)) + b"0\r\nX-End: 1\r\n\r\n"
    framing = Framing(chunked=True)
    assert body_of(framing, in_pieces(raw + behind, cuts)) == (b"".join(datas), len(raw))
    assert framing.is_whole


@given(st.binary(max_size=60), st.binary(max_size=20), st.lists(st.integers(0, 100), max_size=6))
def test_a_body_with_a_length_ends_there(data: bytes, behind: bytes, cuts: list[int]) -> None:
    assert body_of(Framing(len(data)), in_pieces(data + behind, cuts)) == (data, len(data))


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6))
def test_no_bytes_as_chunks_do_more_than_be_refused(raw: bytes, cuts: list[int]) -> None:
    try:
        data, used = body_of(Framing(chunked=True), in_pieces(raw, cuts))
    except BadMessage:
        return
    assert len(data) <= used <= len(raw)


@pytest.mark.parametrize(
    "fields",
    [
        {"Content-Length": "3", "Transfer-Encoding": "chunked"},
        {"Content-Length": "3, 4"},
        {"Content-Length": "+3"},
        {"Content-Length": "3" * 30},
        {"Transfer-Encoding": "chunked, gzip"},
    ],
)
def test_a_request_whose_end_is_not_certain_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(BadMessage):
        framing_of(make_head("POST / HTTP/1.1", fields))


@pytest.mark.parametrize(
    "raw", [b"GET / HTTP/2\r\n\r\n", b"GET /a b HTTP/1.1\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/1.1\r\nA b: c\r\n\r\n"]
)
def test_what_is_no_request_is_refused(raw: bytes) -> None:
    with pytest.raises(BadMessage):
        head_of(raw)


def test_a_field_is_replaced_in_its_place() -> None:
    head = head_of(b"GET / HTTP/1.1\r\nA: 1\r\nhOST: x\r\nB: 2\r\n\r\n").with_fields({"host": "y", "via": "z"})
    assert head.raw == b"GET / HTTP/1.1\r\nA: 1\r\nhOST: y\r\nB: 2\r\nVia: z\r\n\r\n"
    assert isinstance(head.without("a"), Head) and not head.without("a").values("a")


LINES = st.sampled_from([b"data: x", b"data:", b"id: 7", b": comment", b"event: message", b"data: {}"])
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(st.lists(LINES, min_size=1, max_size=4), max_size=6), ENDS, st.lists(st.integers(0, 500), max_size=12))
def test_events_are_cut_in_whatever_pieces_they_come(lines: list[list[bytes]], end: bytes, cuts: list[int]) -> None:
    whole = [b"".join(line + end for line in each) + end for each in lines]
    events = EventSplitter()
    cut = [event for piece in in_pieces(b"".join(whole), cuts) for event in events.add(piece)]
    assert [event for event in (*cut, events.rest()) if event] == whole
    assert list(map(data_of, events_of(b"".join(whole)))) == [
        b"\n".join(line[5:].removeprefix(b" ") for line in each if line.startswith(b"data:")) for each in lines
    ]


@given(st.lists(LINES, min_size=1, max_size=4), st.from_regex(rb"[^\r\n]{0,20}", fullmatch=True))
def test_an_event_with_other_data_keeps_its_other_lines(lines: list[bytes], data: bytes) -> None:
    changed = with_data(b"\n".join(lines) + b"\n\n", data)
    assert data_of(changed) == data and events_of(changed) == [changed]
    assert [line for line in lines if not line.startswith(b"data")] == [
        line for line in changed.split(b"\n") if line and not line.startswith(b"data: " + data)
    ]


@given(st.binary(max_size=100), st.sampled_from(["gzip", "deflate", "br", "", "x"]))
def test_whatever_says_to_be_packed_is_unpacked_or_is_not(data: bytes, encoding: str) -> None:
    body = Body(1000)
    body.add(data, data)
    plain = body.plain(encoding)
    body.close()
    assert plain == data if encoding == "" else plain is None or encoding in ("gzip", "deflate")


@given(st.binary(max_size=60), st.integers(0, 60), st.lists(st.integers(0, 80), max_size=3))
def test_what_is_packed_is_unpacked_whole_or_in_pieces_within_its_bound(data: bytes, longest: int, cuts: list[int]) -> None:
    packed = gzip.compress(data)
    body = Body(200)
    body.add(packed, packed)
    assert body.plain("gzip") == data
    body.close()
    whole = ContentDecoder("gzip", longest)
    assert (whole.add(packed), whole.is_whole) == ((data, True) if len(data) <= longest else (b"", False))
    pieces = ContentDecoder("gzip")
    assert b"".join(map(pieces.add, in_pieces(packed, cuts))) == data and pieces.is_whole


@given(st.recursive(st.none() | st.integers() | st.binary(max_size=5).map(repr), st.lists), st.binary(max_size=5))
def test_a_json_text_is_read_and_what_is_none_is_not(value: object, behind: bytes) -> None:
    text = json.dumps(value).encode()
    assert json_of(text) == value
    assert json_of(text + b"}" + behind) is None


def test_a_body_of_many_values_is_known_by_its_digest() -> None:
    body = Body()
    body.add(b"", many := b"[" + b"1," * 200_000 + b"1]")
    assert json_of(many) is None
    assert value_of(body, "application/json", "") == many.decode()
    body.close()
