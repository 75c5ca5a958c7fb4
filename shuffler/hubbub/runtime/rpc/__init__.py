"""gRPC servers and calls: what a call must be before a service sees it, and how it is refused."""
