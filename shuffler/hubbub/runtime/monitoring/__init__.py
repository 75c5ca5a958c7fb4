"""What an operator sees of a service: logs, metrics, traces."""
