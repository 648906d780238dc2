"""What came of each cell of an agent whose tools are functions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FunctionCell:
    """A cell: what the probe says, and what our own SQL counted in the copy: refunds, their cents, mails."""

    framework: str
    version: str
    store: str
    cell: str
    verdict: str
    refunds: int
    cents: str
    mails: int
    said_done: bool

    @property
    def differs(self) -> bool:
        """Whether the verdict is another than these counts say."""
        if max(self.refunds, self.mails) > 1:
            expected = "doubled"
        elif min(self.refunds, self.mails) < 1:
            expected = "lost" if self.said_done else "gave_up"
        else:
            expected = "same"
        return self.verdict != expected


@dataclass(frozen=True)
class ClientRows:
    """A client with an `sslmode`: how many lines it printed at the copy, whether they were the same through the
    door, the calls there, and the milliseconds of the processor that the door took for a call."""

    client: str
    mode: str
    lines: int
    equal: bool
    calls: int
    milliseconds: float


@dataclass(frozen=True)
class PublicReport:
    """What others report of a framework, and the release that mends it."""

    repository: str
    number: int
    mended: str

    @property
    def name(self) -> str:
        return f"{self.repository.rpartition('/')[2]}#{self.number}"

    @property
    def url(self) -> str:
        return f"https://github.com/{self.repository}/issues/{self.number}"


NOT_YET = "not in the release tried"
REPORTS = {
    "crewai_7449": PublicReport("crewAIInc/crewAI", 7449, NOT_YET),
    "agent_framework_3938": PublicReport("microsoft/agent-framework", 3938, NOT_YET),
    "openai_agents_4244": PublicReport(
        "openai/openai-agents-python", 4244, "in 0.20.0: it pays once; 0.19.4 asks again and never pays. A kill still doubles"
    ),
    "agno_10366": PublicReport("agno-agi/agno", 10366, NOT_YET),
    "autogen_6207": PublicReport(
        "microsoft/autogen", 6207, "asks for the loop, which is there; what it repeats, not in the release tried"
    ),
    "langgraph_7417": PublicReport("langchain-ai/langgraph", 7417, "the queue is of the platform: no release of the package"),
}
"""By the agents that do what is reported. A release is the first of the package that no longer does it."""
