"""The way to the shuffler: a contract of plain types, and gRPC."""
