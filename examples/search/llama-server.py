"""llama.cpp's own server, out of the Python package xllamacpp: FILE PORT NAME CONTEXT [embedding]"""

import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = [sys.argv[3]]
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.n_ctx = int(sys.argv[4])
params.n_parallel = 2
# llama.cpp's threads wait for each other by spinning: more of them than free cores are slower than one.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.warmup = False
params.endpoint_metrics = True
if "embedding" in sys.argv[5:]:
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN

server = xllamacpp.Server(params)
threading.Event().wait()
