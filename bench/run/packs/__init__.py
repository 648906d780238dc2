"""Scenario packs: find a pack, load it, and refuse unusable packs.

    scenarios/<pack>/
      scenario.py               scenario(folder: PackFolder) -> Scenario, and VARIANTS = ("paper", ...) if there are several;
                                it may import its siblings (`from .grader import grade`)
      variants*.py              added variants, with their VARIANTS and scenario(folder): the other variants stay the same
      grader.py, baseline.py    code that only grades: an edit here makes no recorded trial worthless
      documents/NAME            what a model can see
      prompts/role.md           the system message
      prompts/<subtask>.md      the instructions of one subtask
      reference/answer.json         {subtask: output}: an answer that solves it
      reference/wrong/<name>.json   {"why": "...", "outputs": {subtask: output}}: in place of the reference's outputs, these
                                    make an answer that must be refused
      reference/truth/              files that only the grader reads

A pack of many tasks defines `instances(folder) -> Sequence[str]` and `scenario(folder, instance)`. If its data or a package is
missing, `instances` raises `bench.common.errors.Unavailable` and says what to fetch.
Files that differ by variant or by instance lie one folder deeper: `documents/<variant>/`, `documents/<instance>/` or
`documents/<variant>/<instance>/`, and likewise below `reference/`. A pack can also make any of it in code, without files: see
`PackFolder.scenario`.
"""

from __future__ import annotations

from bench.common.packs import find_packs
from bench.run.packs.folder import PackFolder
from bench.run.packs.loading import instances_of, load_instances, load_pack, missing_data, variants_of

__all__ = ["PackFolder", "find_packs", "instances_of", "load_instances", "load_pack", "missing_data", "variants_of"]
