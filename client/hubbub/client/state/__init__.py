"""What a device keeps: its secret, its ledger and outbox, in a folder of its user or in memory."""
