"""A cold prompt cache is told from a warm one: by attempt, and by the server's own word where it gives one."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import called, run_of, trial
from scipy import stats

import bench
from bench.read.analysis.statistics import parts_of
from bench.read.tables.prompt_cache import PromptCache, prompt_caches
from bench.record.events import Called

RESULTS = Path(__file__).parents[3] / "results"


@given(st.lists(st.tuples(st.integers(1, 2000), st.integers(1, 500)), min_size=6, max_size=20, unique=True))
def test_a_total_that_is_made_of_its_parts_gives_them_back(amounts: list[tuple[int, int]]) -> None:
    amounts = [*amounts, (1000, 1), (1, 300)]
    parts = parts_of(amounts, [0.01 * first + 0.07 * two for first, two in amounts], [n % 3 for n in range(len(amounts))])
    assert parts is not None
    assert [part.value for part in parts] == pytest.approx([0.01, 0.07])
    assert all(part.low is not None and 0 <= part.low <= part.value <= (part.high or 0) for part in parts)


def test_a_part_that_the_sums_would_put_below_nothing_is_nothing_and_its_interval_is_not_without_width() -> None:
    draw = random.Random(1)
    amounts = [(draw.uniform(1, 100), draw.uniform(1, 100)) for _ in range(30)]
    totals = [5.0 * out - 0.5 * into + draw.gauss(0, 30) for into, out in amounts]
    first, _ = parts_of(amounts, totals, [n % 6 for n in range(30)]) or ()
    assert (first.value, first.low) == (0.0, 0.0) and first.high and first.high > 0


def test_an_interval_is_as_wide_as_the_least_squares_without_each_cluster_differ() -> None:
    draw = random.Random(2)
    amounts = [(draw.uniform(1, 2000), draw.uniform(1, 500), 0.0) for _ in range(40)]
    totals = [0.01 * into + 0.05 * out + draw.gauss(0, 1) for into, out, _ in amounts]
    clusters = [draw.choice("abcdefg") for _ in amounts]
    parts = parts_of(amounts, totals, clusters) or ()
    kept = [[place for place, cluster in enumerate(clusters) if cluster != name] for name in "abcdefg"]
    without = np.array([np.linalg.lstsq(np.array(amounts)[each], np.array(totals)[each])[0] for each in kept])
    widths = stats.t.ppf(0.975, 6) * without.std(axis=0) * math.sqrt(6)
    assert [(part.high or 0.0) - part.value for part in parts] == pytest.approx(widths)


def test_too_few_rows_tell_no_parts_and_one_cluster_no_interval() -> None:
    assert parts_of([(1, 2), (2, 1)], [3, 3], [1, 2]) is None and parts_of([], [], []) is None
    first, _ = parts_of([(1, 2), (2, 1), (1, 1)], [3, 3, 2], [1, 1, 1]) or ()
    assert first.value == pytest.approx(1) and (first.low, first.high) == (None, None)


def call(number: int, attempt: int, tokens: tuple[int, int], seconds: float, cached: int | None = None) -> Called:
    usage = None if cached is None else (tokens[0] + 7, tokens[1])
    return replace(called(number, attempt=attempt, tokens=tokens, usage=usage), seconds=seconds, usage_cached=cached)


def cache_of(tmp_path: Path, calls: list[Called]) -> PromptCache:
    """Of these calls, each made in every one of three repetitions."""
    records = [replace(trial(repetition=number, events=calls), timing="live") for number in (1, 2, 3)]
    [cache] = prompt_caches(run_of(tmp_path / "run", records))
    return cache


TOKENS = ((400, 50), (900, 80), (300, 200))


def test_first_and_later_attempts_are_read_apart(tmp_path: Path) -> None:
    first = [call(n, 1, (into, out), 0.010 * into + 0.05 * out) for n, (into, out) in enumerate(TOKENS, 1)]
    later = [call(n, 2, (into, out), 0.001 * into + 0.05 * out) for n, (into, out) in enumerate(TOKENS, 4)]
    cache = cache_of(tmp_path, [*first, *later])
    assert cache.first.by_input and cache.first.by_input.value == pytest.approx(0.010)
    assert cache.later.by_input and cache.later.by_input.value == pytest.approx(0.001)
    assert (cache.first.calls, cache.first.tokens_in, cache.first.tokens_out) == (9, 4800, 990)
    assert (cache.first.cached, cache.cold, cache.warm) == (None, None, None), "the server does not tell"


def test_calls_that_took_no_time_of_the_server_or_a_faults_are_no_reading(tmp_path: Path) -> None:
    plain = [call(n, 1, (into, out), 0.010 * into + 0.05 * out) for n, (into, out) in enumerate(TOKENS, 1)]
    slowed = replace(plain[0], seconds=plain[0].seconds + 30.0, delay=30.0)
    others = [replace(call(4, 1, (500, 10), 90.0), reused=True), replace(called(5, failure="timed_out"), seconds=600.0)]
    cache = cache_of(tmp_path, [slowed, *plain[1:], *others])
    assert cache.first.calls == 9 and cache.first.by_input and cache.first.by_input.value == pytest.approx(0.010)


def test_where_the_server_tells_cached_tokens_are_read_apart_in_its_own_count(tmp_path: Path) -> None:
    cached = (0, 600, 300, 100)
    calls = [
        call(n, n, (into, out), 0.010 * (into + 7 - warm) + 0.001 * warm + 0.05 * out, warm)
        for n, ((into, out), warm) in enumerate(zip((*TOKENS, (350, 20)), cached, strict=True), 1)
    ]
    cache = cache_of(tmp_path, calls)
    assert cache.cold and cache.warm and cache.cold.by_input and cache.warm.by_input
    assert [cache.cold.by_input.value, cache.warm.by_input.value] == pytest.approx([0.010, 0.001])
    assert (cache.cold.tokens_in, cache.warm.tokens_in) == (3 * (1950 + 28 - 1000), 3000)
    assert (cache.first.cached, cache.later.cached) == (0, 3000)


def test_the_reference_run_is_read_as_another_program_read_it() -> None:
    """The audit of the run: 9.4 ms an input token at attempt 1, 1.6 ms after."""
    [cache] = prompt_caches(bench.load_run(RESULTS / "paper-qwen2.5-coder-1.5b-instruct"))
    assert cache.first.by_input and cache.later.by_input
    assert [1e3 * cache.first.by_input.value, 1e3 * cache.later.by_input.value] == pytest.approx([9.4, 1.6], abs=0.05)
