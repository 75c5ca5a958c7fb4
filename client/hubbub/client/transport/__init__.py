"""Transports to the shuffler: the contract of plain types, gRPC and HTTP."""
