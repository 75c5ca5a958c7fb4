"""Keys: devices seal to them, the aggregator opens with them, the operator signs and rotates."""
