"""Bounds of one call. Seconds and bytes; the platform may send lower ones."""

STREAM_BYTES = 1024 * 1024
"""What is kept of one call's stdout, and again of its stderr."""

RICH_BYTES = 8 * 1024 * 1024
"""What is kept of one call's pictures, tables and other rich results together."""

EXECUTION_SECONDS = 600
INTERRUPT_SECONDS = 2.5
"""How long a kernel may take to obey an interrupt before it is killed: a client that went away has its work ended within 5 s."""

INTERRUPTS = 4
START_SECONDS = 60
WAITING_CALLS = 16
TASKS = 100
LISTED_FILES = 10_000
