"""The aggregator: opens shuffled batches, adds them up exactly once, and answers queries.

Apply --service--> intake: opener (processes), fold (numpy), store (Redis, one Lua commit)
Estimate --service--> query: store, the mechanism's own estimator, analysis
"""
