#!/usr/bin/env python3
"""Compares kymograph.compat.bt2 with Babeltrace 2's own Python interface, message by message, field by field.

    bt2_compat.py SITE_PACKAGES [--corpus FOLDER] [--only TEXT] [--messages N]
    bt2_compat.py SITE_PACKAGES --trace PATH

SITE_PACKAGES is where the wheel is installed. Each trace is read by both, in one process of its own: Babeltrace's library aborts
when it is asked while an error of its own is kept. Everything that scripts can see is compared: types and what they are
instances of, values, texts, operators with all sorts of operands, exceptions, classes, traces, streams.

Where Babeltrace 2.0.4 is known to be wrong (see docs/python.md) its answer is not asked for: texts that are empty and show what
was there before, times that went through doubles where the clock has not 10^9 Hz.
"""

import argparse
import collections.abc
import json
import math
import numbers
import operator
import os
import pathlib
import random
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Messages of a trace that are looked at in every respect; of the others only what they say.
DEEP = 150
OPERANDS = [0, 1, -1, 2, 7, 2**63, 2**70, 3.5, -0.5, math.nan, True, False, "x", "", None, [], {}, 1 + 2j]
BINARY = [getattr(operator, name) for name in
          "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor lt le gt ge eq ne".split()] + [divmod]
UNARY = [abs, bool, complex, float, hash, int, math.ceil, math.floor, math.trunc, operator.index, operator.invert,
         operator.neg, operator.pos, repr, round, str, len, list, iter]
FIELDS = """_BoolFieldConst _BitArrayFieldConst _IntegerFieldConst _UnsignedIntegerFieldConst _SignedIntegerFieldConst
_RealFieldConst _SinglePrecisionRealFieldConst _DoublePrecisionRealFieldConst _EnumerationFieldConst
_UnsignedEnumerationFieldConst _SignedEnumerationFieldConst _StringFieldConst _StructureFieldConst _OptionFieldConst
_VariantFieldConst _ArrayFieldConst _StaticArrayFieldConst _DynamicArrayFieldConst""".split()
ABSTRACT = [numbers.Number, numbers.Real, numbers.Integral, collections.abc.Mapping, collections.abc.Sequence,
            collections.abc.Sized, collections.abc.Iterable]


class Difference(Exception):
    pass


def same(what, theirs, ours):
    if theirs != ours and not (theirs != theirs and ours != ours):
        raise Difference(f"{what}: bt2 has {theirs!r}, kymograph {ours!r}")


def outcome(function, *arguments):
    """What comes out, as text: a result with its type, or the exception."""
    try:
        result = function(*arguments)
    except RecursionError:
        raise
    except Exception as error:
        name = "_Error" if type(error).__name__ == "_Error" else type(error).__name__
        return f"raises {name}"
    if isinstance(result, (collections.abc.Iterator, collections.abc.KeysView)):
        return "an iterator"
    if type(result).__module__.split(".")[0] in ("bt2", "kymograph"):
        # Some are of the changeable kind in Babeltrace, by mistake: those of stream classes.
        return f"{type(result).__name__.removeprefix('_').removesuffix('Const')} {result!r}"
    if isinstance(result, list):
        return f"list of {len(result)}: {list(map(repr, result))}"
    return f"{type(result).__name__} {result!r}"


class Comparison:
    def __init__(self, theirs, ours):
        self.theirs, self.ours = theirs, ours
        self.compared = {"messages": 0, "fields": 0, "operations": 0, "classes": 0, "stale": 0}
        self.classes = set()
        self.kinds = {}
        self.random = random.Random(4)
        self.ghz = True

    def attributes(self, what, theirs, ours, names):
        for name in names.split():
            same(f"{what}.{name}", outcome(getattr, theirs, name), outcome(getattr, ours, name))

    # Fields

    def field(self, what, theirs, ours, deep):
        if theirs is None or ours is None:
            return same(what, theirs is None, ours is None)
        self.compared["fields"] += 1
        kind = type(theirs).__name__
        same(f"type of {what}", kind, type(ours).__name__)
        if kind == "_StringFieldConst" and str(theirs) != str(ours) and str(ours) == "":
            # Babeltrace 2.0.4 shows what was there before.
            self.compared["stale"] += 1
            return
        if kind in ("_StructureFieldConst",):
            same(f"keys of {what}", list(theirs), list(ours))
            for name in theirs:
                self.field(f"{what}[{name!r}]", theirs[name], ours[name], deep)
        elif kind in ("_StaticArrayFieldConst", "_DynamicArrayFieldConst"):
            same(f"length of {what}", (len(theirs), theirs.length), (len(ours), ours.length))
            for index, (one, other) in enumerate(zip(theirs, ours)):
                self.field(f"{what}[{index}]", one, other, deep and index < 3)
        elif kind == "_VariantFieldConst":
            same(f"option of {what}", theirs.selected_option_index, ours.selected_option_index)
            self.field(f"option of {what}", theirs.selected_option, ours.selected_option, deep)
        elif kind == "_OptionFieldConst":
            same(f"{what} has_field", theirs.has_field, ours.has_field)
            self.field(f"content of {what}", theirs.field, ours.field, deep)
        elif kind == "_BitArrayFieldConst":
            same(what, theirs.value_as_integer, ours.value_as_integer)
        else:
            same(what, repr(theirs), repr(ours))
            same(what, str(theirs), str(ours))
            same(what, theirs._value, ours._value)
            if hasattr(theirs, "labels") or hasattr(ours, "labels"):
                same(f"labels of {what}", sorted(theirs.labels), sorted(ours.labels))
        if deep and "stale" not in what and not self.stale_inside(theirs, ours):
            self.behaviour(what, kind, theirs, ours)

    def stale_inside(self, theirs, ours):
        return repr(theirs) != repr(ours)

    def behaviour(self, what, kind, theirs, ours):
        """Operators, conversions, instances: of a few fields of each kind, and of one in a hundred."""
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if self.kinds[kind] > 6 and self.random.random() > 0.01:
            return
        for name in FIELDS:
            same(f"isinstance({what}, bt2.{name})", isinstance(theirs, getattr(self.theirs, name)),
                 isinstance(ours, getattr(self.ours, name)))
        for each in ABSTRACT:
            same(f"isinstance({what}, {each.__name__})", isinstance(theirs, each), isinstance(ours, each))
        for function in UNARY:
            self.compared["operations"] += 1
            same(f"{function.__name__}({what})", outcome(function, theirs), outcome(function, ours))
        value = getattr(theirs, "_value", None)
        for operand in [*OPERANDS, value]:
            for function in BINARY:
                if function in (operator.pow, operator.lshift) and self.is_huge(function, theirs, operand):
                    continue
                self.compared["operations"] += 2
                same(f"{function.__name__}({what}, {operand!r})", outcome(function, theirs, operand),
                     outcome(function, ours, operand))
                same(f"{function.__name__}({operand!r}, {what})", outcome(function, operand, theirs),
                     outcome(function, operand, ours))
        for function in BINARY:
            if function not in (operator.pow, operator.lshift):
                same(f"{function.__name__}({what}, {what})", outcome(function, theirs, theirs),
                     outcome(function, ours, ours))
        for index in (0, 1, -1, 10**6, "nosuch", None, slice(0, 2)):
            same(f"{what}[{index!r}]", outcome(operator.getitem, theirs, index), outcome(operator.getitem, ours, index))
            same(f"{index!r} in {what}", outcome(lambda field: index in field, theirs),
                 outcome(lambda field: index in field, ours))
        same(f"round({what}, -1)", outcome(round, theirs, -1), outcome(round, ours, -1))
        for form in ("", "d", "x", "5", ">8", ".2f"):
            same(f"format({what}, {form!r})", outcome(format, theirs, form), outcome(format, ours, form))
        same(f"{what} of two", outcome(operator.eq, theirs, theirs), outcome(operator.eq, ours, ours))
        if kind == "_StructureFieldConst":
            for each in (list(theirs), len(theirs), list(theirs.keys()), [key for key, _ in theirs.items()]):
                pass
            same(f"len({what})", len(theirs), len(ours))
            same(f"items of {what}", [repr(pair) for pair in theirs.items()], [repr(pair) for pair in ours.items()])
            same(f"values of {what}", [repr(each) for each in theirs.values()], [repr(each) for each in ours.values()])
            same(f"dict({what})", repr(dict(theirs)), repr(dict(ours)))
            same(f"{what} == dict", theirs == dict(theirs), ours == dict(ours))
            for index in (0, 1, 100, -1, "x"):
                same(f"{what}.member_at_index({index!r})", outcome(theirs.member_at_index, index),
                     outcome(ours.member_at_index, index))
            same(f"{what}.get", outcome(theirs.get, "nosuch", 5), outcome(ours.get, "nosuch", 5))

    @staticmethod
    def is_huge(function, field, operand):
        numbers_ = [each for each in (getattr(field, "_value", 0), operand) if isinstance(each, (int, float))]
        return any(abs(each) > 64 for each in numbers_ if each == each)

    # Classes

    def field_class(self, what, theirs, ours):
        if theirs is None or ours is None:
            return same(what, theirs is None, ours is None)
        self.compared["classes"] += 1
        kind = type(theirs).__name__
        # The classes of packets' contexts and common contexts are of the changeable kind in Babeltrace, by mistake.
        same(f"type of {what}", kind.removesuffix("Const"), type(ours).__name__.removesuffix("Const"))
        self.attributes(what, theirs, ours, "user_attributes")
        if hasattr(theirs, "field_value_range"):
            self.attributes(what, theirs, ours, "field_value_range preferred_display_base")
        if "Enumeration" in kind:
            same(f"labels of {what}", sorted(theirs), sorted(ours))
            for label in theirs:
                ranges = [sorted((each.lower, each.upper) for each in side[label].ranges) for side in (theirs, ours)]
                same(f"ranges of {what}[{label!r}]", *ranges)
                same(f"{what}[{label!r}].label", theirs[label].label, ours[label].label)
                low = next(iter(theirs[label].ranges)).lower
                mappings = [sorted(each.label for each in side.mappings_for_value(low)) for side in (theirs, ours)]
                same(f"{what}.mappings_for_value({low})", *mappings)
        elif "Structure" in kind:
            same(f"members of {what}", list(theirs), list(ours))
            for index, name in enumerate(theirs):
                one, other = theirs[name], ours[name]
                same(f"name of {what}", (one.name, theirs.member_at_index(index).name),
                     (other.name, ours.member_at_index(index).name))
                self.attributes(f"{what}[{name!r}]", one, other, "user_attributes")
                self.field_class(f"{what}[{name!r}]", one.field_class, other.field_class)
            same(f"no member of {what}", outcome(operator.getitem, theirs, "nosuch"),
                 outcome(operator.getitem, ours, "nosuch"))
        elif "Variant" in kind:
            same(f"options of {what}", list(theirs), list(ours))
            for name in theirs:
                self.field_class(f"{what}[{name!r}]", theirs[name].field_class, ours[name].field_class)
                if hasattr(theirs[name], "ranges"):
                    ranges = [sorted((each.lower, each.upper) for each in side[name].ranges) for side in (theirs, ours)]
                    same(f"ranges of {what}[{name!r}]", *ranges)
            if hasattr(theirs, "selector_field_path"):
                self.path(f"{what}.selector_field_path", theirs.selector_field_path, ours.selector_field_path)
        elif "Array" in kind and "Bit" not in kind:
            self.field_class(f"element of {what}", theirs.element_field_class, ours.element_field_class)
            if "Static" in kind:
                same(f"length of {what}", theirs.length, ours.length)
            if hasattr(theirs, "length_field_path"):
                self.path(f"{what}.length_field_path", theirs.length_field_path, ours.length_field_path)
        elif "BitArray" in kind:
            same(f"length of {what}", theirs.length, ours.length)

    def path(self, what, theirs, ours):
        if theirs is None or ours is None:
            return same(what, theirs is None, ours is None)
        items = [[(type(item).__name__, getattr(item, "index", None)) for item in side] for side in (theirs, ours)]
        same(what, items[0], items[1])
        same(what, (len(theirs), theirs.root_scope), (len(ours), ours.root_scope))

    def event_class(self, what, theirs, ours):
        self.attributes(what, theirs, ours, "name id log_level emf_uri user_attributes")
        self.field_class(f"{what}.payload_field_class", theirs.payload_field_class, ours.payload_field_class)
        self.field_class(f"{what}.specific_context_field_class", theirs.specific_context_field_class,
                         ours.specific_context_field_class)
        same(f"{what}.stream_class", theirs.stream_class.id, ours.stream_class.id)

    def clock_class(self, what, theirs, ours):
        if theirs is None or ours is None:
            return same(what, theirs is None, ours is None)
        self.attributes(what, theirs, ours,
                        "name description frequency precision origin_is_unix_epoch uuid user_attributes")
        same(f"{what}.offset", (theirs.offset.seconds, theirs.offset.cycles), (ours.offset.seconds, ours.offset.cycles))
        self.ghz = self.ghz and theirs.frequency == 10**9
        if theirs.frequency == 10**9:
            for cycles in (0, 1, 12345678901):
                same(f"{what}.cycles_to_ns_from_origin", outcome(theirs.cycles_to_ns_from_origin, cycles),
                     outcome(ours.cycles_to_ns_from_origin, cycles))

    def stream(self, what, theirs, ours):
        self.attributes(what, theirs, ours, "id user_attributes")
        same(f"{what}.name", os.path.realpath(theirs.name or ""), os.path.realpath(ours.name or ""))
        key = (theirs.cls.id, theirs.id)
        if key in self.classes:
            return
        self.classes.add(key)
        trace, our_trace = theirs.trace, ours.trace
        self.attributes(f"{what}.trace", trace, our_trace, "name uuid user_attributes")
        # Babeltrace makes streams when they begin.
        same(f"{what}.trace", sorted(trace), sorted(id_ for id_ in our_trace if id_ in trace))
        same(f"{what}.trace[{theirs.id}]", trace[theirs.id].id, our_trace[ours.id].id)
        environment, our_environment = trace.environment, our_trace.environment
        same("environment", sorted(environment), sorted(our_environment))
        for name in environment:
            same(f"environment[{name!r}]", (type(environment[name]).__name__, repr(environment[name])),
                 (type(our_environment[name]).__name__, repr(our_environment[name])))
            same(f"environment[{name!r}] as text", str(environment[name]), str(our_environment[name]))
        same("environment['nosuch']", outcome(operator.getitem, environment, "nosuch"),
             outcome(operator.getitem, our_environment, "nosuch"))
        self.attributes("trace class", trace.cls, our_trace.cls, "user_attributes assigns_automatic_stream_class_id")
        same("stream classes", sorted(trace.cls), sorted(our_trace.cls))
        cls, our_cls = theirs.cls, ours.cls
        self.attributes(f"{what}.cls", cls, our_cls, """name id user_attributes assigns_automatic_event_class_id
            assigns_automatic_stream_id supports_packets packets_have_beginning_default_clock_snapshot
            packets_have_end_default_clock_snapshot supports_discarded_events
            discarded_events_have_default_clock_snapshots supports_discarded_packets
            discarded_packets_have_default_clock_snapshots""")
        self.clock_class(f"{what}.cls.default_clock_class", cls.default_clock_class, our_cls.default_clock_class)
        self.field_class("packet context", cls.packet_context_field_class, our_cls.packet_context_field_class)
        self.field_class("common context", cls.event_common_context_field_class,
                         our_cls.event_common_context_field_class)
        same("event classes", sorted(cls), sorted(our_cls))
        for id_ in cls:
            self.event_class(f"event class {id_}", cls[id_], our_cls[id_])

    # Messages

    def snapshot(self, what, theirs, ours):
        same(f"type of {what}", type(theirs).__name__, type(ours).__name__)
        if type(theirs).__name__ == "_UnknownClockSnapshot":
            return
        off = 0 if theirs.clock_class.frequency == 10**9 else 1
        if abs(theirs.value - ours.value) > off:
            same(f"{what}.value", theirs.value, ours.value)
        times = []
        for side in (theirs, ours):
            try:
                times.append(side.ns_from_origin)
            except OverflowError:
                times.append(None)
        if None in times:
            same(f"{what}.ns_from_origin", *times)
        elif abs(times[0] - times[1]) > off:
            same(f"{what}.ns_from_origin", *times)
        value = theirs.value
        for operand in (value, value + 1, 0, "x", 1.5) if value == ours.value else ():
            for function in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
                same(f"{function.__name__}({what}, {operand!r})", outcome(function, theirs, operand),
                     outcome(function, ours, operand))

    def message(self, number, theirs, ours):
        what, kind = f"message {number}", type(theirs).__name__
        same(f"type of {what}", kind, type(ours).__name__)
        deep = number < DEEP or number % 50 == 0
        self.compared["messages"] += 1
        if kind == "_EventMessageConst":
            event, our_event = theirs.event, ours.event
            stream = event.stream
            if stream.cls.default_clock_class is None:
                same(f"{what}.default_clock_snapshot", outcome(getattr, theirs, "default_clock_snapshot"),
                     outcome(getattr, ours, "default_clock_snapshot"))
            else:
                self.snapshot(f"{what}.default_clock_snapshot", theirs.default_clock_snapshot,
                              ours.default_clock_snapshot)
            self.attributes(what, event, our_event, "name id")
            for scope in ("payload_field", "specific_context_field", "common_context_field"):
                self.field(f"{what}.{scope}", getattr(event, scope), getattr(our_event, scope), deep)
            if deep:
                self.stream(f"{what}.stream", stream, our_event.stream)
                self.field(f"{what}.packet.context_field", event.packet.context_field,
                           our_event.packet.context_field, deep)
                same(f"{what}.cls", event.cls.id, our_event.cls.id)
                self.lookup(what, event, our_event)
        elif kind in ("_StreamBeginningMessageConst", "_StreamEndMessageConst"):
            self.stream(f"{what}.stream", theirs.stream, ours.stream)
            if theirs.stream.cls.default_clock_class is not None:
                self.snapshot(f"{what}.default_clock_snapshot", theirs.default_clock_snapshot,
                              ours.default_clock_snapshot)
        elif kind in ("_PacketBeginningMessageConst", "_PacketEndMessageConst"):
            packet, cls = theirs.packet, theirs.packet.stream.cls
            self.stream(f"{what}.packet.stream", packet.stream, ours.packet.stream)
            self.field(f"{what}.packet.context_field", packet.context_field, ours.packet.context_field, deep)
            has = (cls.packets_have_beginning_default_clock_snapshot if "Beginning" in kind
                   else cls.packets_have_end_default_clock_snapshot)
            if has:
                self.snapshot(f"{what}.default_clock_snapshot", theirs.default_clock_snapshot,
                              ours.default_clock_snapshot)
        elif kind in ("_DiscardedEventsMessageConst", "_DiscardedPacketsMessageConst"):
            same(f"{what}.count", theirs.count, ours.count)
            self.stream(f"{what}.stream", theirs.stream, ours.stream)
            cls = theirs.stream.cls
            has = (cls.discarded_events_have_default_clock_snapshots if "Events" in kind
                   else cls.discarded_packets_have_default_clock_snapshots)
            if has:
                for name in ("beginning_default_clock_snapshot", "end_default_clock_snapshot"):
                    self.snapshot(f"{what}.{name}", getattr(theirs, name), getattr(ours, name))

    def lookup(self, what, theirs, ours):
        """By name: the payload's first, then those of contexts."""
        names = set()
        for field in (theirs.payload_field, theirs.specific_context_field, theirs.common_context_field,
                      theirs.packet.context_field):
            names |= set(field or ())
        for name in sorted(names):
            self.field(f"{what}[{name!r}]", theirs[name], ours[name], False)
        for key in ("nosuch", 5, None):
            same(f"{what}[{key!r}]", outcome(operator.getitem, theirs, key), outcome(operator.getitem, ours, key))


def stream_of(message):
    for name in ("event", "packet"):
        if hasattr(message, name):
            return getattr(message, name).stream
    return message.stream


def moment(message, stream):
    """When a message is; `None`: nobody knows."""
    cls, kind = stream.cls, type(message).__name__
    traits = {"_PacketBeginningMessageConst": "packets_have_beginning_default_clock_snapshot",
              "_PacketEndMessageConst": "packets_have_end_default_clock_snapshot"}
    if cls.default_clock_class is None or kind in traits and not getattr(cls, traits[kind]):
        return None
    if "Discarded" in kind:
        if not getattr(cls, f"discarded_{'events' if 'Events' in kind else 'packets'}_have_default_clock_snapshots"):
            return None
        return message.beginning_default_clock_snapshot.value
    return getattr(message.default_clock_snapshot, "value", None)


class InOrder:
    """Messages; those of one moment in the order of their streams. Babeltrace's own order of streams is that of files in a
    folder, whatever that is, or of a hash table. What has no time belongs to what is beside it."""

    def __init__(self, messages):
        self.messages, self.waiting, self.ahead, self.over = messages, [], None, None

    def pull(self):
        try:
            message = next(self.messages)
        except StopIteration as end:
            self.over = end
            return None
        except Exception as error:
            self.over = error
            return None
        stream = stream_of(message)
        return (moment(message, stream), (stream.cls.id, stream.id), message)

    def __next__(self):
        if not self.waiting:
            first = self.ahead or (None if self.over else self.pull())
            self.ahead = None
            if first is None:
                raise self.over
            self.waiting.append(first)
            known = first[0]
            while not self.over:
                following = self.pull()
                if following is None or None not in (known, following[0]) and following[0] != known:
                    self.ahead = following
                    break
                known = following[0] if known is None else known
                self.waiting.append(following)
            self.waiting.sort(key=lambda each: each[1])
        return self.waiting.pop(0)[2]


def pairs(theirs, ours, arguments):
    """Messages of both, side by side, until Babeltrace has no more or cannot go on."""
    one, other = (
        InOrder(module.TraceCollectionMessageIterator(*arguments[0], **arguments[1])) for module in (theirs, ours)
    )
    number = 0
    while True:
        try:
            message = next(one)
        except StopIteration as end:
            try:
                rest = next(other)
            except StopIteration as our_end:
                same("the end", (type(end).__name__, str(end)), (type(our_end).__name__, str(our_end)))
                return
            raise Difference(f"message {number}: bt2 has no more, kymograph {type(rest).__name__}") from None
        except theirs._Error:
            # What is readable behind a fault is told by Kymograph, then that there was one.
            one.over = None
            # It also reads some traces that Babeltrace 2.0.4 does not: tests/conformance/deviations.tsv.
            for _ in range(10**6):
                try:
                    next(other)
                except ours._Error as error:
                    assert len(error) >= 1 and error[0].message
                    return
                except StopIteration:
                    return
        try:
            our_message = next(other)
        except StopIteration:
            raise Difference(f"message {number}: bt2 has {type(message).__name__}, kymograph no more") from None
        yield number, message, our_message
        number += 1


# Traces of the corpus of which Babeltrace 2.0.4 reads something else, and why it is wrong.
WRONG = {
    "tracecompass/double_counters": "times go through doubles, so that events come in another order than they were",
    "yactfr/iter-data/ctf-1/pass-dst": "several streams in a file are taken for one",
    "yactfr/iter-data/ctf-1/pass-multiple-dst-id-fl-ints": "several streams in a file are taken for one",
    "yactfr/iter-data/ctf-1/pass-pkt-disc-er-counter-snap-alt": "several streams in a file are taken for one",
    "yactfr/iter-data/ctf-1/pass-pkt-seq-num-alt": "several streams in a file are taken for one",
}


def compare_trace(path, site, messages_max, cuts):
    import bt2 as theirs

    sys.path.append(site)
    from kymograph.compat import bt2 as ours

    comparison = Comparison(theirs, ours)
    times = []
    for number, one, other in pairs(theirs, ours, ([path], {})):
        comparison.message(number, one, other)
        if type(one) is theirs._EventMessageConst and one.event.stream.cls.default_clock_class is not None:
            times.append(one.default_clock_snapshot.ns_from_origin)
        if number >= messages_max:
            break
    del one, other
    # Times that went through doubles are cut elsewhere.
    cuts = cuts and comparison.ghz
    variants = [{"stream_intersection_mode": True}] if cuts else []
    if times and cuts:
        begin, middle = times[0] / 1e9, times[len(times) // 2] / 1e9
        variants += [{"begin": middle}, {"begin": begin, "end": middle}, {"end": middle}]
    for variant in variants:
        try:
            list(zip(range(1), theirs.TraceCollectionMessageIterator(path, **variant)))
        except Exception:
            # There is no time in which all streams are active, say.
            continue
        for number, one, other in pairs(theirs, ours, ([path], variant)):
            comparison.message(number, one, other)
            if number >= messages_max // 4:
                break
        del one, other
    spec = (theirs.ComponentSpec, ours.ComponentSpec)
    specs = [each.from_named_plugin_and_component_class("ctf", "fs", {"inputs": [path]}) for each in spec]
    counts = []
    for module, each in zip((theirs, ours), specs):
        try:
            counts.append(sum(1 for _ in zip(range(50), module.TraceCollectionMessageIterator(each))))
        except module._Error:
            counts.append("a fault")
    if "a fault" not in counts:
        same("messages of a component", *counts)
    queries(theirs, ours, path)
    print(json.dumps(comparison.compared))


def queries(theirs, ours, path):
    answers = []
    for module in (theirs, ours):
        fs = module.find_plugin("ctf").source_component_classes["fs"]
        support = module.QueryExecutor(fs, "babeltrace.support-info", {"type": "directory", "input": path}).query()
        nothing = module.QueryExecutor(fs, "babeltrace.support-info", {"type": "directory", "input": "/etc"}).query()
        infos = module.QueryExecutor(fs, "babeltrace.trace-infos", {"inputs": [path]}).query()
        found = []
        for trace in infos:
            for stream in trace["stream-infos"]:
                span = stream["range-ns"] if "range-ns" in stream else None
                times = None if span is None else (int(span["begin"]), int(span["end"]))
                found.append((str(stream["port-name"]), times))
        weight = (sorted(support), float(support["weight"]), str(support["group"]) if "group" in support else "")
        answers.append((weight, float(nothing["weight"]), sorted(found, key=repr)))
    same("babeltrace.support-info", answers[0][:2], answers[1][:2])
    if all(times is None or abs(times[0]) < 2**62 for _, times in answers[0][2]):
        near = [[(name, times and tuple(each // 100 for each in times)) for name, times in answer[2]] for answer in answers]
        same("babeltrace.trace-infos", near[0], near[1])


def traces(corpus, only):
    found = []
    for folder in sorted(pathlib.Path(corpus, "ctf").rglob("metadata")):
        has_data = any(file.is_file() and file.name != "metadata" for file in folder.parent.iterdir())
        if folder.is_file() and only in str(folder) and has_data:
            found.append(folder.parent)
    return found


def has_bt2(python, site):
    """Whether an interpreter has both."""
    script = "import sys, bt2; sys.path.append(sys.argv[1]); import kymograph.compat.bt2"
    try:
        return subprocess.run([python, "-c", script, site], capture_output=True).returncode == 0
    except OSError:
        return False


PROBE = "import sys, bt2; next(bt2.TraceCollectionMessageIterator(sys.argv[1]))"
ALONE = """
import sys
sys.path.append(sys.argv[2])
from kymograph.compat import bt2
try:
    for number, message in enumerate(bt2.TraceCollectionMessageIterator(sys.argv[1])):
        if type(message) is bt2._EventMessageConst:
            repr(message.event.payload_field)
        if number > 5000:
            break
except (bt2._Error, RuntimeError):
    pass
"""


def runs(command):
    try:
        return subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("site")
    parser.add_argument("--corpus", default=os.environ.get("KYMO_CORPUS", ROOT.parent / "shared" / "corpus"))
    parser.add_argument("--only", default="")
    parser.add_argument("--messages", type=int, default=1200)
    parser.add_argument("--trace")
    parser.add_argument("--no-cuts", action="store_true")
    arguments = parser.parse_args()
    if arguments.trace:
        try:
            compare_trace(arguments.trace, arguments.site, arguments.messages, not arguments.no_cuts)
        except Difference as difference:
            print(difference, file=sys.stderr)
            os._exit(1)
        sys.stdout.flush()
        # Not by the way of Babeltrace's exit handlers, which look at what is gone.
        os._exit(0)
    peer = next((each for each in (sys.executable, "/usr/bin/python3") if has_bt2(each, arguments.site)), None)
    if peer is None:
        print("PEER ABSENT: no Python 3.11 or newer has bt2: kymograph.compat.bt2 is not compared with it")
        return
    folders = [ROOT / "examples" / "traces" / "demo", *traces(arguments.corpus, arguments.only)]
    if len(folders) == 1:
        print("CORPUS ABSENT: only our own trace is compared with bt2")
    started, total, failed, refused, crashed, wrong = time.time(), {}, [], 0, 0, 0
    for folder in folders:
        if any(str(folder).endswith(name) for name in WRONG):
            wrong += 1
            continue
        if not runs([peer, "-c", PROBE, str(folder)]):
            # Babeltrace does not read it at all, or hangs; Kymograph must neither hang nor crash.
            refused += 1
            if not runs([peer, "-c", ALONE, str(folder), arguments.site]):
                failed.append(folder)
                print(f"{folder}\n    kymograph crashes or hangs", flush=True)
            continue
        command = [peer, __file__, arguments.site, "--trace", str(folder), "--messages", str(arguments.messages)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode < 0:
            # Babeltrace's trimmer crashes where packets have no times.
            crashed += 1
            done = subprocess.run([*command, "--no-cuts"], capture_output=True, text=True, timeout=300)
        if done.returncode == 0:
            for name, count in json.loads(done.stdout.splitlines()[-1]).items():
                total[name] = total.get(name, 0) + count
        else:
            failed.append(folder)
            print(f"{folder}\n    {(done.stderr.strip().splitlines() or ['?'])[-1][:1000]}", flush=True)
    counts = ", ".join(f"{count} {name}" for name, count in total.items())
    compared = len(folders) - refused - wrong
    print(f"bt2: {compared} traces compared ({refused} are not read by bt2, {wrong} are read wrongly, {crashed} crash it when time "
          f"is cut), {len(failed)} differ: {counts}; {time.time() - started:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
