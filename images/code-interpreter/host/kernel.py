"""What the two kinds of kernel have in common."""


class KernelDied(Exception):
    """The kernel's process is gone; its variables are lost."""


class Kernel:
    """One language's running interpreter. One call at a time: the slot sees to it."""

    process = None

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    async def start(self):
        raise NotImplementedError

    async def run(self, code, output):
        """Runs code, sends what it prints and shows to `output`; True when it ended without an error. Raises `KernelDied`."""
        raise NotImplementedError

    def interrupt(self):
        raise NotImplementedError

    def kill(self):
        raise NotImplementedError
