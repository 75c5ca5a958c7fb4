"""Floor 3. The shuffler: strips who sent what, mixes, and passes on batches. It cannot read them.

    Submit --admission--> intake --> pool (Redis) --mixer--> a random batch --Ingest--> aggregator

It may not import mechanisms, catalog or analysis: what it does not know it cannot tell.
"""
