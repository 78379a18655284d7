"""The peer: an ipykernel on this machine, called by jupyter_client with nothing between. Prints JSON; times in ms."""

import json
import sys
import time

from jupyter_client.manager import start_new_kernel

rounds = int(sys.argv[1])
began = time.perf_counter()
manager, client = start_new_kernel(kernel_name="python3")
client.execute_interactive("1+1", output_hook=lambda message: None, timeout=60)
cold = (time.perf_counter() - began) * 1000
times = []
for _ in range(rounds):
    began = time.perf_counter()
    client.execute_interactive("1+1", output_hook=lambda message: None, timeout=60)
    times.append((time.perf_counter() - began) * 1000)
client.stop_channels()
manager.shutdown_kernel(now=True)
json.dump({"coldStart": cold, "warm": times}, sys.stdout)
