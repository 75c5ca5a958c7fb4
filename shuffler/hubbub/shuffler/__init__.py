"""Floor 3. The shuffler: removes who sent what, mixes sealed reports, and passes on batches.

    Submit --admission--> intake --> pool (Redis) --mixer--> a random batch --Ingest--> aggregator

It cannot open reports, and may not import mechanisms, catalog or analysis: so it cannot leak them.
"""
