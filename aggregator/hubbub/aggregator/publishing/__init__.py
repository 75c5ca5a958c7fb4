"""Estimates of closed epochs, to folders and webhooks, as files that other programs read."""
