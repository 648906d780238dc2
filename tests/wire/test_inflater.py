"""What a compressed body holds: all members of gzip, whatever the pieces in which they arrive."""

from __future__ import annotations

import gzip
import io
import time
import zlib
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.probe.run.gateway.bodies import Body, ContentDecoder
from bench.wire.inflater import GZIP, Inflater


def inflated(data: bytes, sizes: list[int], most: int = 2**20) -> tuple[bytes, bool]:
    inflater, plain, pieces = Inflater(GZIP), b"", io.BytesIO(data)
    for size in (*sizes, len(data)):
        plain += inflater.add(pieces.read(size), most)
    return plain, inflater.is_whole


@given(st.lists(st.binary(max_size=9000), min_size=1, max_size=4), st.lists(st.integers(1, 30), max_size=20), st.integers(0, 9))
def test_several_members_are_one_content_as_the_library_of_python_reads_it(
    contents: list[bytes], sizes: list[int], padding: int
) -> None:
    data = b"".join(map(gzip.compress, contents)) + b"\0" * padding
    assert inflated(data, sizes) == (gzip.decompress(data), True)


@given(st.binary(min_size=1, max_size=200), st.integers(1, 18))
def test_a_second_member_that_is_cut_off_or_no_gzip_is_no_whole_body(content: bytes, lost: int) -> None:
    member = gzip.compress(content)
    assert not inflated(member + member[:-lost], [])[1]
    with pytest.raises(zlib.error):
        inflated(member + b"no gzip", [])
    with closing(Body()) as body:
        body.add(b"", member + b"no gzip")
        assert body.plain("gzip") is None


def test_a_body_of_two_members_is_recorded_whole_and_within_its_bound() -> None:
    with closing(Body()) as body:
        body.add(b"", gzip.compress(b'{"paid": 7, ') + gzip.compress(b'"owner": "Ada"}'))
        assert body.plain("gzip") == b'{"paid": 7, "owner": "Ada"}'
    bound = ContentDecoder("gzip", 10)
    assert bound.add(gzip.compress(b"x" * 6) * 2) == b"" and not bound.is_readable


def test_many_empty_members_take_a_time_that_is_linear_in_their_number() -> None:
    member = gzip.compress(b"")

    def seconds(count: int) -> float:
        start = time.process_time()
        inflated(member * count, [])
        return time.process_time() - start

    short = min(seconds(1_000) for _ in range(3))
    assert min(seconds(10_000) for _ in range(3)) < 40 * short + 0.05  # quadratic time would be 100 times as long
