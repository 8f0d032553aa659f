"""The code that runs inside the virtual environment of the minicloud.

It connects the real services on one loopback machine.

The command line imports nothing here; the services find it through PYTHONPATH and through the entry
points that ``minicloud_ctl.configs`` writes into the state folder.
"""
