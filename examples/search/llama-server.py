"""llama.cpp's own server, out of the Python package xllamacpp: MODEL PORT"""

import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = ["chat"]
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.n_ctx = 8192
params.n_parallel = 2
# llama.cpp's threads wait for each other by spinning: more of them than free cores are slower than one.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.warmup = False

server = xllamacpp.Server(params)
threading.Event().wait()
