"""
The peer: an ipykernel on this machine, called by jupyter_client with nothing between. Prints the cold start in ms; then, for each
number that it reads, so many times of `1+1` in ms as JSON.
"""

import json
import sys
import time

from jupyter_client.manager import start_new_kernel


def once():
    began = time.perf_counter()
    client.execute_interactive("1+1", output_hook=lambda message: None, timeout=60)
    return (time.perf_counter() - began) * 1000


began = time.perf_counter()
manager, client = start_new_kernel(kernel_name="python3")
once()
print((time.perf_counter() - began) * 1000, flush=True)
try:
    for line in sys.stdin:
        print(json.dumps([once() for _ in range(int(line))]), flush=True)
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
