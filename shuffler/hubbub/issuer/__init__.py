"""Floor 3. The issuer: gives accounts tokens, blinded, so that fakes need accounts.

It knows accounts and how many reports each may send, and neither a report nor a token once it is
spent. Whoever runs it may be the app's own backend.
"""
