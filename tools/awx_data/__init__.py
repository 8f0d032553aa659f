"""`make pages`: writes the set-up of AWX in the form of infra.aap_configuration and awx.awx.

`extensions/patterns/orphan_cleanup/setup.yml` is the source.
Whatever this package does not know in it is an error, so that nothing is left out silently.
"""
