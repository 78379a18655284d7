"""
Random numbers of a session that began as the copy of a warm process.

On gVisor the platform starts sessions from a snapshot of a process that has warmed up. What the kernel gives (`os.urandom`, `secrets`,
`uuid.uuid4`) differs in every copy. What generators inside the process have in memory is the same in all, until they are seeded anew.
"""

import os
import random
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

Hook = Callable[[], object]
H = TypeVar("H", bound=Hook)

_lock = threading.Lock()
_hooks: list[Hook] = []
#: A copy has a host name of its own.
_known = os.uname().nodename


def on_copy(hook: H) -> H:
    """
    Has `hook` called once in every copy, before its first request: to seed a generator that this package does not know, or to drop
    what must not be shared. Usable as a decorator; the counterpart of `os.register_at_fork`.
    """
    _hooks.append(hook)
    return hook


def reseed_if_copied() -> bool:
    """
    Seeds `random`, OpenSSL and numpy's global generator from the kernel and calls the hooks, if this process has become a copy since it was
    asked last; says whether it has. `AgentPlatformApp` asks at every request; a server of your own asks before it does anything else.
    """
    global _known
    name = os.uname().nodename
    if name == _known:
        return False
    with _lock:
        # Another thread may have been faster.
        if name == _known:
            return False
        _reseed()
        for hook in list(_hooks):
            hook()
        _known = name
    return True


def _reseed() -> None:
    random.seed()
    # Where a module was never loaded, it has no state either.
    ssl = sys.modules.get("ssl")
    if ssl is not None:
        ssl.RAND_add(os.urandom(32), 32.0)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed()
