"""Runs an installation on this machine: processes, ports, certificates, Redis, devices."""
