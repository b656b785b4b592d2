"""Gives back each tensor it gets; version 2 gives numbers back doubled."""

import os
import sys

# Triton sets the stub's own PYTHONPATH.
sys.path.insert(0, os.environ["ENGINE_PACKAGES"])

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.factor = int(args["model_version"])

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        outputs = []
        for name in ("f32", "fp16", "text"):
            tensor = pb_utils.get_input_tensor_by_name(request, name)
            if tensor is None:
                continue
            values = tensor.as_numpy()
            if name != "text":
                values = values * values.dtype.type(self.factor)
            outputs.append(pb_utils.Tensor(name + "_out", values))
        if not outputs:
            error = pb_utils.TritonError("no tensor to give back", pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=error)
        return pb_utils.InferenceResponse(outputs)
