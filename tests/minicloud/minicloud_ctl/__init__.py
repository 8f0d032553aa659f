"""The command line of the minicloud.

It uses the standard library only, so that any Python from 3.11 on runs it without an installation.

Data flows one way: paths -> state -> configs/databases -> services (processes) -> identity ->
ready; scenarios use all of it.
"""
