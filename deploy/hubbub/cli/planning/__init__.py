"""The calculations and tables of `hubbub plan`."""
