"""A session at the measuring endpoint: a framework, or an agent of any kind, makes the calls for some subtasks itself.

It has its own prompts, checks and retries. The session gives it addresses and our prompts, answers its requests
(`bench.run.trial.answering`), and makes proposals of its outputs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Self

from bench.record.messages import Message
from bench.run.trial.answering import Answering
from bench.run.trial.prompt import Prompt, prompt_of
from bench.run.trial.proposal import Proposal
from bench.run.trial.trial import Server
from bench.run.trial.verification import Rejected
from bench.scenario import Subtask
from bench.task import names_of

PARALLEL = "X-Bench-Parallel"
"""The header in which a client says how many calls, this one included, it makes together."""


class EndpointSession(Answering):
    """One proposer's session. Its addresses end in /v1, as OpenAI's clients expect of a `base_url`.

    root       the address of its server; `api_key` is the API key that a client gives there
    """

    root, api_key = "", "none"

    def base_url(self, *subtasks: Subtask) -> str:
        """Return the address for calls that ask for the outputs of these subtasks.

        Args:
            subtasks: The subtasks; all of the session's if none is named.

        Returns:
            The base URL, which ends in `/v1`.
        """
        names = "+".join(subtask.name for subtask in subtasks)
        return f"{self.root}/{names}/v1" if names else f"{self.root}/v1"

    def messages(
        self, *subtasks: Subtask, documents_alone: bool = False, repair: Rejected | None = None
    ) -> tuple[Message, ...]:
        """Return the messages of our own prompt for these subtasks, system and user.

        Args:
            subtasks: The subtasks; all of the session's if none is named.
            documents_alone: As in `prompt`.
            repair: As in `prompt`.

        Returns:
            The messages.

        Raises:
            RuntimeError: As in `prompt`.
        """
        return self.prompt(*subtasks, documents_alone=documents_alone, repair=repair).messages

    def prompt(self, *subtasks: Subtask, documents_alone: bool = False, repair: Rejected | None = None) -> Prompt:
        """Return our own prompt for these subtasks in the present state.

        Ask for it once an attempt: faults in inputs strike here.

        Args:
            subtasks: The subtasks; all of the session's if none is named.
            documents_alone: Leave out other subtasks' outputs, if the framework passes them on itself.
            repair: The rejection that is told in our words, as the repair setting says; None if the framework tells it.

        Returns:
            The prompt.

        Raises:
            RuntimeError: Something that they read is not there yet.
        """
        trial, chosen = self._trial, subtasks or self.subtasks
        sources = trial.state.sources(chosen) if documents_alone else trial.sources(chosen)
        if documents_alone:
            sources = tuple(source for source in sources if not source.version)
        inputs = {source.name: trial.state.text_of(source) for source in sources}
        names = names_of(chosen)
        inputs, self._read[names] = trial.injection.read(chosen, inputs, trial.causes.attempts(names) + 1)
        return prompt_of(trial.task, chosen, inputs, repair, trial.settings.repair, self.answer_format)

    def proposal(self, text: str, *subtasks: Subtask) -> Proposal:
        """Return what the framework made of its replies, as a proposal.

        Args:
            text: The text that the framework returned.
            subtasks: The subtasks that it is for; all of the session's if none is named.

        Returns:
            The proposal, neither verified nor written.

        Raises:
            RuntimeError: No reply came for these subtasks.
        """
        chosen = subtasks or self.subtasks
        self._trial.injection.settle(chosen)
        return self._turns.proposal(text, chosen)

    async def submit(self, outputs: Mapping[str, str]) -> AsyncIterator[Proposal]:
        """Yield an agent's answer as proposals; commit each before the next is asked for.

        The agent judged by itself: its replies without a verdict are verified in shadow.

        Args:
            outputs: Text by subtask; empty if the agent gives up.

        Yields:
            A proposal for each subtask, in the task's order.

        Raises:
            GaveUp: The agent handed in nothing.
            RuntimeError: A subtask had no reply.
        """
        known = {subtask.name: subtask for subtask in self.subtasks if subtask.name in outputs}
        kept = {name: self._turns.parts(outputs[name], [subtask])[name] for name, subtask in known.items()}
        for subtask in self.subtasks:
            if self._judged:
                await self._foresee([subtask])
                self._turns.judge_rest(subtask, kept)
            if subtask.name in known:
                yield self.proposal(outputs[subtask.name], subtask)

    def answered(self, name: str) -> bool:
        """Tell whether any reply came from which this subtask's output can have been made.

        Args:
            name: The subtask's name.

        Returns:
            True if one did.
        """
        return self._turns.answered(name)

    def attempts(self) -> dict[str, int]:
        """Return how many attempts there were.

        Returns:
            The number of attempts by the subtask's name.
        """
        return {subtask.name: self._trial.causes.attempts(names_of([subtask])) for subtask in self.subtasks}

    @asynccontextmanager
    async def served(self, server: Server | None = None) -> AsyncIterator[Self]:
        """Serve the session over HTTP until the block has ended.

        Args:
            server: Serves it instead of the trial's server.

        Yields:
            The session.

        Raises:
            GaveUp: The block raised after an injected failure of the session's last call.
            CallFailed: The block raised after the session's last call had failed.
        """
        try:
            async with (server or self._trial.server)(self) as self.root:
                with self._caller.elsewhere():
                    yield self
        except Exception as error:
            self.explain(error)
            raise
        self.check()
