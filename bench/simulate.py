"""How long many cores would take, from what one of them does in their place.

    kymo --rehearse N     does on one thread what N threads would do, each piece of work when its thread would begin it, and
                          says which thread that is, when it begins, and what it took

        thread 0   ├── read ──┤├ merge ┤├─ read ─┤
        thread 1   ├─── read ────┤├ read ┤├ merge ┤ ──> the end

What is not simulated: that cores share caches and memory, and that threads wait for each other at the desk where parts are
given out. What is done before and after the parts is done by one thread.
"""

import subprocess
import time


def rehearse(command):
    """How long the threads would take, and what everything else took, in seconds."""
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = time.monotonic() - start
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[:300])
    # What else is said there is of losses.
    words = [line.split() for line in done.stderr.splitlines()]
    work = [(int(begin) / 1e9, int(took) / 1e9) for what, _, begin, took in
            (each for each in words if len(each) == 4 and each[0] in ("read", "merge"))]
    threads = max((begin + took for begin, took in work), default=0.0)
    return threads, wall - sum(took for _, took in work)
