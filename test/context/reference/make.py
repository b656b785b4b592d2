"""Reference prompts and token ids of random chats, by transformers' chat templates and the tokenizers library.

make.py small FOLDER          trains three small tokenizers on this repository's own pages, and writes chats.jsonl for them
make.py real FOLDER COUNT     writes chats.jsonl for tokenizers in FOLDER/NAME (tokenizer.json, tokenizer_config.json)
"""
import glob, hashlib, json, os, random, sys

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
INST = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ '[INST] ' + message['content'] | trim + ' [/INST]' }}{% elif message['role'] == 'system' %}"
    "{{ '<<SYS>>\\n' + message['content'].strip() + '\\n<</SYS>>\\n\\n' }}{% else %}{{ ' ' + message['content'].lstrip('\\n') + eos_token }}"
    "{% endif %}{% endfor %}"
)
PLAIN = (
    "{% if tools %}[tools] {{ tools | tojson }} {% endif %}{% for message in messages %}[{{ message.role }}] "
    "{{ message.content or '' }}{% for call in message.tool_calls or [] %} [call] {{ call.function.name }} "
    "{{ call.function.arguments | tojson }}{% endfor %} [SEP] {% endfor %}[assistant]"
)


def train(folder):
    here = os.path.dirname(os.path.abspath(__file__))
    files = sorted(glob.glob(os.path.join(here, "../../../docs/*.md")) + [os.path.join(here, "../../../README.md")])
    bytes_bpe = Tokenizer(models.BPE())
    bytes_bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    bytes_bpe.decoder = decoders.ByteLevel()
    bytes_bpe.train(
        files,
        trainers.BpeTrainer(
            vocab_size=1500,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
            show_progress=False,
        ),
    )
    pieces = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    pieces.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    pieces.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    special = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % byte for byte in range(256)]
    pieces.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")  # to train on words
    pieces.train(files, trainers.BpeTrainer(vocab_size=1500, special_tokens=special, show_progress=False))
    pieces.pre_tokenizer = None
    described = json.loads(pieces.to_str())
    described["added_tokens"] = described["added_tokens"][:3]
    pieces = Tokenizer.from_str(json.dumps(described))
    words = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    words.normalizer = normalizers.BertNormalizer()
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.train(
        files,
        trainers.WordPieceTrainer(vocab_size=1500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False),
    )
    for name, tokenizer, config in [
        ("bytes", bytes_bpe, {"eos_token": "<|im_end|>", "chat_template": CHATML}),
        ("pieces", pieces, {"bos_token": "<s>", "eos_token": "</s>", "chat_template": INST}),
        ("words", words, {"chat_template": PLAIN}),
    ]:
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        described = json.loads(tokenizer.to_str())
        with open(os.path.join(folder, name, "tokenizer.json"), "w") as out:
            json.dump(described, out, ensure_ascii=False, separators=(",", ":"))
        with open(os.path.join(folder, name, "tokenizer_config.json"), "w") as out:
            json.dump(config, out, indent=2)
            out.write("\n")


WORDS = (
    "the quick Brown fox it's we'll I'VE 3.14 100000 12,345 e=mc^2 foo_bar camelCase https://a.b/c?d=e&f=%20 naïve café Straße ﬁne "
    "İstanbul ΑΒΓ привет 你好 世界 こんにちは 한국어 नमस्ते مرحبا שלום 👩‍👩‍👧‍👦 🇩🇪🇫🇷 é e\u0301 \u200b \u00a0 \u3000 \ufeff \u0085 ½ Ⅷ ﷺ \u0958 ... !!! ??? -- == "
    "{{ }} {% %} <|im_start|> <|im_end|> <|endoftext|> <|eot_id|> <s> </s> [CLS] [SEP] <tool_call> </think> \\n \" ' ` def"
).split(" ")
SPACES = [" "] * 5 + ["  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "", "", " " * 10]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f0",
            "description": 'Says "é" & <more>',
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "enum": ["a", "ü"]}, "n": {"type": "integer", "minimum": 0}},
                "required": ["city"],
            },
        },
    }
]


def old(character):
    """Of the Unicode that all the libraries know: their tables of later characters are not the same."""
    import unicodedata

    # Two letters of Mongolian became marks later.
    return unicodedata.ucd_3_2_0.category(character) != "Cn" and character not in "\u1885\u1886"


def text(r):
    said = ""
    for _ in range(r.choice([0, 1, 2, 5, 10, 30])):
        draw = r.random()
        if draw < 0.75:
            said += r.choice(WORDS)
        elif draw < 0.85:
            said += chr(r.choice([r.randrange(32, 127), r.randrange(0xA0, 0x2000), r.randrange(0x3000, 0xD000), r.randrange(0x20, 0xD800)]))
        elif draw < 0.95:
            said += str(r.randrange(10 ** r.randrange(1, 12)))
        else:
            said += r.choice("aeiouxyz") * r.randrange(1, 40)
        said += r.choice(SPACES)
    return "".join(c for c in said if old(c) or c in "".join(WORDS))


def chat(r, tools):
    messages = [{"role": "system", "content": text(r)}] if r.random() < 0.6 else []
    for _ in range(r.choice([0, 1, 1, 2, 4])):
        messages.append({"role": "user", "content": text(r)})
        if tools and r.random() < 0.5:
            given = {"city": text(r)[:40], "n": r.randrange(1000), "more": [True, None, 2.5, {"z": 'é"\\'}]}
            call = {"id": "call_%d" % r.randrange(10**6), "type": "function", "function": {"name": "f0", "arguments": given}}
            messages.append({"role": "assistant", "content": r.choice(["", text(r)]), "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "name": "f0", "content": text(r)})
        messages.append({"role": "assistant", "content": text(r)})
    messages.append({"role": "user", "content": text(r)})
    return messages


def reference(folder, names, count, seed=1):
    r = random.Random(seed)
    loaded = {}
    for name in names:
        with open(os.path.join(folder, name, "tokenizer_config.json")) as file:
            config = json.load(file)
        plain = lambda token: token.get("content") if isinstance(token, dict) else token
        loaded[name] = PreTrainedTokenizerFast(
            tokenizer_file=os.path.join(folder, name, "tokenizer.json"),
            bos_token=plain(config.get("bos_token")),
            eos_token=plain(config.get("eos_token")),
            chat_template=config["chat_template"],
            clean_up_tokenization_spaces=False,
        )
    with open(os.path.join(folder, "chats.jsonl"), "w") as out:
        for at in range(count):
            name = names[at % len(names)]
            takes_tools = "tools" in loaded[name].chat_template
            tools = TOOLS if takes_tools and r.random() < 0.4 else None
            messages = chat(r, tools)
            prompt = loaded[name].apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, date_string="26 Jul 2024", **({"tools": tools} if tools else {})
            )
            ids = loaded[name](prompt, add_special_tokens=False)["input_ids"]
            for message in messages:
                for call in message.get("tool_calls", []):
                    call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=r.random() < 0.5)
            digest = hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()[:16]
            line = {"tokenizer": name, "messages": messages, **({"tools": tools} if tools else {}), "count": len(ids), "ids": digest}
            out.write(json.dumps(line, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    what, folder = sys.argv[1], sys.argv[2]
    if what == "small":
        train(folder)
        reference(folder, ["bytes", "pieces", "words"], 300)
    else:
        names = sorted(name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name)))
        reference(folder, names, int(sys.argv[3]), seed=int(sys.argv[4]) if len(sys.argv) > 4 else 1)
