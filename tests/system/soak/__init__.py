"""Honest devices beside strangers who take what they can and give nothing back.

    make soak SECONDS=600 SEED=1

A whole hubbub (mutual TLS, a Redis per role) as `hubbub up` runs it. Twenty devices (devices.py),
each from an address of its own, report now and then and wait for the acknowledgement. Meanwhile
strangers (strangers.py) hold 500 connections that never end their sentence, keep 300 calls open
that ask nothing, and flood Submit from one address. All addresses are this machine's own.

Then the strangers leave, it drains, and the verdict (verdict.py) compares what the devices heard
with what was counted, and the refusals that strangers met with those that the metrics tell.
"""
