"""An installation on this machine: processes, ports, certificates, an embedded Redis, devices."""
