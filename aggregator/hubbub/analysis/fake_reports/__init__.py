"""Tests whether honest reports alone made these totals, and bounds the effect of fake ones."""
