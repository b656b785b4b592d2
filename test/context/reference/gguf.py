"""gguf.py MODEL.gguf FOLDER: the tokenizer of a GGUF file with digits cut one by one, built by the tokenizers library itself."""
import json, os, struct, sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

file = open(sys.argv[1], "rb")
file.read(8)
_, count = struct.unpack("<QQ", file.read(16))
PLAIN = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def number(kind):
    return struct.unpack("<" + kind, file.read(struct.calcsize(kind)))[0]


def value(kind):
    if kind == 8:
        return file.read(number("Q")).decode()
    if kind == 9:
        of, length = number("I"), number("Q")
        return [value(of) for _ in range(length)]
    return number(PLAIN[kind])


said = {}
for _ in range(count):
    key = value(8)
    said[key] = value(number("I"))
tokens = said["tokenizer.ggml.tokens"]
assert said["tokenizer.ggml.pre"] == "smollm"
merges = [tuple(merge.split(" ")) for merge in said["tokenizer.ggml.merges"]]
made = Tokenizer(models.BPE(vocab={token: at for at, token in enumerate(tokens)}, merges=merges))
made.pre_tokenizer = pre_tokenizers.Sequence(
    [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
)
made.decoder = decoders.ByteLevel()
control = [token for token, kind in zip(tokens, said["tokenizer.ggml.token_type"]) if kind == 3]
made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
os.makedirs(sys.argv[2], exist_ok=True)
made.save(os.path.join(sys.argv[2], "tokenizer.json"))
config = {
    "bos_token": tokens[said["tokenizer.ggml.bos_token_id"]],
    "eos_token": tokens[said["tokenizer.ggml.eos_token_id"]],
    "chat_template": said["tokenizer.chat_template"],
}
json.dump(config, open(os.path.join(sys.argv[2], "tokenizer_config.json"), "w"))
