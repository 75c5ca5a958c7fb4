"""Models learned from randomized gradients: definition, descent, and evaluation."""
