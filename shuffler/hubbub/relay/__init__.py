"""Floor 5. The relay: passes encrypted requests on to one gateway (RFC 9458).

It has no key and stores nothing, so it cannot read a report. Its operator must run neither the
shuffler nor the aggregator.
"""
