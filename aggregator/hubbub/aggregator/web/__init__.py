"""The HTTP interface: JSON, exports and pages, in one ASGI application."""
