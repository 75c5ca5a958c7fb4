"""Floor 1. What command-line programs share: options, standard streams, files, HTTP calls."""
