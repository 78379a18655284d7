"""Keeps the agent's own code from ending more than the call that it runs in."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_exit() -> Iterator[None]:
    """
    Makes a RuntimeError of what is raised beside Exception, which event loops and servers let through: argparse, click and many
    a helper say `sys.exit()`. Cancellation, and the end of a generator, stay what they are.
    """
    try:
        yield
    except (Exception, asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        raise RuntimeError(f"The agent raised {error!r}.") from error
