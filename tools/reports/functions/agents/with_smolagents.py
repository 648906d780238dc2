"""smolagents' agent that calls tools by JSON. It shows a model what was done as text, so the script is a model of its own."""

from typing import Any

from shop import TASK, look, mail, refund
from smolagents import ChatMessage, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

CALLS = [
    ("look", {"order": "o-17"}),
    ("refund", {"order": "o-17", "cents": 4500}),
    ("mail", {"recipient": "ada@example.com", "text": "Your money is on its way."}),
    ("final_answer", {"answer": "Done."}),
]


class Script(Model):
    """Asks for the next call, again where it failed, and gives up after three failures."""

    def generate(self, messages: list[ChatMessage], **_: Any) -> ChatMessage:
        """Return the reply to a conversation."""
        heard = [message for message in messages if message.role != MessageRole.SYSTEM]
        texts = [part["text"] for message in heard if isinstance(message.content, list) for part in message.content]
        done, failed = sum("Observation:" in text for text in texts), sum("Error:\n" in text for text in texts)
        name, arguments = CALLS[done] if failed < 3 else ("final_answer", {"answer": "I give up."})
        call = ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), f"call_{len(texts)}", "function")
        return ChatMessage(MessageRole.ASSISTANT, "", tool_calls=[call])


agent = ToolCallingAgent(tools=[tool(look), tool(refund), tool(mail)], model=Script(), max_steps=12)
print(agent.run(TASK))
