"""Floor 1. What programs share that people start: options, standard streams, files, HTTP calls."""
