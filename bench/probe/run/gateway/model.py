"""The door of the model: a proxy before a provider, or before a script that the owner runs in place of a provider.

It reads the APIs Chat Completions, Responses and Anthropic's Messages. A request keeps the API key that the agent sent. A
request without a key gets the owner's from `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`. No value of the owner's environment is
sent as a key to an address that only the probe's file names. The key is removed from everything that is recorded. Tokens are
counted by `bench.common.tokens`: `LiveCall.door_state` has `tokens_in` and `tokens_out`.
"""

from __future__ import annotations

import os
from dataclasses import replace

from bench.common.errors import ConfigError
from bench.common.tokens import count_tokens
from bench.probe.points import AnswerAction, CallAction
from bench.probe.run.gateway.bodies import Body, json_of
from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import CallGate, DoorContext, LiveCall
from bench.probe.run.gateway.http import HttpDoor, to_json_bytes
from bench.probe.run.gateway.http_exchange import ServiceAnswer, ServiceRequest
from bench.probe.run.gateway.http_wire import make_head
from bench.probe.run.gateway.replies import ModelApi, ModelReply, api_of, cut_stream, fields_in, texts_in
from bench.probe.run.gateway.server_sent import events_of, with_data
from bench.probe.run.gateway.subject import ModelSource
from bench.wire.blotting import MIN_KEY_CHARS, blot

MAX_REPLY_BYTES = 16 * 2**20
"""The longest request and the longest reply that is parsed."""
RETRY_AFTER_S = 1
"""The value of `Retry-After` in the reply to a rate-limited request."""
KEY_FIELDS = ("x-api-key", "api-key")
MAX_END_MARK_BYTES = 64
"""The longest text that marks the end of a stream."""


class ModelDoor(HttpDoor):
    """A proxy before the model. A request for something other than a reply, such as the list of models, is forwarded and is
    no call."""

    kind = "model"
    max_parsed_bytes = MAX_REPLY_BYTES

    def __init__(self, name: str, source: ModelSource, context: DoorContext):
        if not source.url:
            raise ConfigError(f"{name}: no address is known; write the provider's as url, or a script that serves one")
        super().__init__(name, source.url, context)
        self._suffix, self._path = source.suffix.rstrip("/").encode(), self.origin.path.rstrip("/").encode()
        self._family = "ANTHROPIC" if source.dialect == "anthropic" else "OPENAI"
        if source.stands_for:
            self.places += HttpDoor(name, source.stands_for, context).places
        self._trusted, self._is_script = source.trusted, bool(source.script)

    def set_address(self, root: str, prefix: str) -> str:
        """Store the gateway's address, and return the address for the agent, which ends with the source's suffix."""
        super().set_address(root, prefix)
        return f"{root}{prefix}{self._suffix.decode()}"

    def _target_at_server(self, target: bytes) -> bytes:
        """Return the request target for the provider: the provider's path replaces the suffix."""
        if not self.prefix or (self._suffix and not target.startswith(self._suffix)):
            return super()._target_at_server(target)
        return super()._target_at_server(self._path + target[len(self._suffix) :])

    async def _serve(self, request: ServiceRequest) -> bool:
        """Forward a request with its key. A request for a reply is a call, and any other request is not. Return whether the
        connection remains open."""
        request = self._with_key(request)
        if request.head.method == "POST" and api_of(request.path):
            return await super()._serve(request)
        body, call = Body(), LiveCall(0, self.name, "model", request.path, None)
        try:
            return await self._relay(OPEN_GATE, call, request, "pass", body)
        finally:
            body.close()

    def _with_key(self, request: ServiceRequest) -> ServiceRequest:
        """Return the request with the owner's key if it has none, and without a key of the owner's if the address is not
        trusted."""
        sent_words = list[str]()
        for name in ("authorization", *KEY_FIELDS):
            sent_words += " ".join(request.head.values(name)).split()
        key = os.environ.get(f"{self._family}_API_KEY", "")
        environment_values = {value for value in os.environ.values() if len(value) >= MIN_KEY_CHARS}
        # the agent's key may go to the address: the address is trusted, or the key is not from the owner's environment
        has_own_key = sent_words and (self._trusted or environment_values.isdisjoint(sent_words))
        if self._is_script or has_own_key or not (sent_words or key):
            return request
        if not self._trusted:
            self._notice(
                f"no key of your environment goes to {self.origin.root}, which the probe's file names; "
                f"if that address may have it, set {self._family}_BASE_URL to it in your shell"
            )
            return replace(request, head=request.head.without("authorization", *KEY_FIELDS))
        fields = {"x-api-key": key} if self._family == "ANTHROPIC" else {"authorization": f"Bearer {key}"}
        return replace(request, head=request.head.with_fields(fields))

    def call_of(self, request: ServiceRequest) -> LiveCall:
        """Return the call for a request to the model, without its API key."""
        text = request.body.plain(request.head.get("content-encoding"))
        body = json_of(blot(text.decode(errors="replace"), _key_in(request))) if text else None
        arguments = request.body.digest if body is None else body
        return self._context.call(self.name, self.kind, request.path, arguments, reads=True)

    def _is_end_of_stream(self, call: LiveCall, body: Body, data: bytes) -> bool:
        """Return whether the last bytes of a stream have the mark that ends a reply."""
        api = api_of(call.tool)
        return bool(api and api.end.search(body.last(len(data) + MAX_END_MARK_BYTES)))

    def _record_answer(self, call: LiveCall, request: ServiceRequest, answer: ServiceAnswer) -> None:
        """Record the model's reply with the call, without the API key, and count the tokens of the request and of the
        reply."""
        super()._record_answer(call, request, answer)
        if not (api := api_of(call.tool)) or not answer.body.length or (plain := answer.plain) is None:
            return
        text = blot(plain.decode(errors="replace"), _key_in(request)).encode()
        reply_body = api.join(fields_in(events_of(text))) if answer.is_stream else json_of(text)
        reply = api.read(reply_body) if isinstance(reply_body, dict) and not call.failed else ModelReply()
        call.answer = {"status": answer.head.status, "body": json_of(text)} if call.failed else reply.value
        request_body = call.arguments if isinstance(call.arguments, dict) else {}
        prompt_texts = (text for name in api.prompt_fields for text in texts_in(request_body.get(name)))
        call.door_state["tokens_in"] = sum(map(count_tokens, prompt_texts))
        call.door_state["tokens_out"] = sum(map(count_tokens, reply.texts))

    def _error_answer(self, call: LiveCall, action: CallAction) -> bytes:
        """Return the reply that the gateway gives for `malformed`, `rate_limit` or `error`, in the form of the call's API."""
        api, fields = _api(call), {"Content-Type": "application/json"}
        streams = isinstance(call.arguments, dict) and call.arguments.get("stream") is True
        if action == "malformed":
            body, status = b'{"id": "reply-1", "object": "chat.completion", "choi', "200 OK"
            if streams:
                body, fields["Content-Type"] = b"data: " + body + b"\n\n", "text/event-stream"
        elif action == "rate_limit":
            body, status = to_json_bytes(api.error("rate_limit_error", "Rate limit reached.")), "429 Too Many Requests"
            fields["Retry-After"] = str(RETRY_AFTER_S)
        else:
            body, status = to_json_bytes(api.error("api_error", "The service is not available.")), "503 Service Unavailable"
        return make_head(f"HTTP/1.1 {status}", {**fields, "Content-Length": str(len(body))}).raw + body

    def _damaged_answer(
        self, action: AnswerAction, call: LiveCall, request: ServiceRequest, answer: ServiceAnswer
    ) -> bytes | None:
        """Return the bytes that replace a reply; for `cut_off` a reply that ends in the middle."""
        if action != "cut_off" or answer.head.status != 200 or (plain := answer.plain) is None:
            return super()._damaged_answer(action, call, request, answer)
        api = _api(call)
        if answer.is_stream:
            events = cut_stream(api, events_of(plain))
            content = b"".join(event if data is None else with_data(event, to_json_bytes(data)) for event, data in events)
            return answer.with_content(content.replace(b"event: response.completed\n", b"event: response.incomplete\n"))
        reply = json_of(plain)
        return answer.with_content(to_json_bytes(api.cut(reply))) if isinstance(reply, dict) else None


OPEN_GATE = CallGate()
"""The gate of requests that are no calls: it forwards each."""


def _api(call: LiveCall) -> ModelApi:
    """Return the API of a call to the model."""
    api = api_of(call.tool)
    assert api
    return api


def _key_in(request: ServiceRequest) -> str:
    """Return the API key in a request; "" if there is none."""
    scheme, _, token = request.head.get("authorization").partition(" ")
    keys = (request.head.get(name) for name in KEY_FIELDS)
    return token.strip() if scheme.lower() == "bearer" else next(filter(None, keys), "")


KIND = DoorKind("model")
