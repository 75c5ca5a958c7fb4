"""Redis, one server or a Cluster: connections, checks, commands, memory in use."""
