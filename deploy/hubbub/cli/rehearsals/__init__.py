"""What `hubbub simulate` does: known values, reports drawn, and how the answers did."""
