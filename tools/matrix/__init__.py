"""`make matrix`: runs the acceptance tests with many versions.

The versions are those of ansible-core, Python, openstacksdk and OpenStack.
"""
