"""What each command takes and does: `command_table.py` says which module has it."""
