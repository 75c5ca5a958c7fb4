"""Publishes estimates of closed epochs to folders, webhooks and collectors."""
