#!/bin/sh
# Installs what Armature is compared with, into .cache/bench-peers (or $BENCH_PEERS).
#   bench/peers/install.sh [debian] [vllm-router] [sglang-router] [litellm] [portkey]      (none named: all)
# `debian` needs root: HAProxy, nginx, a C compiler and taskset.
set -eu
BENCH_PEERS=${BENCH_PEERS:-$(cd "$(dirname "$0")/../.." && pwd)/.cache/bench-peers}
mkdir -p "$BENCH_PEERS"

python() { # FOLDER PACKAGE
  python3 -m venv "$BENCH_PEERS/$1"
  "$BENCH_PEERS/$1/bin/pip" install --quiet "$2"
}

[ $# -gt 0 ] || set -- debian vllm-router sglang-router litellm portkey
for peer; do
  case $peer in
    debian)
      apt-get update -qq
      apt-get install -y -qq --no-install-recommends haproxy nginx-light gcc libc6-dev util-linux
      ;;
    vllm-router) python vllm-router vllm-router==0.1.17 ;;
    sglang-router) python sglang-router sglang-router==0.3.2 ;;
    litellm) python litellm 'litellm[proxy]==1.108.7' ;;
    portkey)
      # With a newer @hono/node-server every stream of Portkey 1.15.2 answers 500, "TypeError: immutable".
      mkdir -p "$BENCH_PEERS/portkey"
      cat >"$BENCH_PEERS/portkey/package.json" <<'JSON'
{
  "private": true,
  "dependencies": { "@portkey-ai/gateway": "1.15.2" },
  "overrides": { "@hono/node-server": "1.13.8" }
}
JSON
      (cd "$BENCH_PEERS/portkey" && npm install --no-audit --no-fund)
      ;;
    *)
      echo "install.sh: no peer is called $peer" >&2
      exit 2
      ;;
  esac
done
