"""Proofs and their runners: enumeration, the coin source, attacks, the audit."""
