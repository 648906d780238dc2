"""The wing of studies: for each question beyond the paper one file, with its analysis and its view, and an entry of OURS; what
was published, and what a run's data says of it, in `claims`."""

from bench.report.studies import StudyPart

FORMER = {"repair_policies": "policy"}
"""Name of a study -> its name in earlier versions."""
OURS = tuple(
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
        "learning",
        "answer_format",
        "humaneval",
        "reliability_surface",
        "sizes",
    )
)
