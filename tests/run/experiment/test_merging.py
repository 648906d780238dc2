"""Parts of a run that were recorded apart are joined to what one process would have recorded, or refused in one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from equal_runs import assert_equal, lines_of
from experiment_runs import config, copied, run, run_matrix_in, without
from trials import ROOTS

from bench.common.errors import ConfigError, ResultsError
from bench.read.analysis.frames import load_run
from bench.record.files import TRIALS
from bench.record.origin import CodeVersion
from bench.record.reading import read_manifest
from bench.record.store import RunWriter, write_manifest
from bench.record.verify import verify
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.merging import merge_parts
from bench.run.experiment.portion import Portion, parse_repetitions, parse_shard, restrict_to
from bench.run.experiment.regrade import regrade

SIMULATED = {"kind": "simulated", "failure_rate": 0.3}
SPOILT = {"spoilt": {"faults": [{"point": "output", "effect": "missing_field", "attempts": [1]}]}}


def settings(**changed: Any) -> Config:
    settings: dict[str, Any] = {"scenarios": ["orchard"], "plans": ["none"], "repetitions": 4, "plan": SPOILT}
    return config(SIMULATED, **{**settings, **changed})


def matrix_of(portion: Portion | None = None, **changed: Any) -> Matrix:
    return restrict_to(build_matrix(settings(**changed), ROOTS, "code"), portion or Portion())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    run(settings(), folder)
    return folder


@pytest.fixture(scope="module")
def shards(whole: Path) -> Sequence[Path]:
    folders = [whole.with_name(f"shard-{number}") for number in (1, 2, 3)]
    for number, folder in enumerate(folders, 1):
        run_matrix_in(matrix_of(Portion((number, 3))), folder)
    return folders


def test_shards_merged_in_any_order_are_byte_for_byte_what_one_process_records(whole: Path, shards: Sequence[Path]) -> None:
    for number, parts in enumerate(permutations(shards)):
        target = whole.with_name(f"merged-{number}")
        ended, of = merge_parts(parts, target)
        assert_equal(whole, target)
        assert ended == of == len(lines_of(whole, TRIALS)) and verify(target).ending == "complete"
    left, right = load_run(whole), load_run(target)
    columns = [column for column in left.trials if column not in ("framework_seconds", "latency")]
    pd.testing.assert_frame_equal(left.trials[columns], right.trials[columns])
    [note] = right.notes
    assert note.startswith("This run was merged of 3 parts: shard-3 (")


def orchards() -> list[str]:
    return [scenario.instance for scenario in build_matrix(settings(), ROOTS, "code").scenarios.values()]


@pytest.mark.parametrize("by", ["instances", "plans", "repetitions"])
def test_parts_by_instance_plan_or_repetition_are_a_run_that_can_go_on(by: str, tmp_path: Path) -> None:
    whole = settings(plans=["none", "spoilt"]) if by == "plans" else settings()
    if by == "instances":
        portions = [matrix_of(scenarios=[f"orchard/{name}"]) for name in orchards()]
        whole = settings(scenarios=[f"orchard/{name}" for name in orchards()])
    elif by == "plans":
        portions = [matrix_of(plans=["none"]), matrix_of(plans=["spoilt"])]
    else:
        portions = [matrix_of(repetitions=1), matrix_of(Portion(first=2))]
    folders = [tmp_path / f"part-{number}" for number, _ in enumerate(portions)]
    for folder, matrix in zip(folders, portions, strict=True):
        run_matrix_in(matrix, folder)
    run(whole, tmp_path / "whole")
    merge_parts(folders, tmp_path / "merged")
    assert_equal(tmp_path / "whole", tmp_path / "merged")
    left, right = (read_manifest(tmp_path / name) for name in ("whole", "merged"))
    assert left.scenarios == right.scenarios and len(right.merged) == len(folders)
    assert len(run(whole, tmp_path / "merged")) == len(lines_of(tmp_path / "whole", TRIALS)), "nothing was missing"


def test_a_shard_that_is_left_out_is_run_when_the_merged_run_goes_on(whole: Path, shards: Sequence[Path]) -> None:
    target = whole.with_name("some")
    ended, of = merge_parts(shards[:2], target)
    assert 0 < ended < of and verify(target).ending == f"stopped: {of - ended} trials are missing"
    run(settings(), target)
    assert_equal(whole, target)


Change = Callable[[Path], object]


def with_manifest(**changed: Any) -> Change:
    return lambda folder: write_manifest(folder, read_manifest(folder).model_copy(update=changed))


def with_config(**changed: Any) -> Change:
    def change(folder: Path) -> None:
        manifest = read_manifest(folder)
        write_manifest(folder, manifest.model_copy(update={"config": manifest.config.model_copy(update=changed)}))

    return change


def with_cache(folder: Path) -> None:
    model = read_manifest(folder).models["small"].model_copy(update={"cache": True})
    with_manifest(models={"small": model})(folder)


def without_end(folder: Path) -> None:
    without(folder / TRIALS, lambda record: record["kind"] == "session" and record["what"] == "ended")


def with_a_damaged_line(folder: Path) -> None:
    content = (folder / TRIALS).read_bytes()
    (folder / TRIALS).write_bytes(content.replace(b'"outcome":"', b'"outcome": "', 1))


OTHERS: dict[str, tuple[Change, str]] = {
    "another seed": (with_config(seed=12), r"not parts of a single run: each has another config: seed is 11 and 12"),
    "another name": (with_config(name="mine"), r"each has another config: name is \"recorded\" and \"mine\""),
    "other code": (with_manifest(code=CodeVersion(digest="other")), "each has another version of the code of bench;"),
    "another architecture's code": (
        with_manifest(architectures={"static": "other"}),
        "each has another version of the architecture 'static';",
    ),
    "unguarded": (with_manifest(unguarded=("TCP",)), "each has another word on missing guards"),
    "cached apart": (
        with_cache,
        "both hold trials of .*, repetition .: 'small' gives equal requests",
    ),
    "no end": (without_end, "has no end: its last session began with .*; let its command go on to an end, then merge$"),
    "damaged": (with_a_damaged_line, "line 2 was changed.*; see `bench verify"),
    "graded anew": (lambda folder: regrade(folder, ROOTS), "was graded anew; merge the parts without grades.jsonl, then"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_no_part_of_a_single_run_is_refused_in_one_line_and_nothing_is_written(
    other: str, shards: Sequence[Path], tmp_path: Path
) -> None:
    change, words = OTHERS[other]
    parts = [copied(shard, tmp_path / shard.name) for shard in shards]
    for part in parts if change is with_cache else parts[1:2]:
        change(part)
    with pytest.raises(ResultsError, match=words) as refused:
        merge_parts(parts, tmp_path / "merged")
    assert "\n" not in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(part.name for part in parts)


def test_the_same_part_twice_is_refused_also_under_another_name(shards: Sequence[Path], tmp_path: Path) -> None:
    again = copied(shards[0], tmp_path / "again")
    with pytest.raises(ResultsError, match=r"shard-1 and .*again share \d+ trials; name each part once$"):
        merge_parts([*shards, again], tmp_path / "merged")


def test_a_run_that_exists_is_not_written_to(whole: Path, shards: Sequence[Path]) -> None:
    before = {path: path.read_bytes() for path in whole.iterdir()}
    with pytest.raises(ResultsError, match=r"whole: exists already; give another --name$"):
        merge_parts(shards, whole)
    assert {path: path.read_bytes() for path in whole.iterdir()} == before


def test_of_merges_of_one_name_at_once_one_writes_and_the_others_say_so_in_one_line(
    shards: Sequence[Path], tmp_path: Path
) -> None:
    def merge(_: int) -> str:
        try:
            return str(merge_parts(shards, tmp_path / "merged"))
        except ResultsError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(merge, range(4)))
    refusals = "another bench run is writing here|exists already|was renamed by another bench run|cannot be written"
    assert sum(end.startswith("(") for end in ends) == 1, ends
    assert all(re.search(refusals, end) and "\n" not in end for end in ends if not end.startswith("(")), ends
    assert verify(tmp_path / "merged").ending == "complete" and list(tmp_path.iterdir()) == [tmp_path / "merged"]


def test_a_merge_beside_one_that_writes_takes_nothing_from_it(shards: Sequence[Path], tmp_path: Path) -> None:
    half = tmp_path / ".merged.half"
    writer = RunWriter(half, read_manifest(shards[0]))
    with pytest.raises(ResultsError, match=r"\.merged\.half: another bench run is writing here; wait for it, or give --name$"):
        merge_parts(shards, tmp_path / "merged")
    assert (half / TRIALS).exists()
    writer.close()
    merge_parts(shards, tmp_path / "merged")  # what a killed merge left is in nobody's way
    assert list(tmp_path.iterdir()) == [tmp_path / "merged"]


def test_a_merge_that_another_one_overtook_says_so_and_leaves_it_alone(
    shards: Sequence[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(*_: object) -> None:
        copied(shards[0], tmp_path / "merged")

    monkeypatch.setattr("bench.run.experiment.merging._copy", overtaken)
    with pytest.raises(ResultsError, match=r"merged: exists already; give another --name$"):
        merge_parts(shards[:1], tmp_path / "merged")
    assert verify(tmp_path / "merged") == verify(shards[0]) and list(tmp_path.iterdir()) == [tmp_path / "merged"]


def test_a_merge_that_finds_no_room_leaves_nothing_and_its_parts_as_they_were(
    shards: Sequence[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(ResultsError, match="cannot be written: No space left on device; what"):
        patch.setattr("bench.record.files.os.write", full)
        merge_parts(shards, tmp_path / "merged")
    assert list(tmp_path.iterdir()) == [] and not any(verify(shard).defects for shard in shards)


def test_a_folder_holds_one_shard_and_no_other(shards: Sequence[Path]) -> None:
    with pytest.raises(ResultsError, match=r"portion of the trials: it was shard 1 of 3 and is shard 2 of 3; give --name$"):
        run_matrix_in(matrix_of(Portion((2, 3))), shards[0])


def test_every_trial_is_in_one_shard() -> None:
    shards = [Portion((number, 4)) for number in range(1, 5)]
    assert [sum(shard.holds(spec) for shard in shards) for spec in matrix_of().specs] == [1] * len(matrix_of().specs)


def test_a_shard_does_not_part_trials_that_are_to_be_given_the_same_replies() -> None:
    cached = config({"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "cache": True})
    with pytest.raises(ConfigError, match=r"^--shard: 'small' gives equal requests of all arms one reply \(cache = true\)"):
        restrict_to(build_matrix(cached, ROOTS, "code"), Portion((1, 2)))
    assert restrict_to(build_matrix(cached, ROOTS, "code"), Portion(first=2)).specs


def test_a_portion_without_any_trial_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^shard 1 of 999999, repetitions 2 to 4: none of the \d+ trials is in it"):
        matrix_of(Portion((1, 999_999), first=2))


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "1/1000000000", "a/b", "3-8", "1/3 "])
def test_a_shard_is_a_number_out_of_another(text: str) -> None:
    assert parse_shard("3/8") == (3, 8) and parse_shard(None) == (1, 1)
    with pytest.raises(ConfigError, match=r"^--shard .*: say which shard of how many, such as 3/8$"):
        parse_shard(text)


@pytest.mark.parametrize("text", ["0", "9-6", "x", "3/8", "1-", ""])
def test_repetitions_are_a_number_or_from_one_to_another(text: str) -> None:
    assert [parse_repetitions(text) for text in (None, "10", "6-10")] == [(1, None), (1, 10), (6, 10)]
    with pytest.raises(ConfigError, match=r"^--repetitions .*: say how many, such as 10, or from which to which, such as 6"):
        parse_repetitions(text)
