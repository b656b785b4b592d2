"""tritonclient against ADDRESS (host:port), routes `echo` and `sums`; prints what it saw as one line of JSON."""

import json
import sys

import numpy
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

client = triton.InferenceServerClient(sys.argv[1], concurrency=2)
seen = {
    "live": client.is_server_live(),
    "ready": client.is_server_ready(),
    "model_ready": client.is_model_ready("echo"),
    "unknown_ready": client.is_model_ready("nowhere"),
    "extensions": client.get_server_metadata()["extensions"],
    "metadata": client.get_model_metadata("echo")["inputs"][0],
    "versions": client.get_model_metadata("echo")["versions"],
}


def tensor(name, array, kind, binary=True):
    made = triton.InferInput(name, list(array.shape), kind)
    made.set_data_from_numpy(array, binary_data=binary)
    return made


def infer(inputs, outputs, model="echo", **more):
    wanted = [triton.InferRequestedOutput(name, binary_data=binary) for name, binary in outputs]
    return client.infer(model, inputs, outputs=wanted, **more)


floats = numpy.array([[1.5, -2.0]], dtype=numpy.float32)
for form, binary in (("binary", True), ("json", False)):
    result = infer([tensor("f32", floats, "FP32", binary)], [("f32_out", binary)], request_id="r-" + form)
    seen[form] = [result.get_response()["id"], result.as_numpy("f32_out").tolist()]

seen["pinned"] = infer([tensor("f32", floats, "FP32")], [("f32_out", True)], model_version="1").as_numpy("f32_out").tolist()
halves = numpy.array([1, -2, 0.5], dtype=numpy.float16)
seen["fp16"] = infer([tensor("fp16", halves, "FP16")], [("fp16_out", True)]).as_numpy("fp16_out").tolist()
words = numpy.array(["hé".encode(), b"", b"\x00\xff"], dtype=numpy.object_)
back = infer([tensor("text", words, "BYTES")], [("text_out", True)]).as_numpy("text_out")
seen["bytes"] = [element.hex() for element in back]
big = numpy.arange(2**18, dtype=numpy.float32).reshape(2, -1)
seen["big"] = bool((infer([tensor("f32", big, "FP32")], [("f32_out", True)]).as_numpy("f32_out") == big * 2).all())

for form in ("gzip", "deflate"):
    result = infer([tensor("f32", floats, "FP32")], [("f32_out", True)], response_compression_algorithm=form)
    seen[form] = result.as_numpy("f32_out").tolist()

pending = [client.async_infer("echo", [tensor("f32", floats * n, "FP32")]) for n in range(4)]
seen["async"] = [one.get_result().as_numpy("f32_out")[0][0].item() for one in pending]

sums = []
for number, start, end in ((4, True, False), (5, False, False), (6, False, True)):
    x = tensor("x", numpy.array([[number]], dtype=numpy.float32), "FP32")
    result = infer([x], [("sum", True)], "sums", sequence_id=77, sequence_start=start, sequence_end=end)
    sums.append(result.as_numpy("sum").item())
seen["sums"] = sums


def error(call):
    try:
        call()
    except InferenceServerException as caught:
        return [caught.status(), caught.message()]
    return None


seen["errors"] = {
    "unknown": error(lambda: infer([tensor("f32", floats, "FP32")], [], "nowhere")),
    "compressed": error(
        lambda: infer([tensor("f32", floats, "FP32")], [], request_compression_algorithm="gzip")
    ),
    "input": error(lambda: infer([tensor("zz", floats, "FP32")], [])),
}

print(json.dumps(seen))
