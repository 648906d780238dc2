"""Scenario packs: where they lie, how one is loaded, and what is refused.

    scenarios/<pack>/
      scenario.py               scenario(folder: PackFolder) -> Scenario, and VARIANTS = ("paper", ...) where there are several;
                                it may import its siblings (`from .grader import grade`)
      variants*.py              added variants, with VARIANTS and scenario(folder) of their own: the others ask what they did
      grader.py, baseline.py    what only grades: an edit here makes no recorded trial worthless
      documents/NAME            what a model can see
      prompts/role.md           the system message
      prompts/<subtask>.md      the instructions of one subtask
      reference/answer.json         {subtask: output}: an answer that solves it
      reference/wrong/<name>.json   {"why": "...", "outputs": {subtask: output}}: put in the reference's place there, these
                                    outputs make an answer that must be refused
      reference/truth/              what the grader alone reads

A pack of many tasks defines `instances(folder) -> Sequence[str]` and `scenario(folder, instance)`. Where they cannot be had,
since data or a package is missing, `instances` raises `bench.errors.Unavailable` and says what to fetch.
What differs by variant or by instance lies one folder deeper: `documents/<variant>/`, `documents/<instance>/` or
`documents/<variant>/<instance>/`, and likewise below `reference/`. A pack may also make any of it in code, without files: see
`PackFolder.scenario`.
"""

from __future__ import annotations

from bench.packs.folder import PackFolder
from bench.packs.loading import find_packs, instances_of, lacks, load_instances, load_pack, variants_of

__all__ = ["PackFolder", "find_packs", "instances_of", "lacks", "load_instances", "load_pack", "variants_of"]
