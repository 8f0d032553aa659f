"""`make bench`: measures detection and remediation on a large cloud."""
