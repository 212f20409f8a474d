"""Parses metadata in the language of CTF 1.8 (TSDL) into types.

Kymograph has opened the trace before, so the text is right; what this parser does not know, it refuses, and the trace is
shown by its native description then.
"""

# mypy: ignore-errors
# As untyped as the interface that it follows.

import re

from kymograph.compat.babeltrace._types import (
    ArrayType,
    EnumerationType,
    EventType,
    FloatType,
    IntegerType,
    SequenceType,
    StreamType,
    StringType,
    StructureType,
    TraceType,
    VariantType,
)

_TOKEN = re.compile(
    r"""\s+ | /\*.*?\*/ | //[^\n]* | \#[^\n]*
      | (?P<text>L?"(?:\\.|[^"\\])*")
      | (?P<character>L?'(?:\\.|[^'\\])*')
      | (?P<number>0[xX][0-9a-fA-F]+[uUlL]* | 0[bB][01]+[uUlL]* | [0-9]+[uUlL]*)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>\.\.\. | := | -> | [^\s])""",
    re.VERBOSE | re.DOTALL,
)
#: Words that make up the names of C's types.
_OF_C = frozenset("void char short int long float double signed unsigned const volatile _Bool _Complex _Imaginary".split())
_BASES = {
    **dict.fromkeys(("decimal", "dec", "d", "i", "u", "10"), 10),
    **dict.fromkeys(("hexadecimal", "hex", "x", "X", "p", "16"), 16),
    **dict.fromkeys(("octal", "oct", "o", "8"), 8),
    **dict.fromkeys(("binary", "b", "2"), 2),
}
_ENCODINGS = {"UTF8": 1, "utf8": 1, "UTF-8": 1, "utf-8": 1, "ASCII": 2, "ascii": 2, "none": 0}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class UnknownMetadata(Exception):
    """The metadata has a form that this parser does not know."""


def parsed(text):
    """The trace class that the text declares."""
    if text.lstrip()[:1] in ("{", "[", "\x1e"):
        raise UnknownMetadata("metadata of CTF 2")
    return _Parser(text).trace()


class _Scope:
    """The names of types that a block declares, within those around it."""

    def __init__(self, parent=None):
        self.parent, self.types = parent, {}

    def find(self, name):
        scope = self
        while scope is not None:
            if name in scope.types:
                return scope.types[name]
            scope = scope.parent
        raise UnknownMetadata(f"no type `{name}`")


class _Parser:
    def __init__(self, text):
        tokens = ((match.lastgroup, match[0]) for match in _TOKEN.finditer(text))
        self.tokens = [(kind, token) for kind, token in tokens if kind is not None]
        self.tokens.append((None, ""))
        self.at = 0
        self.is_little = self._byte_order_of_trace()

    def _byte_order_of_trace(self):
        """The default of all integers, also of those that are declared before the trace."""
        words = [token for _, token in self.tokens]
        for at in range(len(words) - 1):
            if words[at] == "trace" and words[at + 1] == "{":
                for inner in range(at, len(words) - 2):
                    if words[inner] == "byte_order" and words[inner + 1] == "=":
                        return words[inner + 2] == "le"
        return True

    # Tokens.

    @property
    def next(self):
        return self.tokens[self.at][1]

    @property
    def kind(self):
        return self.tokens[self.at][0]

    def take(self):
        token = self.next
        if self.kind is None:
            raise UnknownMetadata("the metadata ends too early")
        self.at += 1
        return token

    def skip(self, token):
        """Whether the token is next; it is taken then."""
        is_next = self.next == token and self.kind not in ("text", "character")
        self.at += is_next
        return is_next

    def expect(self, token):
        if not self.skip(token):
            raise UnknownMetadata(f"`{self.next}` where `{token}` is expected")

    def words_until(self, *ends):
        words = []
        while self.next not in ends or self.kind in ("text", "character"):
            words.append(self.take())
        return words

    def skip_block(self):
        self.expect("{")
        depth = 1
        while depth:
            is_text = self.kind in ("text", "character")
            token = self.take()
            depth += 0 if is_text else (token == "{") - (token == "}")

    # The whole.

    def trace(self):
        root = _Scope()
        made = TraceType()
        events = []
        while self.kind is not None:
            if self.skip(";"):
                continue
            if self.next in ("env", "clock", "callsite") and self.tokens[self.at + 1][1] == "{":
                self.take()
                self.skip_block()
            elif self.next in ("trace", "stream", "event") and self.tokens[self.at + 1][1] == "{":
                self._block(self.take(), root, made, events)
            else:
                self._declaration(root)
        for facts in events:
            self._add_event(made, facts)
        if not made.streams:
            made.streams[0] = StreamType(0)
        return made

    def _block(self, kind, root, made, events):
        facts = self._facts(root)
        if kind == "trace":
            made.packet_header = facts.get("packet.header")
        elif kind == "stream":
            stream = StreamType(
                _number(facts.get("id", "0")),
                facts.get("packet.context"),
                facts.get("event.header"),
                facts.get("event.context"),
            )
            made.streams[stream.id] = stream
        else:
            events.append(facts)

    @staticmethod
    def _add_event(made, facts):
        stream = _number(facts["stream_id"]) if "stream_id" in facts else next(iter(made.streams), 0)
        name, id = _text(facts["name"]) if "name" in facts else None, _number(facts.get("id", "0"))
        event = EventType(name, id, facts.get("context"), facts.get("fields"))
        made.add(made.streams.setdefault(stream, StreamType(stream)), event)

    def _facts(self, around):
        """A block of values (`id = 5;`), types (`fields := struct {...};`) and declarations."""
        facts, scope = {}, _Scope(around)
        self.expect("{")
        while not self.skip("}"):
            if self.skip(";"):
                continue
            begin = self.at
            left = "".join(self.words_until("=", ":=", ";", "{", "}"))
            if self.skip("="):
                facts[left] = " ".join(self.words_until(";"))
            elif self.next == ":=" and not left.startswith(("typealias", "typedef")):
                self.take()
                facts[left] = self._type(scope)
            else:
                self.at = begin
                self._declaration(scope)
        return facts

    # Declarations and types.

    def _declaration(self, scope):
        if self.skip("typealias"):
            aliased = self._type(scope)
            aliased = self._with_stars(aliased)
            self.expect(":=")
            scope.types[_alias(self.words_until(";"))] = aliased
        elif self.skip("typedef"):
            for name, type_ in self._declarators(self._type(scope)):
                scope.types[name] = type_
        else:
            self._type(scope)
        self.expect(";")

    def _with_stars(self, type_):
        while self.skip("*"):
            pass
        return type_

    def _declarators(self, type_):
        """Names with their types: `a, b[5], c[length]`."""
        while True:
            self._with_stars(type_)
            name = self.take()
            lengths = []
            while self.skip("["):
                lengths.append("".join(self.words_until("]")))
                self.expect("]")
            of_name = type_
            for length in reversed(lengths):
                of_name = ArrayType(of_name, _number(length)) if length[:1].isdigit() else SequenceType(of_name, length)
            yield name, of_name
            if not self.skip(","):
                return

    def _type(self, scope):
        while self.next in ("const", "volatile"):
            self.take()
        compound = {
            "integer": self._integer,
            "floating_point": self._float,
            "string": self._string,
            "struct": self._struct,
            "variant": self._variant,
            "enum": self._enum,
        }
        if self.next in compound:
            return compound[self.take()](scope)
        words = [self.take()]
        if words[0] in _OF_C:
            while self.next in _OF_C:
                words.append(self.take())
        stars = 0
        while self.skip("*"):
            stars += 1
        found = None
        if stars:
            try:
                found = scope.find(_alias(words + ["*"] * stars))
            except UnknownMetadata:
                found = None
        return found or scope.find(_alias(words))

    def _attributes(self):
        attributes = {}
        self.expect("{")
        while not self.skip("}"):
            if self.skip(";"):
                continue
            name = self.take()
            self.expect("=")
            attributes[name] = "".join(self.words_until(";", "}"))
        return attributes

    def _order(self, attributes):
        order = attributes.get("byte_order", "native")
        return self.is_little if order == "native" else order == "le"

    def _integer(self, scope):
        facts = self._attributes()
        clock = re.fullmatch(r"clock\.(\w+)\.value", facts.get("map", ""))
        return IntegerType(
            _number(facts["size"]),
            _number(facts["align"]) if "align" in facts else None,
            facts.get("signed", "false") in ("true", "TRUE", "1"),
            _BASES.get(_text(facts["base"]), 0) if "base" in facts else 0,
            _ENCODINGS.get(_text(facts.get("encoding", "none")), 0),
            self._order(facts),
            clock[1] if clock else None,
        )

    def _float(self, scope):
        facts = self._attributes()
        align = _number(facts["align"]) if "align" in facts else None
        return FloatType(_number(facts["exp_dig"]), _number(facts["mant_dig"]), align, self._order(facts))

    def _string(self, scope):
        facts = self._attributes() if self.next == "{" else {}
        return StringType(_ENCODINGS.get(_text(facts.get("encoding", "UTF8")), 1))

    def _members(self, scope):
        members, inner = [], _Scope(scope)
        self.expect("{")
        while not self.skip("}"):
            if self.skip(";"):
                continue
            if self.next in ("typealias", "typedef"):
                self._declaration(inner)
                continue
            type_ = self._type(inner)
            if self.skip(";"):
                continue
            members.extend(self._declarators(type_))
            self.expect(";")
        return members

    def _name(self):
        return self.take() if self.kind == "word" and self.next != "align" else None

    def _named(self, kind, name, made, scope):
        if name is not None:
            scope.types[f"{kind} {name}"] = made
        return made

    def _struct(self, scope):
        name = self._name()
        if self.next != "{":
            return scope.find(f"struct {name}")
        members, align = self._members(scope), 1
        if self.skip("align"):
            self.expect("(")
            align = _number(self.take())
            self.expect(")")
        return self._named("struct", name, StructureType(members, align), scope)

    def _variant(self, scope):
        name, tag = self._name(), None
        if self.skip("<"):
            tag = "".join(self.words_until(">"))
            self.expect(">")
        if self.next == "{":
            options = self._members(scope)
            self._named("variant", name, VariantType(options, tag), scope)
        else:
            options = scope.find(f"variant {name}").options
        return VariantType(options, tag)

    def _enum(self, scope):
        name = self._name()
        container = self._type(scope) if self.skip(":") else None
        if self.next != "{":
            return scope.find(f"enum {name}")
        if container is None:
            container = scope.find("int")
        mappings, value = [], 0
        self.expect("{")
        while not self.skip("}"):
            is_text = self.kind == "text"
            label = self.take()
            label = _text(label) if is_text else label
            lower = upper = value
            if self.skip("="):
                lower = upper = self._bound()
                if self.skip("..."):
                    upper = self._bound()
            mappings.append((label, lower, upper))
            value = upper + 1
            self.skip(",")
        return self._named("enum", name, EnumerationType(container, mappings), scope)

    def _bound(self):
        sign = 1
        while self.next in ("-", "+"):
            sign = -sign if self.take() == "-" else sign
        return sign * _number(self.take())


def _alias(words):
    """The name of a type: C's words in one order."""
    words = [word for word in words if word not in ("const", "volatile")]
    return " ".join(sorted(words) if all(word in _OF_C for word in words) else words)


def _number(token):
    token = token.strip().rstrip("uUlL")
    if token.startswith("'"):
        return ord(_text('"' + token[1:-1] + '"'))
    if len(token) > 1 and token[0] == "0" and token.isdigit():
        return int(token, 8)
    try:
        return int(token.replace(" ", ""), 0)
    except ValueError as error:
        raise UnknownMetadata(f"`{token}` where a number is expected") from error


def _text(token):
    """The text of a literal; a word is itself."""
    token = token.strip()
    if not token.endswith('"'):
        return token
    begin = token.index('"') + 1

    def unescaped(match):
        escape = match[1]
        if escape[0] in "01234567":
            return bytes([int(escape, 8) & 255]).decode("latin-1")
        if escape[0] == "x":
            return bytes([int(escape[1:], 16) & 255]).decode("latin-1")
        return _ESCAPES.get(escape, escape)

    plain = re.sub(r"\\([0-7]{1,3}|x[0-9a-fA-F]+|.)", unescaped, token[begin:-1], flags=re.DOTALL)
    try:
        # Octal escapes are the bytes of UTF-8.
        return plain.encode("latin-1").decode("utf-8") if "\\" in token else plain
    except UnicodeError:
        return plain
