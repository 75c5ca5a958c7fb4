"""gRPC servers and channels: checks of a call before a service sees it, and refusals."""
