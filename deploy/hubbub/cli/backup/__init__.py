"""Backups of an installation: both Redis at one moment, and its files, encrypted."""
