"""Floor 1. Oblivious HTTP: a relay passes on requests that it cannot read (RFC 9458, RFC 9292)."""
