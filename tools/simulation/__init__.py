"""A cloud of any size without Nova: generated answers with measured latencies."""
