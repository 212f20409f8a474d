#!/usr/bin/env python3
"""Many viewers of one `kymo view` at a time: how long each waits for what it draws, and whether anybody starves.

    viewers.py KYMO [TRACE] [--viewers N] [--seconds S] [--seed N]

Each viewer has a connection of its own and looks at random places: a screen of tiles, a moment, the next screen beside it or
closer to it. Meanwhile somebody reads a stream of events as slowly as the server allows, and analyses run one after the other. Without
TRACE it is the large kernel trace of the corpus or, where that is absent, the demo.

Wrong is: an answer that is none; a viewer who gets much less than the others; an analysis that never ends; a slow reader who is the
reason for either. How long answers take is told, and limited only by what nobody could call responsive.
"""

import argparse
import asyncio
import json
import os
import pathlib
import random
import socket
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "oracles"))

import served  # noqa: E402

LARGE = "ctf/tracecompass/many-threads"
DEMO = ROOT / "examples" / "traces" / "demo"
# What a screen asks for.
TRACKS = 60
BUCKETS = 400
# Between two screens, as somebody drags.
PAUSE_SECONDS = (0.05, 0.4)
# The slow reader: so many bytes, so often.
SIP_BYTES, SIP_SECONDS = 2048, 0.1
# Nobody would call it responsive, on any machine.
P95_SECONDS_MAX = 5
# A viewer who gets less than that part of what the median viewer gets starves.
FAIR = 0.5


class Connection:
    """HTTP 1.1 over a connection that is kept, as little of it as it takes."""

    def __init__(self, server):
        self.server, self.reader, self.writer = server, None, None

    async def request(self, method, path, body=None):
        """The status and the body."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.server.host, self.server.port)
        data = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} /api/v1/{path} HTTP/1.1\r\nHost: {self.server.host}:{self.server.port}\r\n"
            f"Authorization: Bearer {self.server.token}\r\n"
        )
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        self.writer.write(head.encode() + b"\r\n" + data)
        await self.writer.drain()
        return await self._answer()

    async def _answer(self):
        status = int((await self.reader.readuntil(b"\r\n")).split()[1])
        headers = {}
        while line := (await self.reader.readuntil(b"\r\n")).strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                body += await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            await self.reader.readuntil(b"\r\n")
        else:
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return status, body

    def close(self):
        if self.writer:
            self.writer.close()
            self.writer = None


class Viewer:
    """Somebody who looks around."""

    def __init__(self, server, status, tracks, seed):
        self.random, self.connection = random.Random(seed), Connection(server)
        self.tracks, self.status = tracks, status
        self.seconds, self.wrong, self.bytes = [], [], 0
        self.span = status["end_ns"] - status["begin_ns"] + 1
        self.level = (self.span // BUCKETS).bit_length()
        self.first = 0

    def move(self):
        """Beside, closer, or away from it."""
        widest = (self.span // BUCKETS).bit_length()
        step = self.random.choice(("beside", "beside", "beside", "closer", "away", "elsewhere"))
        if step == "closer" and self.level > max(widest - 16, 0):
            self.level, self.first = self.level - 1, self.first * 2 + self.random.randrange(BUCKETS)
        elif step == "away" and self.level < widest:
            self.level, self.first = self.level + 1, max(self.first // 2 - BUCKETS // 4, 0)
        elif step == "elsewhere":
            self.first = self.random.randrange(max((self.span >> self.level) - BUCKETS // 2, 1))
        else:
            self.first = max(self.first + self.random.randint(-BUCKETS, BUCKETS), 0)
        self.first = min(self.first, max((self.span >> self.level) - BUCKETS // 2, 0))

    async def look(self, until):
        while time.monotonic() < until and not self.wrong:
            await self._one()
            await asyncio.sleep(self.random.uniform(*PAUSE_SECONDS))
            self.move()
        self.connection.close()

    async def _one(self):
        some = self.random.randrange(max(len(self.tracks) - TRACKS, 1))
        numbers = ",".join(map(str, self.tracks[some : some + TRACKS]))
        question = f"tiles?level={self.level}&first={self.first}&count={BUCKETS}&tracks={numbers}"
        begun = time.monotonic()
        try:
            answer = self.connection.request("GET", question)
            status, body = await asyncio.wait_for(answer, served.ANSWER_SECONDS)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            self.wrong.append(f"{question}: {type(error).__name__} {error}")
            return
        self.seconds.append(time.monotonic() - begun)
        self.bytes += len(body)
        if status != 200 or body[:4] != b"KYT2":
            self.wrong.append(f"{question}: {status} {body[:200]!r}")


class SlowReader:
    """Somebody who takes a stream of events in sips, and never all of it."""

    def __init__(self, server):
        self.server, self.bytes, self.ended = server, 0, False

    async def read(self, until):
        plug = socket.socket()
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SIP_BYTES)
        plug.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(plug, (self.server.host, self.server.port))
        head = f"GET /api/v1/events?limit=1000000 HTTP/1.1\r\nHost: {self.server.host}:{self.server.port}\r\nAuthorization: Bearer {self.server.token}\r\n\r\n"
        await loop.sock_sendall(plug, head.encode())
        with plug:
            while time.monotonic() < until and not self.ended:
                try:
                    sip = await asyncio.wait_for(loop.sock_recv(plug, SIP_BYTES), max(until - time.monotonic(), 0.1))
                except (TimeoutError, OSError):
                    break
                self.bytes += len(sip)
                self.ended = not sip
                await asyncio.sleep(SIP_SECONDS)


class Analyst:
    """Somebody for whom analyses run, one after the other."""

    def __init__(self, server, kind):
        self.connection, self.kind, self.seconds, self.wrong = Connection(server), kind, [], []

    async def ask(self, until):
        while time.monotonic() < until and not self.wrong:
            begun = time.monotonic()
            status, body = await self.connection.request("POST", "jobs", {"kind": self.kind, "options": {}})
            if status != 201:
                self.wrong.append(f"{self.kind}: {status} {body[:200]!r}")
                return
            number = json.loads(body)["id"]
            await self._wait(number, begun)
            await self.connection.request("DELETE", f"jobs/{number}")
        self.connection.close()

    async def _wait(self, number, begun):
        while time.monotonic() - begun < served.ANSWER_SECONDS:
            job = json.loads((await self.connection.request("GET", f"jobs/{number}"))[1])
            if job["state"] not in ("waiting", "running"):
                if job["state"] != "done":
                    self.wrong.append(f"{self.kind}: {job}")
                self.seconds.append(time.monotonic() - begun)
                return
            await asyncio.sleep(0.02)
        self.wrong.append(f"{self.kind}: it has not ended after {served.ANSWER_SECONDS} s")


def part(numbers, share):
    """A quantile: the least number that so many are not above."""
    ordered = sorted(numbers)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


async def everybody(server, status, tracks, arguments, kind):
    begun = time.monotonic()
    until = begun + arguments.seconds
    viewers = [Viewer(server, status, tracks, arguments.seed * 1000 + number) for number in range(arguments.viewers)]
    slow, analyst = SlowReader(server), Analyst(server, kind)
    await asyncio.gather(*(viewer.look(until) for viewer in viewers), slow.read(until), analyst.ask(until))
    return viewers, slow, analyst, time.monotonic() - begun


def told(viewers, slow, analyst, seconds, server):
    """Prints what it was like; returns what is wrong."""
    print("viewer  answers   p50 ms   p95 ms   max ms")
    for number, viewer in enumerate(viewers):
        if viewer.seconds:
            figures = [part(viewer.seconds, share) * 1000 for share in (0.5, 0.95, 1)]
            print(f"{number:6}{len(viewer.seconds):9}" + "".join(f"{figure:9.1f}" for figure in figures))
    wrong = [line for viewer in viewers for line in viewer.wrong] + analyst.wrong
    counts = [len(viewer.seconds) for viewer in viewers]
    every = [second for viewer in viewers for second in viewer.seconds]
    if not every:
        return [*wrong, "nobody got an answer"]
    figures = [part(every, share) * 1000 for share in (0.5, 0.95, 1)]
    worst = max(part(viewer.seconds, 0.95) for viewer in viewers if viewer.seconds)
    size = sum(viewer.bytes for viewer in viewers) / len(every)
    print(f"   all{len(every):9}" + "".join(f"{figure:9.1f}" for figure in figures))
    print(f"{len(every) / seconds:.0f} answers a second of {size / 1024:.1f} KiB; the slowest viewer's p95 is {worst * 1000:.1f} ms; answers of a"
          f" viewer: {min(counts)} to {max(counts)}")
    print(f"meanwhile {len(analyst.seconds)} analyses `{analyst.kind}`, each {part(analyst.seconds or [0], 0.5):.2f} s, and {slow.bytes} bytes for the slow reader")
    if memory := server.resident_bytes():
        print(f"memory of the server: {memory[0] / 2**20:.0f} MiB, at most {memory[1] / 2**20:.0f} MiB")
    wrong += [f"viewer {number} starves: {count} answers, others {part(counts, 0.5)}"
              for number, count in enumerate(counts) if count < FAIR * part(counts, 0.5)]
    if worst > P95_SECONDS_MAX:
        wrong.append(f"a viewer's p95 is {worst:.1f} s")
    if not analyst.seconds:
        wrong.append("no analysis ended")
    if not slow.bytes:
        wrong.append("the slow reader got nothing")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kymo")
    parser.add_argument("trace", nargs="?", type=pathlib.Path)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    large = pathlib.Path(os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus")) / LARGE
    trace = arguments.trace or (large if large.is_dir() else DEMO)
    with tempfile.TemporaryDirectory() as cache:
        with served.Served(arguments.kymo, [trace], environment={"XDG_CACHE_HOME": cache}) as server:
            status = server.complete()
            tracks = sorted(server.catalogue()[0])
            known = {analysis["kind"] for analysis in server.json("analyses")["analyses"]}
            kind = "cpu" if trace == large and "cpu" in known else "rates"
            print(f"{trace}: {len(tracks)} tracks; {arguments.viewers} viewers for {arguments.seconds:g} s")
            wrong = told(*asyncio.run(everybody(server, status, tracks, arguments, kind)), server)
    for line in wrong[:10]:
        print(f"WRONG: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
