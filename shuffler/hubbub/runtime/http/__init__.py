"""HTTP servers: their connections, each of which must get on, and the door for devices."""
