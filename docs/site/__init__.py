"""The documentation as a site: what is gathered for it, how it is built and shown."""
