"""What `hubbub plan` reckons and draws."""
