"""Floor 5. The relay: passes requests on to one gateway, and can read none of them (RFC 9458).

It has no key, keeps nothing and knows no report. Whoever runs it runs neither of the others.
"""
