"""How long many cores would take, worked out from what parts of a trace cost one of them.

    kymo --rehearse N     reads on one thread the parts that N threads would get, and says what each cost
    seconds(...)          gives these parts to N workers as session::analyse::parts does

        worker 0   ├── part 0 ──┤├ merge 0 ┤├─ part 3 ─┤
        worker 1   ├─── part 1 ────┤├ part 2 ┤├ merge 1, 2 ┤      from left to right, by whoever comes by

What is not simulated: that cores share caches and memory, and that threads wait for each other at the desk where parts are
given out. What is done before and after the parts is done by one thread.
"""

import heapq
import subprocess
import time


def rehearse(command):
    """What reading and merging each part took, and everything else, in seconds."""
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = time.monotonic() - start
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[:300])
    costs = {"read": {}, "merge": {}}
    for words in map(str.split, done.stderr.splitlines()):
        # What else is said there is of losses.
        if len(words) == 3 and words[0] in costs:
            costs[words[0]][int(words[1])] = int(words[2]) / 1e9
    reads, merges = ([costs[what][part] for part in sorted(costs[what])] for what in ("read", "merge"))
    return reads, merges, wall - sum(reads) - sum(merges)


def seconds(reads, merges, workers):
    """When the last worker ends."""
    ends, next_part, merged, is_merging, done, now = [], 0, 0, False, set(), 0.0

    def take(now):
        nonlocal next_part
        if next_part < len(reads):
            heapq.heappush(ends, (now + reads[next_part], "read", next_part))
            next_part += 1

    def merge(now):
        """The next part is merged if it is there; else its worker takes another part."""
        nonlocal is_merging
        is_merging = merged in done
        if is_merging:
            heapq.heappush(ends, (now + merges[merged], "merge", merged))
        else:
            take(now)

    for _ in range(workers):
        take(0.0)
    while ends:
        now, what, part = heapq.heappop(ends)
        if what == "merge":
            merged += 1
            merge(now)
            continue
        done.add(part)
        if is_merging:
            take(now)
        else:
            merge(now)
    return now
