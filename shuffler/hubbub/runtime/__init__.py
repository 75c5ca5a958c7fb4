"""Floor 2. What every service needs to run and none owns: TLS, a gRPC server, Redis.

It knows no metric and no mechanism, so the blind shuffler may depend on it.
"""
