"""The pictures of the README, made by `make pictures`."""
