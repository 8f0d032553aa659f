"""How long a real Nova and a real Placement take, in seconds.

Measured on one API process with SQLite on 2 cores (Nova 34, Placement 16; the clouds of
`make bench`). Each is the time of a request and the time of each row of its answer.
"""

LATENCIES: dict[str, tuple[float, float]] = {
    # The allocations of a provider: 8.9 ms with 20 consumers, 13.1 ms with 100.
    "provider_allocations": (0.0078, 0.00005),
    # 0.1 to 0.5 s for 304 providers.
    "allocation_candidates": (0.02, 0.0015),
    "providers": (0.02, 0.00075),
    "provider_part": (0.006, 0.0),
    "allocation": (0.007, 0.0),
    "write": (0.03, 0.0),
    # A page of compute nodes with 20 servers each: 17.1 s for 1 000.
    "hypervisors": (0.05, 0.0046),
    "hypervisors_with_servers": (0.05, 0.0171),
    "services": (0.05, 0.0005),
    "server": (0.035, 0.0),
    "servers": (0.1, 0.0054),
    "brief_servers": (0.1, 0.00114),
    "migrations": (0.035, 0.0009),
    "actions": (0.02, 0.0),
    "aggregates": (0.05, 0.0),
    "host": (0.03, 0.0),
    "keystone": (0.1, 0.0),
    "version": (0.002, 0.0),
}


def calculate_latency(kind: str, rows: int) -> float:
    """Return the seconds that an answer of a kind with so many rows takes."""
    request, row = LATENCIES[kind]
    return request + row * rows
