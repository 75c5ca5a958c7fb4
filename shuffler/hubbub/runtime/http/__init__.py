"""HTTP servers: connections with limits of time and memory, and the server for devices."""
