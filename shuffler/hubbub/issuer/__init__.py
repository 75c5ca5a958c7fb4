"""Floor 3. The issuer: gives accounts blinded tokens, so that fake reports need accounts.

It knows accounts and how many reports each may send, but never a report, nor a token once spent.
The app's own backend may run it.
"""
