"""Verifies tokens of an OpenID Connect provider: who signed them, for whom, and when."""
