"""Adds up what a sequence has sent so far."""

import os
import sys

# Triton sets the stub's own PYTHONPATH.
sys.path.insert(0, os.environ["ENGINE_PACKAGES"])

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        start = pb_utils.get_input_tensor_by_name(request, "START").as_numpy()
        sequence = pb_utils.get_input_tensor_by_name(request, "CORRID").as_numpy()
        key = int(sequence.flat[0])
        before = 0 if start.flat[0] else self.sums.get(key, 0)
        self.sums[key] = x + before
        return pb_utils.InferenceResponse([pb_utils.Tensor("sum", self.sums[key])])
