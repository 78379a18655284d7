"""Processes of the caller: always in a group of their own, always ended as a group."""

import os
import signal
import subprocess

WORKSPACE = "/workspace"
PIDS_LIMIT = int(os.environ.get("AGENTPLATFORM_PIDS_LIMIT", "1024"))

RESERVED = 48
"""Processes and threads that stay free for this server; with fewer left, everything else is ended."""

NICE = 10
"""So that this server gets its turn beside a thousand processes of the caller's. Counts inside the sandbox only."""

_owned = set()
_listeners = []


def start(argv, **options):
    """`subprocess.Popen` in a new session, which `finish` or `release` must be called for. Makes room first where there is none."""
    try:
        process = _start(argv, options)
    except BlockingIOError:
        clear()
        process = _start(argv, options)
    _owned.add(process.pid)
    return process


def _start(argv, options):
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_prepare, **options)


def when_cleared(tell):
    """`tell` is called whenever everything was ended to make room."""
    _listeners.append(tell)


def clear():
    kill_everything()
    for tell in _listeners:
        tell()


def finish(process):
    """Ends what is left of its group and takes its status."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        return
    _owned.discard(process.pid)


def release(process):
    """For one that has ended by itself: what it left in the background goes on."""
    process.poll()
    _owned.discard(process.pid)


def signal_group(process, number):
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _prepare():
    # First to go when memory is short, so that the session survives what it ran.
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
    os.nice(NICE)


def crowded():
    """Whether hardly a process or thread more can be started."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    count += int(file.read().rsplit(b")", 1)[1].split()[17])
            except (OSError, IndexError):
                continue
    return count > PIDS_LIMIT - RESERVED


def kill_everything():
    """Every process of the sandbox but this one, at once: what a fork bomb needs, for it outruns any list."""
    if os.getpid() != 1:
        return
    for _ in range(50):
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return
        reap()


def reap():
    """Takes in orphans, which the first process of a sandbox inherits. Children that someone here waits for are left alone."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            children = [int(pid) for pid in file.read().split()]
    except OSError:
        return
    for pid in children:
        if pid not in _owned:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def describe_status(returncode):
    if returncode is None:
        return "for an unknown reason"
    if returncode >= 0:
        return f"with status {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = str(-returncode)
    hint = " (it may have used more memory than the session has)" if name == "SIGKILL" else ""
    return f"by signal {name}{hint}"
