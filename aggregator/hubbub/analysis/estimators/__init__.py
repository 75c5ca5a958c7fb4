"""From totals to numbers with numpy: unbiased, or in the shape of a histogram."""
