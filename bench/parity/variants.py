"""Makes other precisions of two real models: variants.py CHAT.gguf CLASSIFIER.onnx FOLDER.

chat-q8_0.gguf, chat-q4_0.gguf: the 4-bit matrices of the chat model in another quantisation; all else as it was.
classifier-int8.onnx: weights in 8 bits, activations quantised while it runs (onnxruntime).
classifier-f16-shifted.onnx: weights rounded to float16, with a rounding that lies a quarter of a unit in the last place
too high, as one might meet on other hardware.
"""

import sys
from pathlib import Path

import numpy
import onnx
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, dequantize, quantize
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

chat, classifier, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)


def quantised(to: GGMLQuantizationType, path: Path) -> None:
    reader = GGUFReader(chat)
    writer = GGUFWriter(path, reader.get_field("general.architecture").contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        sub = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=sub)
    for tensor in reader.tensors:
        data, of = tensor.data, tensor.tensor_type
        if of == GGMLQuantizationType.Q4_1:
            data, of = quantize(dequantize(data, of), to), to
        writer.add_tensor(tensor.name, data, raw_dtype=of)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def shifted(values: numpy.ndarray) -> numpy.ndarray:
    """To the nearest float16 of the value plus a quarter of its unit in the last place; what float16 cannot hold stays."""
    held = numpy.abs(values) < 60000
    small = numpy.where(held, values, 0)
    ulp = numpy.abs(numpy.spacing(small.astype(numpy.float16))).astype(numpy.float32)
    return numpy.where(held, (small + ulp / 4).astype(numpy.float16).astype(numpy.float32), values)


quantised(GGMLQuantizationType.Q8_0, folder / "chat-q8_0.gguf")
quantised(GGMLQuantizationType.Q4_0, folder / "chat-q4_0.gguf")

quantize_dynamic(classifier, folder / "classifier-int8.onnx", weight_type=QuantType.QInt8)
model = onnx.load(classifier)
for tensor in model.graph.initializer:
    if tensor.data_type == onnx.TensorProto.FLOAT:
        rounded = shifted(numpy_helper.to_array(tensor))
        tensor.CopyFrom(numpy_helper.from_array(rounded, tensor.name))
onnx.save(model, folder / "classifier-f16-shifted.onnx")
