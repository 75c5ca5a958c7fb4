"""The proofs, and what runs them: enumeration, the coin source, attacks, the audit."""
