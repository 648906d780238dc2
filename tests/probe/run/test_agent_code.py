"""What the text of a program says of it."""

from __future__ import annotations

import pytest

from bench.probe.run.agent_code import reads_arguments


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("import sys\nprint(sys.argv[1])", True),
        ("parser = argparse.ArgumentParser()", True),
        ("const [path] = process.argv.slice(2)", True),
        ('exec agent "$1"', True),
        ("path := os.Args[1]", True),
        ("print(open('.mcp.json').read())", False),
        ("arguments = {'argvs': 1}", False),
    ],
)
def test_who_reads_the_words_of_its_command_is_told_by_what_stands_in_it(text: str, reads: bool) -> None:
    assert reads_arguments(text) is reads
