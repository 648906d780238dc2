"""The proxy before the model: before a provider, or before a script in the provider's place.

It speaks Chat Completions, Responses and Anthropic's Messages. The key is the one that the agent sends; a request without any
gets the owner's from `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`. A value of the owner's environment goes as a key to no address
that only the probe's file names. The key is blotted out of all that is kept.
Tokens are counted by `bench.common.tokens`: `LiveCall.kept` has `tokens_in` and `tokens_out`.
"""

from __future__ import annotations

import os
from dataclasses import replace

from bench.common.errors import ConfigError
from bench.common.tokens import count_tokens
from bench.probe.points import AnswerFate, CallFate
from bench.probe.run.gateway.bodies import Body, json_of
from bench.probe.run.gateway.door_kinds import DoorKind
from bench.probe.run.gateway.gate import CallGate, Desk, LiveCall
from bench.probe.run.gateway.http import HttpDoor, ServiceAnswer, ServiceRequest, as_json
from bench.probe.run.gateway.http_wire import made_head
from bench.probe.run.gateway.replies import ModelApi, ModelReply, api_of, cut_stream, fields_in, texts_in
from bench.probe.run.gateway.server_sent import events_of, with_data
from bench.probe.run.gateway.subject import ModelSource
from bench.wire.blotting import SHORTEST, blot

LARGEST_REPLY = 16 * 2**20
"""Bytes of the longest request, and of the longest reply, that is read."""
RETRY_AFTER = 1
"""Seconds after which the agent may ask again, as a rate limit says."""
KEYS = ("x-api-key", "api-key")
LONGEST_MARK = 64
"""Bytes in which the mark of a stream's end lies."""


class ModelDoor(HttpDoor):
    """A proxy before the model. A request for something other than a reply, such as the list of models, is passed on and is no
    call."""

    kind = "model"
    longest = LARGEST_REPLY

    def __init__(self, name: str, source: ModelSource, desk: Desk):
        if not source.url:
            raise ConfigError(f"{name}: no address is known; write the provider's as url, or a script that serves one")
        super().__init__(name, source.url, desk)
        self._suffix, self._path = source.suffix.rstrip("/").encode(), self.origin.path.rstrip("/").encode()
        self._family = "ANTHROPIC" if source.dialect == "anthropic" else "OPENAI"
        if source.stands_for:
            self.places += HttpDoor(name, source.stands_for, desk).places
        self._trusted, self._is_script = source.trusted, bool(source.script)

    def listens(self, root: str, prefix: str) -> str:
        super().listens(root, prefix)
        return f"{root}{prefix}{self._suffix.decode()}"

    def _target(self, asked: bytes) -> bytes:
        if not self.prefix or (self._suffix and not asked.startswith(self._suffix)):
            return super()._target(asked)
        return super()._target(self._path + asked[len(self._suffix) :])

    async def _serve(self, request: ServiceRequest) -> bool:
        request = self._with_key(request)
        if request.head.method == "POST" and api_of(request.path):
            return await super()._serve(request)
        body, call = Body(), LiveCall(0, self.name, "model", request.path, None)
        try:
            return await self._relay(OPEN, call, request, "pass", body)
        finally:
            body.close()

    def _with_key(self, request: ServiceRequest) -> ServiceRequest:
        """Return the request with the owner's key if it has none. To an untrusted address no key of the owner's goes."""
        sent = [word for name in ("authorization", *KEYS) for value in request.head.values(name) for word in value.split()]
        key = os.environ.get(f"{self._family}_API_KEY", "")
        values = {value for value in os.environ.values() if len(value) >= SHORTEST}
        if self._is_script or (sent and (self._trusted or values.isdisjoint(sent))) or not (sent or key):
            return request
        if not self._trusted:
            self._notice(
                f"no key of your environment goes to {self.origin.root}, which the probe's file names; "
                f"if that address may have it, set {self._family}_BASE_URL to it in your shell"
            )
            return replace(request, head=request.head.without("authorization", *KEYS))
        fields = {"x-api-key": key} if self._family == "ANTHROPIC" else {"authorization": f"Bearer {key}"}
        return replace(request, head=request.head.having(fields))

    def call_of(self, request: ServiceRequest) -> LiveCall:
        text = request.body.plain(request.head.get("content-encoding"))
        asked = json_of(blot(text.decode(errors="replace"), _key(request))) if text else None
        arguments = request.body.digest if asked is None else asked
        return self._desk.call(self.name, self.kind, request.path, arguments, reads=True)

    def _is_end(self, call: LiveCall, body: Body, data: bytes) -> bool:
        api = api_of(call.tool)
        return bool(api and api.end.search(body.last(len(data) + LONGEST_MARK)))

    def _read(self, call: LiveCall, request: ServiceRequest, answer: ServiceAnswer) -> None:
        super()._read(call, request, answer)
        if not (api := api_of(call.tool)) or not answer.body.length or (plain := answer.plain) is None:
            return
        text = blot(plain.decode(errors="replace"), _key(request)).encode()
        whole = api.joined(fields_in(events_of(text))) if answer.is_stream else json_of(text)
        reply = api.read(whole) if isinstance(whole, dict) and not call.failed else ModelReply()
        call.answer = {"status": answer.head.status, "body": json_of(text)} if call.failed else reply.value
        asked = call.arguments if isinstance(call.arguments, dict) else {}
        call.kept["tokens_in"] = sum(count_tokens(part) for name in api.asked for part in texts_in(asked.get(name)))
        call.kept["tokens_out"] = sum(map(count_tokens, reply.texts))

    def _refusal(self, call: LiveCall, before: CallFate) -> bytes:
        api, fields = _api(call), {"Content-Type": "application/json"}
        streams = isinstance(call.arguments, dict) and call.arguments.get("stream") is True
        if before == "malformed":
            text, first = b'{"id": "reply-1", "object": "chat.completion", "choi', "HTTP/1.1 200 OK"
            if streams:
                text, fields["Content-Type"] = b"data: " + text + b"\n\n", "text/event-stream"
        elif before == "rate_limit":
            text, first = as_json(api.error("rate_limit_error", "Rate limit reached.")), "HTTP/1.1 429 Too Many Requests"
            fields["Retry-After"] = str(RETRY_AFTER)
        else:
            text = as_json(api.error("api_error", "The service is not available."))
            first = "HTTP/1.1 503 Service Unavailable"
        return made_head(first, {**fields, "Content-Length": str(len(text))}).raw + text

    def _damage(self, after: AnswerFate, call: LiveCall, request: ServiceRequest, answer: ServiceAnswer) -> bytes | None:
        if after != "cut_off" or answer.head.status != 200 or (plain := answer.plain) is None:
            return super()._damage(after, call, request, answer)
        api = _api(call)
        if answer.is_stream:
            cut = cut_stream(api, events_of(plain))
            content = b"".join(event if data is None else with_data(event, as_json(data)) for event, data in cut)
            return answer.with_content(content.replace(b"event: response.completed\n", b"event: response.incomplete\n"))
        reply = json_of(plain)
        return answer.with_content(as_json(api.cut(reply))) if isinstance(reply, dict) else None


OPEN = CallGate()
"""Serves requests that are no calls."""


def _api(call: LiveCall) -> ModelApi:
    api = api_of(call.tool)
    assert api
    return api


def _key(request: ServiceRequest) -> str:
    """Return the API key in a request; "" if there is none."""
    scheme, _, token = request.head.get("authorization").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else next((key for name in KEYS if (key := request.head.get(name))), "")


KIND = DoorKind("model")
