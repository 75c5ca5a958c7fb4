"""Floor 1. Sealing for the aggregator: of payloads by devices, of dummies by the shuffler."""
