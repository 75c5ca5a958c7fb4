"""Logs, metrics and traces of a service, for its operator."""
