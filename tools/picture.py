"""Draw the lines in which a probe's terminal ends. README's: `python tools/picture.py docs/pictures/bill_agent-probe.zip
docs/pictures/probe.svg`."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from bench.probe.read.run import EXIT_CODES, read_probe
from bench.probe.read.sentences import summary_lines

WIDTH = 104
FORMAT = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""
"""Rich's own form loads a font from the network; a picture in a document loads nothing."""


def picture_of(run: Path) -> str:
    """Return the last lines of a probe's terminal as SVG.

    Args:
        run: The probe's folder under results/, or its archive.

    Returns:
        The picture, with the page's name in the place where the command writes it.

    Raises:
        ResultsError: If there is no probe that can be read.
    """
    probe = read_probe(run)
    shown = Console(record=True, width=WIDTH, file=StringIO(), highlight=False, markup=False)
    shown.print(Text("$ bench probe", style="bold"))
    page, code = f"reports/{probe.folder.name}/probe.html", EXIT_CODES[probe.conclusion]
    for number, line in enumerate(summary_lines(probe, page, code)):
        shown.print(Text(line, style="" if number else "bold red" if probe.damaged_cells else "bold"))
    return shown.export_svg(title=probe.folder.name, theme=MONOKAI, code_format=FORMAT, unique_id="probe")


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(picture_of(Path(sys.argv[1]).with_suffix("")), encoding="utf-8")
