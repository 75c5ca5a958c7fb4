"""Delivery from the outbox to the shuffler in the background, sealed, each report once."""
