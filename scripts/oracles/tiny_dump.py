"""Writes dumps as Barrelfish's kernel prints them, of capability operations that are made up.

    write(file, random.Random(7), cores=3, operations=40)

Cores number their operations themselves, so that several have the same number at a time; other cores do steps of them, with
clocks that disagree. Some operations have no end, or no begin, and other events and other output come in between.
"""

CAPOPS, KERNEL_CAPOPS, KERNEL = 6, 1, 0
# Numbers of events: see `breakdown.py`.
CALL, RESPONSE = 16, 17
# From the call on, each with the part of the operation that it is of.
LOCAL = (18, 20, 5)
REMOTE = (13, 14, 15, 8, 9)
ENDS = (3, 21, 19, 17)
IN_KERNEL = ((0, 8, 1), (10, 11, 19))
CLOCKS_APART = 3000


def events(random, cores, operations):
    """Core, time, subsystem, event and number of all events, of each core in the order of time."""
    found, skews = [], [random.randrange(CLOCKS_APART) for _ in range(cores)]
    for _ in range(operations):
        core, number = random.randrange(cores), random.randrange(6)
        other = random.randrange(cores)
        time = 1_000_000 + random.randrange(4_000_000)
        steps = [(core, CAPOPS, CALL), *((core, CAPOPS, event) for event in LOCAL)]
        steps += [(other, CAPOPS, event) for event in random.sample(REMOTE, random.randrange(len(REMOTE)))]
        steps += [(core, KERNEL_CAPOPS, event) for event in random.choice(IN_KERNEL)] * random.randrange(2)
        steps += [(core, CAPOPS, event) for event in ENDS]
        # An end or a begin is missing, or a step comes long before.
        if random.random() < 0.2:
            del steps[random.choice((0, len(steps) - 1))]
        if random.random() < 0.1:
            steps.insert(0, (other, CAPOPS, random.choice(REMOTE)))
        for core_of_step, subsystem, event in steps:
            found.append((core_of_step, time + skews[core_of_step], subsystem, event, number))
            time += random.randrange(1, 2000) if random.random() < 0.9 else random.randrange(2_000_000)
    for _ in range(operations):
        found.append((random.randrange(cores), 1_000_000 + random.randrange(4_000_000), KERNEL, random.randrange(2, 5), 0))
    return [(0, 900_000, CAPOPS, 0, 0), *sorted(found, key=lambda event: (event[0], event[1]))]


def write(file, random, cores=3, operations=40):
    """Makes a dump."""
    found = events(random, cores, operations)
    lines = ["# Start 900000 Duration 0 Stop 18446744073709551615", "# Min_timestamp 900000"]
    for core in range(cores):
        lines += [f"# Core {core} LOG DUMP {'=' * 50}", f"# Offset {core} 0"]
        for of, time, subsystem, event, number in found:
            if of == core:
                lines.append(f"{core} {time} {subsystem << 48 | event << 32 | number:x}")
        lines.append("spawnd: other output")
    with open(file, "w") as dump:
        dump.write("\n".join(lines) + "\n")
