"""Load through real processes while everything fails; afterwards every cell is what was sent.

    make chaos SECONDS=60 SEED=1

A house (house.py) of two shufflers and two aggregators, each role with a Redis, and devices
(device.py); every connection goes through a line (line.py) that can be cut, slowed, truncated and
garbled. Faults (faults.py) kill, freeze, partition, fill Redis and step clocks, as the seed says.
Then all is mended and drains, and the verdict (verdict.py) compares totals with the devices' own
records, cell by cell, and checks the conservation law.
"""
