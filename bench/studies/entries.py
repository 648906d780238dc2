"""The entries of the studies."""

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
