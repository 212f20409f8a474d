#!/usr/bin/env python3
"""Asks the HTTP API of `kymo view` whatever its description allows and what it does not, and holds the answers against it.

    api.py KYMO SCHEMATHESIS [--examples N] [--seconds S] [--seed N]

SCHEMATHESIS is the program of that name (scripts/setup.sh api). It reads the description from a server with the demo trace, and asks
each operation with values that are valid, at their limits and wrong, with and without the token, and one operation after the other where
the answer of one is what the next asks for. Wrong is a status, type, header or object that the description does not have, whatever is
accepted that is not valid, and whatever ends the server.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "oracles"))

import served  # noqa: E402

DEMO = ROOT / "examples" / "traces" / "demo"
# Server-sent events never end, so that whoever waits for the end waits for ever; the server's own tests read them.
ENDLESS = ("/api/v1/changes",)
# Whether a name is that of an event, or options go together, no schema says: such requests are valid, and refused.
EXCLUDED = "positive_data_acceptance"
CONFIGURATION = ROOT / "scripts" / "schemathesis.toml"
# Names that were made up may have any length.
LINE_MAX = 1000
# Of one request.
TIMEOUT_SECONDS = 20


def command(arguments, server):
    words = [arguments.schemathesis, "--config-file", str(CONFIGURATION), "run", f"http://{server.host}:{server.port}/api/v1/openapi.json"]
    words += ["--header", f"Authorization: Bearer {server.token}", "--checks", "all", "--exclude-checks", EXCLUDED, "--no-color"]
    words += ["--max-examples", str(arguments.examples), "--max-time", str(arguments.seconds), "--seed", str(arguments.seed)]
    words += ["--request-timeout", str(TIMEOUT_SECONDS), "--warnings", "off"]
    for path in ENDLESS:
        words += ["--exclude-path", path]
    return words


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kymo")
    parser.add_argument("schemathesis")
    parser.add_argument("--examples", type=int, default=40, help="requests of each operation that are made up, besides the systematic ones")
    parser.add_argument("--seconds", type=int, default=120, help="for all of it")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # Notes are kept beside the trace: a copy, so that made-up ones are not in the repository.
        trace = shutil.copytree(DEMO, pathlib.Path(folder) / "demo")
        with served.Served(arguments.kymo, [trace], environment={"XDG_CACHE_HOME": folder}) as server:
            server.complete()
            # It keeps what it finds where it runs.
            paths = [str(ROOT / "scripts"), *filter(None, [os.environ.get("PYTHONPATH")])]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
            done = subprocess.run(
                command(arguments, server), cwd=folder, env=environment, timeout=arguments.seconds + 120, stdout=subprocess.PIPE, text=True, errors="replace"
            )
            for line in done.stdout.splitlines():
                print(line[:LINE_MAX])
            health = server.another().json("health")
            memory = server.resident_bytes()
    print(f"the server is still there: {health}" + (f"; {memory[1] / 2**20:.0f} MiB at most" if memory else ""))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
