"""A running `kymo view`, asked over its HTTP API, and its binary tiles taken apart. Shares no code with the project.

    with Served(kymo, [path]) as served:
        status = served.complete()                 the timeline, when all of it is there
        tiles = served.tiles(level, first, count, [track["number"], ...])
"""

import collections
import http.client
import json
import os
import select
import signal
import struct
import subprocess
import time
import urllib.parse

START_SECONDS = 30
ANSWER_SECONDS = 60
COMPLETE_SECONDS = 300
NONE = 0xFFFFFFFF

Span = collections.namedtuple("Span", "begin end quality")
BucketState = collections.namedtuple("BucketState", "bucket value second last begins busiest share share_second busy zero")
Run = collections.namedtuple("Run", "begin end value flags")
BucketInstants = collections.namedtuple("BucketInstants", "bucket value count count_of_value")
BucketCounter = collections.namedtuple("BucketCounter", "bucket changes min max last mean")
BucketArrows = collections.namedtuple("BucketArrows", "bucket source target count longest_ns")
BucketHeat = collections.namedtuple("BucketHeat", "bucket bin count")
Instant = collections.namedtuple("Instant", "time value flags")
Arrow = collections.namedtuple("Arrow", "begin end source target value flags")

FORMS = (
    ("<IIIIIIHHHH", BucketState),
    ("<ddII", Run),
    ("<IIII", BucketInstants),
    ("<IIdddd", BucketCounter),
    ("<IIIId", BucketArrows),
    ("<III", BucketHeat),
    ("<dII", Instant),
    ("<ddIIII", Arrow),
)
STATES, RUNS, INSTANTS_IN_BUCKETS, COUNTER, ARROWS_IN_BUCKETS, HEAT, INSTANTS, ARROWS = range(len(FORMS))
EXACT = 0


class Wrong(Exception):
    """The server says something that it must not say."""


class TrackTiles:
    """What an answer says of one track. `carry` is the value at the begin, None where there is none; of a counter, the number."""

    def __init__(self, number, form, carry, items):
        self.number, self.form, self.items, self.carry = number, form, items, carry


class Tiles:
    """An answer: how good it is, and what it says of each track."""

    def __init__(self, data):
        self._data, self._at = data, 0
        magic, self.level, zero, self.first, self.count, spans, tracks = self._take("<4sB3sQIII")
        if magic != b"KYT2" or zero != bytes(3):
            raise Wrong(f"tiles begin with {data[:8]!r}, not with `KYT2`, a level and zeros")
        self.spans = [Span(*self._take("<III")) for _ in range(spans)]
        self.tracks = dict(self._track() for _ in range(tracks))
        if len(self.tracks) != tracks:
            raise Wrong("a track is there twice")
        if self._at != len(data):
            raise Wrong(f"{len(data) - self._at} bytes follow the last track")

    def _take(self, layout):
        size = struct.calcsize(layout)
        if self._at + size > len(self._data):
            raise Wrong(f"{layout} at byte {self._at} of {len(self._data)} is cut")
        found = struct.unpack_from(layout, self._data, self._at)
        self._at += size
        return found

    def _track(self):
        number, form, carry, items = self._take("<IIII")
        if form >= len(FORMS):
            raise Wrong(f"track {number} has form {form}, which there is not")
        layout, make = FORMS[form]
        held = self._take("<d")[0] if form == COUNTER and carry else None
        carry = held if form == COUNTER else carry - 1 if carry else None
        return number, TrackTiles(number, form, carry, [make(*self._take(layout)) for _ in range(items)])

    def exact_until(self):
        """The first bucket that is not exact; the count, where all are. Spans follow each other, and leave nothing out."""
        at, found = 0, None
        for span in self.spans:
            if span.begin != at or span.end <= at:
                raise Wrong(f"{self.count} buckets have spans that do not follow each other: {self.spans[:5]}")
            if span.quality != EXACT and found is None:
                found = span.begin
            at = span.end
        if at != self.count:
            raise Wrong(f"{self.count} buckets have spans up to {at}")
        return self.count if found is None else found


class Refused(Exception):
    """A status that is not 200."""

    def __init__(self, status, body):
        self.status, self.body = status, body
        super().__init__(f"{status}: {body[:300]!r}")


class Client:
    """One connection to a server, which is kept."""

    def __init__(self, host, port, token):
        self.token = token
        self._connection = http.client.HTTPConnection(host, port, timeout=ANSWER_SECONDS)

    def get(self, path, **parameters):
        """The bytes of an answer."""
        query = urllib.parse.urlencode(parameters)
        self._connection.request(
            "GET", f"/api/v1/{path}" + (f"?{query}" if query else ""), headers={"Authorization": f"Bearer {self.token}"}
        )
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise Refused(answer.status, body)
        return body

    def json(self, path, **parameters):
        return json.loads(self.get(path, **parameters))

    def post(self, path, value):
        """The object that answers another one."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        self._connection.request("POST", f"/api/v1/{path}", body=json.dumps(value), headers=headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status not in (200, 201, 202):
            raise Refused(answer.status, body)
        return json.loads(body)

    def tiles(self, level, first, count, tracks, **chosen):
        """Some buckets of tracks; of events that are `chosen` by `filter` or `event` only."""
        numbers = ",".join(map(str, tracks))
        tiles = Tiles(self.get("tiles", level=level, first=first, count=count, tracks=numbers, **chosen))
        if (tiles.level, tiles.first, tiles.count) != (level, first, count):
            asked = f"level {level}, {count} buckets from {first}"
            raise Wrong(f"asked for {asked}; answered level {tiles.level}, {tiles.count} buckets from {tiles.first}")
        if set(tiles.tracks) != set(tracks):
            raise Wrong(f"asked for tracks {sorted(tracks)}; answered {sorted(tiles.tracks)}")
        return tiles

    def catalogue(self):
        """All tracks and values that are known now, by number."""
        tracks, values = {}, {}
        while self.more(tracks, values):
            pass
        return tracks, values

    def more(self, tracks, values):
        """Adds what is new among them; whether there was something."""
        behind = [max(known, default=-1) + 1 for known in (tracks, values)]
        page = self.json("catalogue", tracks_from=behind[0], values_from=behind[1])
        tracks.update((track["number"], track) for track in page["tracks"])
        values.update((value["number"], value) for value in page["values"])
        return bool(page["tracks"] or page["values"])

    def close(self):
        self._connection.close()


class Served(Client):
    """A server of its own for some traces; it ends with the block."""

    def __init__(self, kymo, paths, *options, environment=None):
        self._process = subprocess.Popen(
            [kymo, "view", "--no-browser", *options, *map(str, paths)],
            stdout=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        url = urllib.parse.urlsplit(self._first_line())
        parameters = urllib.parse.parse_qs(url.query) or urllib.parse.parse_qs(url.fragment)
        self.host, self.port, self.url = url.hostname, url.port, url.geturl()
        super().__init__(url.hostname, url.port, parameters["token"][0])

    def _first_line(self):
        ready, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        line = self._process.stdout.readline().decode().strip() if ready else ""
        if not line.startswith("http://"):
            self._end()
            raise Wrong(f"`kymo view` should say its address on the first line; it said {line!r}")
        return line

    def another(self):
        """A further connection."""
        return Client(self.host, self.port, self.token)

    def complete(self):
        """The timeline's status, as soon as all of it is there."""
        until = time.monotonic() + COMPLETE_SECONDS
        while time.monotonic() < until:
            status = self.json("timeline")
            if status["state"] == "complete":
                return status
            if status["state"] == "failed":
                raise Wrong(f"the timeline failed: {status['failure']}")
            # Often enough; more would take the time that it asks for.
            time.sleep(0.05)
        raise Wrong(f"the timeline is not complete after {COMPLETE_SECONDS} s: {status}")

    def resident_bytes(self):
        """Memory of the server now and at most, where the system tells."""
        try:
            lines = open(f"/proc/{self._process.pid}/status").read().splitlines()
        except OSError:
            return None
        found = dict(line.split(":", 1) for line in lines)
        return tuple(int(found[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))

    def _end(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        self._end()
