"""How long many cores would take, from what one of them does in their place.

    kymo --rehearse N     does one after the other what N threads would do, each piece of work when its thread would begin it,
                          and says which thread that is, when it begins, and what it took

        thread 0   ├── read ──┤├ merge ┤├─ read ─┤├ leave
        thread 1   ├─── read ────┤├ read ┤├ merge ┤├ leave ──> the end

What is not simulated: that cores share caches and memory, and that threads wait for each other: at the desk where parts are
given out, and for machine code that one of them compiles. What is done before and after the parts is done as it is here.
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
    ends = [int(each[2]) + int(each[3]) for each in words if len(each) == 4 and each[0] in ("read", "merge", "later", "leave")]
    lasted = sum(int(each[1]) for each in words if len(each) == 2 and each[0] == "lasted")
    return max(ends, default=0) / 1e9, wall - lasted / 1e9
