"""Floor 3. An installation: its keys, certificates, local processes and Redis, backups, size."""
