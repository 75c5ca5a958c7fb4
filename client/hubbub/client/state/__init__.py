"""The state of a device: its secret, ledger and outbox, in a folder of its user or in memory."""
