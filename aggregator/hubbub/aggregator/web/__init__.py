"""The HTTP face: JSON, exports and pages, over one ASGI application."""
