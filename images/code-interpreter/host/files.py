"""The workspace's files, by paths that may not lead out of it."""

import os
import stat
import tempfile

from . import limits
from .problem import Problem
from .processes import WORKSPACE

MAX_PATH = 4096


def resolve(path, *, follow=True):
    """The real path of what `path` names below the workspace. Links inside may be used, links out of it may not."""
    if not path or "\0" in path:
        raise Problem("invalid", "A path must not be empty or hold a NUL.")
    if len(path) > MAX_PATH:
        raise Problem("invalid", f"A path may have {MAX_PATH} characters at most.")
    try:
        joined = os.path.join(WORKSPACE, path)
        parent, name = os.path.split(os.path.normpath(joined))
        # Each component is resolved, so that `link/..` means what the kernel of the system means by it.
        real = os.path.realpath(joined) if follow else os.path.join(os.path.realpath(parent), name)
    except (OSError, ValueError) as error:
        raise Problem("invalid", f"{shown(path)} is no usable path: {error}.") from error
    root = os.path.realpath(WORKSPACE)
    if real != root and not real.startswith(root + os.sep):
        raise Problem("invalid", f"{shown(path)} leads out of the workspace {WORKSPACE}.")
    return real


def shown(path):
    return path if len(path) <= 200 else path[:200] + "…"


def relative(real):
    return os.path.relpath(real, os.path.realpath(WORKSPACE))


def explain(path, error):
    """An OSError as a Problem that names the path."""
    import errno

    name = shown(path)
    if error.errno == errno.ENOENT:
        return Problem("not-found", f"There is no {name}.")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Problem("no-space", f"The session's disk is full: {name} could not be written.")
    if error.errno in (errno.ENOTDIR, errno.EISDIR):
        return Problem("invalid", f"{name}: {error.strerror}.")
    if error.errno == errno.ENAMETOOLONG:
        return Problem("invalid", f"{name}: the name is too long.")
    return Problem("invalid", f"{name}: {error.strerror or error}.")


class Writing:
    """A file under construction beside its place: whoever reads sees the old content or the new, never half of it."""

    def __init__(self, path):
        self._path = path
        self._real = resolve(path)
        try:
            if os.path.isdir(self._real):
                raise Problem("invalid", f"{shown(path)} is a directory.")
            if os.path.exists(self._real) and not os.path.isfile(self._real):
                raise Problem("invalid", f"{shown(path)} is no ordinary file.")
            os.makedirs(os.path.dirname(self._real), exist_ok=True)
            self._fd, self._temp = tempfile.mkstemp(prefix=".writing-", dir=os.path.dirname(self._real))
            os.fchmod(self._fd, 0o644)
        except OSError as error:
            raise explain(path, error) from error
        self.size = 0

    def write(self, chunk):
        view = memoryview(chunk)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            raise explain(self._path, error) from error
        self.size += len(chunk)

    def commit(self):
        try:
            os.close(self._fd)
            self._fd = None
            os.replace(self._temp, self._real)
            self._temp = None
        except OSError as error:
            raise explain(self._path, error) from error

    def abandon(self):
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        if self._temp is not None:
            try:
                os.unlink(self._temp)
            except OSError:
                pass
            self._temp = None


def open_for_reading(path):
    """A file object and its size. A FIFO or a device is refused: it could be waited for without end."""
    real = resolve(path)
    try:
        fd = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise explain(path, error) from error
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        os.close(fd)
        what = "a directory" if stat.S_ISDIR(info.st_mode) else "no ordinary file"
        raise Problem("invalid", f"{shown(path)} is {what}.")
    return os.fdopen(fd, "rb"), info.st_size


def listing(path):
    """What is in a directory, by name; at most so many, with whether there are more."""
    real = resolve(path or ".")
    entries = []
    try:
        with os.scandir(real) as found:
            for entry in found:
                if len(entries) >= limits.LISTED_FILES:
                    return {"entries": sorted(entries, key=lambda e: e["name"]), "more": True}
                info = entry.stat(follow_symlinks=False)
                entries.append(
                    {
                        "name": printable(entry.name),
                        "path": printable(relative(os.path.join(real, entry.name))),
                        "kind": "directory" if entry.is_dir(follow_symlinks=False) else "link" if entry.is_symlink() else "file",
                        "size": info.st_size,
                    }
                )
    except OSError as error:
        raise explain(path, error) from error
    return {"entries": sorted(entries, key=lambda e: e["name"]), "more": False}


def printable(name):
    """Names are bytes; those that are no UTF-8 are shown with replacement characters."""
    return os.fsencode(name).decode("utf-8", "replace")


def remove(path):
    """A file, a link (not what it leads to), or a directory with what is in it."""
    import shutil

    real = resolve(path, follow=False)
    if real == os.path.realpath(WORKSPACE):
        raise Problem("invalid", "The workspace itself cannot be removed.")
    try:
        if os.path.isdir(real) and not os.path.islink(real):
            shutil.rmtree(real)
        else:
            os.unlink(real)
    except OSError as error:
        raise explain(path, error) from error
