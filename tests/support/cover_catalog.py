"""A catalog of devices that fill up what they have nothing to say of."""

FILLED = """
shuffler = "127.0.0.1:1"
cover = true

[metrics.crash]
description = "How the app last crashed today, if it did"
owner = "desktop@example.org"
expires = 2099-06-30
epoch = "day"
mechanism = "grr"
epsilon = 4.0
tiers = [0.5, 1.0]
values = ["gpu", "disk"]
default = "none"
min_batch = 20
limits = { reports_per_epoch = 1, lifetime_epsilon = 9.0 }

[metrics.asked]
description = "Whether help was asked for, of half of all devices"
owner = "desktop@example.org"
expires = 2099-06-30
epoch = "day"
mechanism = "rr"
epsilon = 1.0
values = ["no", "yes"]
default = "no"
sampling = 0.5
min_batch = 20
limits = { reports_per_epoch = 1, lifetime_epsilon = 500.0 }
"""
STREAMS = ["asked", "crash", "crash/0.5", "crash/1"]
