"""The entries of the published architectures and frameworks."""

from __future__ import annotations

from bench.record.described import Structure
from bench.record.formats import AnswerFormat
from bench.run.architectures.part import ArchitecturePart
from bench.run.architectures.registry import IN_WORDS


def _system(
    name: str, module: str, extra: str, *limits: str, formats: tuple[AnswerFormat, ...] = IN_WORDS, lineage: str = ""
) -> ArchitecturePart:
    """Return the entry of a framework or a published system.

    Its limits stand here, not in its module, so that they can be read even if its packages are missing.
    """
    path = f"bench.run.frameworks.{module}:{name}"
    return ArchitecturePart(
        name,
        path,
        makes_own_calls=True,
        answer_formats=formats,
        limits=limits,
        extra=extra,
        lineage=lineage,
        prepare="bench.run.frameworks.quiet:keep_quiet" if extra else "",
    )


ARCHITECTURES = (
    ArchitecturePart(
        "llm_compiler",
        "bench.run.frameworks.llm_compiler:llm_compiler",
        lineage="LLMCompiler, arXiv:2312.04511",
        structure=Structure(
            "a call by subtask, in the order of a model's plan", "at the end", "the plan and everything", "why"
        ),
    ),
    _system(
        *("mellea", "mellea", "mellea"),
        "requirements are words: the checks beyond the schema cannot be said in them, and a model judges each one",
        "what its judges let pass is handed on; the verifier sees it at the end only, where nothing is asked again",
        "the judges of one output are asked at once: which is answered first is open",
        formats=("json",),  # what its judges are told is about JSON
    ),
    _system(
        *("mellea_code", "mellea", "mellea"),
        "a finding against an earlier output reaches its repair as words behind the instruction, not as a requirement",
    ),
    _system(
        *("langgraph", "langgraph", "langgraph"),
        "the graph is a chain: what runs again after a rejection is a new chain, laid outside of LangGraph",
    ),
    _system(
        *("langgraph_retry", "langgraph", "langgraph"),
        "its edges know a rejection only: nothing is skipped, found too weak, or reopened by a later subtask",
    ),
    _system(
        *("langgraph_retry_same_words", "langgraph", "langgraph"),
        "as langgraph_retry, but a rejection is told in the words of our architectures, and at the same place of the prompt",
    ),
    _system(
        *("langgraph_retry_policy", "langgraph", "langgraph"),
        "RetryPolicy runs a node again as it was: no reason is told, and nothing is skipped or reopened",
    ),
    _system(
        *("dspy", "dspy", "dspy"),
        "Refine runs the whole program again; it cannot keep the subtasks that were right",
        "an output that DSPy cannot parse fails the run before there is a reward: Refine then tries again without advice",
        "DSPy repairs broken JSON before it reads it",
        "its advice is accounted for as judging",
        formats=("json",),  # its parser reads nothing else
    ),
    _system(
        *("dspy_by_module", "dspy", "dspy"),
        "one Refine around each subtask's Predict, for the rest as dspy; nothing is skipped, or reopened by a later subtask",
        formats=("json",),
    ),
    _system(
        *("reflexion", "reflexion", ""),
        "one call does the whole task: faults in what one subtask reads of another have nothing to strike",
        lineage="Reflexion, arXiv:2303.11366",
    ),
    _system(
        *("sre_agent_monolith", "sre_agent_monolith", ""),
        "one conversation does the whole task: faults in what one subtask reads of another have nothing to strike",
        "a pack's documents stand in the place of a cluster's logs and of a repository",
        lineage="fuzzylabs/sre-agent",
    ),
    _system(
        *("autogen_team", "autogen_team", "autogen"),
        "one conversation does the whole task: faults in what one subtask reads of another have nothing to strike",
        "its reviewer's words are accounted for as judging",
    ),
    _system(
        *("autogen_graph", "autogen_graph", "autogen"),
        "AutoGen passes the outputs on itself: faults in what is read strike documents only, and only once a trial",
        "prompts are fixed when the agents are made: outputs that are read follow behind the form of the answer",
    ),
)
