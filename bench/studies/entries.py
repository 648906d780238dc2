"""The entries of this wing that have no module beside their code: its studies, its claims and its commands."""

from bench.cli.command_part import CommandPart
from bench.read.report.claims_part import ClaimsPart
from bench.read.report.studies import StudyPart

FORMER = {"repair_policies": "policy"}
"""Name of a study -> its name in earlier versions."""
STUDIES = tuple(
    StudyPart(name, f"bench.studies.{name}", former=FORMER.get(name, ""))
    for name in (
        "break_even",
        "detectability",
        "validators",
        "depth",
        "context",
        "repair",
        "repair_policies",
        "exactly_once",
        "judgment_bank",
        "repair_bank",
        "boundary",
        "momentum",
        "pattern_failure",
        "replay_divergence",
        "log_or_row",
        "model_exchange",
        "approval",
        "learning",
        "answer_format",
        "humaneval",
        "reliability_surface",
        "sizes",
        "retesting",
        "patching",
    )
)
CLAIMS = ClaimsPart("claims", "bench.read.claims.judging")
COMMANDS = (
    *(CommandPart(name, f"bench.cli.commands.counterfactual:{name}") for name in ("shrink", "search")),
    *(CommandPart(name, f"bench.rerun.{name}_command:{name}") for name in ("diagnose", "diverge")),
    CommandPart("advise", "bench.cli.commands.advise:advise"),
    CommandPart("learn", "bench.cli.commands.learn:learn"),
)
