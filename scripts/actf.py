"""Compares events in the text of actf (the references of the CTF 2 cases) with those in the text of kymo.

Both are brought to one shape: for each event its name and, for each scope, the leaves in the order of the bytes,
each with the name of the nearest field around it:

    actf   begin: { event-header: { id: 3 }, event-payload: { sizes: [1, 2], kind: 5: "CUSTOM" } }
    kymo   name = begin, event.fields = { sizes = [ [0] = 1, [1] = 2 ], kind = ( "CUSTOM" : container = 5 ) }
    both   ("begin", {"payload": [("sizes", 1), ("sizes", 2), ("kind", 5, "CUSTOM")]})

Headers are not compared, because kymo's text leaves them out. Hexadecimal numbers of kymo are the bits of
the field, so that they equal every number with those bits; blobs are such numbers too, while actf writes their
bytes alone.
"""

import re

SCOPES = {
    "stream.packet.context": "packet",
    "event-common-context": "common", "stream.event.context": "common",
    "event-specific-context": "specific", "event.context": "specific",
    "event-payload": "payload", "event.fields": "payload",
}
BOOLEANS = {"false": "0", "true": "1"}
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Reader:
    """Reads one line; `between` stands between a name and its value."""

    def __init__(self, line, between):
        self.line, self.between, self.at = line, between, 0

    def skip(self, token):
        while self.line.startswith(" ", self.at):
            self.at += 1
        found = self.line.startswith(token, self.at)
        self.at += len(token) * found
        return found

    def need(self, token):
        if not self.skip(token):
            raise ValueError(f"column {self.at}: expected {token!r} in {self.line!r}")

    def text(self):
        match = TEXT.match(self.line, self.at)
        self.at = match.end()
        return match[1]

    def labels(self):
        """Names of an enumeration's value, in any of the two notations."""
        found = []
        in_braces = self.skip("{")
        while self.skip('"'):
            self.at -= 1
            found.append(self.text())
            self.skip(",")
        if in_braces:
            self.need("}")
        return tuple(sorted(found))

    def name(self):
        """The name of the next member, None where a value stands without one (a variant's option)."""
        start = self.at
        self.skip("")
        if self.line[self.at : self.at + 1] in ('"', "{", "[", "("):
            return None
        end = self.line.find(self.between, self.at)
        stop = min((place for place in (self.line.find(sign, self.at) for sign in (" }", "{")) if place >= 0), default=len(self.line))
        if end < 0 or end > stop:
            self.at = start
            return None
        name = self.line[self.at : end]
        self.at = end + len(self.between)
        return name

    def moved_on(self, start):
        """A line that is not understood must not keep the reader in a loop."""
        if self.at == start:
            raise ValueError(f"column {self.at}: cannot go on in {self.line!r}")

    def members(self, closing, leaves, around):
        while not self.skip(closing):
            start = self.at
            name = self.name()
            self.value(leaves, around if name is None else name)
            self.skip(",")
            self.moved_on(start)

    def items(self, leaves, around):
        while not self.skip("]"):
            start = self.at
            if re.match(r" *\[\d+\] = ", self.line[self.at :]):
                self.at = self.line.index("=", self.at) + 1
            self.value(leaves, around)
            self.skip(",")
            self.moved_on(start)

    def value(self, leaves, around):
        if self.skip("{"):
            self.members("}", leaves, around)
        elif self.skip("["):
            self.items(leaves, around)
        elif self.skip("("):
            labels = self.labels()
            self.skip("<unknown>")
            self.need(":")
            self.skip("container =")
            leaves.append((around, self.atom(), labels))
            self.need(")")
        elif self.skip('"'):
            self.at -= 1
            leaves.append((around, self.text(), ()))
        else:
            number = self.atom()
            labels = ()
            if self.line.startswith(': "', self.at):
                self.need(":")
                labels = self.labels()
            elif self.line.startswith(": nil", self.at):
                self.need(": nil")
            leaves.append((around, number, labels))

    def atom(self):
        self.skip("")
        match = re.match(r"[^\s,\]\})]*?(?=: |[\s,\]\})]|$)", self.line[self.at :])
        self.at += match.end()
        return match[0]


def scopes(reader, closing):
    found = {}
    while reader.at < len(reader.line) and not (closing and reader.skip(closing)):
        start = reader.at
        name = reader.name()
        leaves = []
        reader.value(leaves, name)
        if name in SCOPES:
            found[SCOPES[name]] = leaves
        elif name == "name":
            found["name"] = leaves[0][1]
        reader.skip(",")
        reader.moved_on(start)
    return found


def of_actf(line):
    line = re.sub(r"^\[[^\]]*\] ", "", line)
    name, rest = ("", line) if line.startswith("{") else line.split(": {", 1)
    reader = Reader(rest, ": ")
    reader.skip("{")
    return name, scopes(reader, "}")


def of_kymo(line):
    """A line of `kymo print --names all --clock-cycles --no-delta`."""
    match = re.search(r"(?:^|, )name = (.*?)(?:, (?:[\w.]+ = \{.*)|)$", line)
    name = match[1] if match else ""
    start = re.search(r"(?:stream\.event\.context|event\.context|event\.fields) = \{", line)
    return "" if name == "<unknown>" else name, scopes(Reader(line[start.start() :], " = "), "") if start else {}


def same_leaf(one, other):
    (name, value, labels), (other_name, other_value, other_labels) = one, other
    if name != other_name or labels != other_labels:
        return False
    if value == other_value or {value, other_value} <= {"nil", "<none>", "None"}:
        return True
    if other_value in BOOLEANS:
        return value == BOOLEANS[other_value]
    if other_value == "0x" + value:
        return True
    try:
        if other_value.startswith("0x"):
            return (int(value, 0) - int(other_value, 16)) % 16 ** (len(other_value) - 2) == 0
        return abs(float(value) - float(other_value)) <= 1e-5 * abs(float(value))
    except ValueError:
        return False


def difference(references, lines):
    """What differs first; None where the events are the same."""
    if len(references) != len(lines):
        return f"{len(lines)} events instead of {len(references)}"
    for number, (reference, line) in enumerate(zip(references, lines)):
        name, expected = of_actf(reference)
        other_name, found = of_kymo(line)
        if name != other_name:
            return f"event {number}: is called {other_name!r} instead of {name!r}"
        for scope in ("common", "specific", "payload"):
            leaves, others = expected.get(scope, []), found.get(scope, [])
            if len(leaves) != len(others):
                return f"event {number}: {scope} has {len(others)} values instead of {len(leaves)}"
            for leaf, other in zip(leaves, others):
                if not same_leaf(leaf, other):
                    return f"event {number}: {scope}: {other} instead of {leaf}"
    return None
