"""Floor 2. What every service needs to run and none owns: TLS, a gRPC server, Redis.

It knows no metric and no mechanism, so the blind shuffler may depend on it.
"""

import os

# Before gRPC is loaded, which reads it then. gRPC writes lines of its own past our log, for every
# stranger whose handshake fails, and waits while nobody reads them.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# Before numpy is loaded, for the same reason. OpenBLAS starts a thread per core, each with buffers;
# a service answers several questions at once by threads of its own, and in commands they wait for
# each other longer than our small matrices take.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
