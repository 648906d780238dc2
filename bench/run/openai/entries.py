"""The entry of models behind an endpoint, and the keys of their table in a config."""

from typing import Literal

from bench.record.formats import AnswerFormat
from bench.run.models.model_part import BaseModelEntry, ModelPart
from bench.run.openai.settings import OpenAISettings


class OpenAIEntry(OpenAISettings, BaseModelEntry):
    kind: Literal["openai"]

    def misfit(self, answer_format: AnswerFormat) -> str:
        """Return why `response_format` does not fit the answer format, in which the endpoint would get no schema; "" if it
        fits."""
        if not self.response_format or answer_format == "schema":
            return ""
        problem = "response_format says how an endpoint is told to hold a model to the schema"
        return f'{problem}; add answer_format = "schema", or leave it out'


MODELS = ModelPart("openai", OpenAIEntry, "bench.run.openai.model:make_model")
