"""The commands, with their options; `command_table.py` maps each to a module here."""
