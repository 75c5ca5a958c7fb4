"""Redis, one server or a Cluster: connected to, checked, asked, watched."""
