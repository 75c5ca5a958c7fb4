"""Load through real processes while everything fails; afterwards every cell is what was sent.

    make chaos SECONDS=60 SEED=1

The house (house.py) runs two shufflers and two aggregators, each role with a Redis, and devices
(device.py). Each connection goes through faulty_connection.py, which can cut, slow, truncate and
garble it. Faults (faults.py) kill, freeze, partition, fill Redis and step clocks, as the seed
determines. Then everything is repaired and drained. The verdict (verdict.py) compares the totals
with the devices' own records, cell by cell, and checks the conservation law.
"""
