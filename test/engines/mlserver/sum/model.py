"""Adds up a tensor."""

import numpy
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class SumModel(MLModel):
    async def load(self) -> bool:
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        x = NumpyCodec.decode_input(payload.inputs[0])
        y = NumpyCodec.encode_output("y", numpy.array([x.sum()], dtype=numpy.float32))
        return InferenceResponse(model_name=self.name, model_version=self.version, id=payload.id, outputs=[y])
