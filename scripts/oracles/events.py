"""Reads a trace once over babeltrace2's library and keeps what an oracle asks for, in the order of docs/analyses.md.

    trace = Trace(path, {"sched_switch": ("prev_tid", "next_tid"), ...})
    for event in trace.events: ...

Shares no code with the project. Version 2.0.4 of the library gives the value before where a text is empty: paths that
repeat one of the last in the same field are remembered in `Trace.stale`, and rows with them are not to be trusted.
"""

import collections
import math

import bt2

CPU_FIELDS = ("cpu_id", "perf_cpu")
TID_FIELDS = ("tid", "perf_tid")
PID_FIELDS = ("pid", "perf_pid")
# Of contexts: an oracle may ask for those of programs, too.
TID_CONTEXTS, PID_CONTEXTS = TID_FIELDS, PID_FIELDS
COMM_FIELDS = ("procname", "comm")
# Texts that may well be empty.
PATH_FIELDS = ("filename", "pathname", "path")
# So many events later babeltrace2 may give a text again.
LATELY = 8
SECOND = 1_000_000_000


class Event:
    """One event: when, on which CPU, of which stream, and the fields that were asked for."""

    __slots__ = ("time", "cpu", "stream", "name", "fields", "tid", "pid", "comm")

    def __init__(self, time, cpu, stream, name, fields, tid, pid, comm):
        self.time, self.cpu, self.stream, self.name = time, cpu, stream, name
        self.fields, self.tid, self.pid, self.comm = fields, tid, pid, comm

    def get(self, *names):
        """The first of these fields that the event has."""
        for name in names:
            if name in self.fields:
                return self.fields[name]
        return None


class Stream:
    """One data stream: its CPU, its span, what was lost, which classes of events it may have."""

    def __init__(self, number, stream):
        self.number, self.class_id = number, stream.cls.id
        self.names = {event_class.name for event_class in stream.cls.values()}
        self.cpu = None
        self.begin = self.end = self.first_event = self.last_event = None
        self.earliest, self.latest = math.inf, -math.inf
        self.losses = []

    def seen(self, time):
        self.end = time if self.end is None else max(self.end, time)

    def may_have(self, is_wanted, name_of):
        return any(is_wanted(name_of(name)) for name in self.names)


class Loss:
    """A time in which events of a stream are missing; the count is None if unknown."""

    def __init__(self, begin, end, count):
        self.begin = -math.inf if begin is None else begin
        self.end = math.inf if end is None else end
        self.count = count

    def touches(self, begin, end):
        return self.begin <= end and begin <= self.end


def plain_name(name):
    """`sched:sched_switch`, as perf has it, is `sched_switch` to LTTng."""
    return name.rsplit(":", 1)[-1] if name.startswith(("sched:", "irq:", "syscalls:", "block:", "net:")) else name


def value_of(field):
    """A field as Python knows it."""
    kind = type(field).__name__
    if "String" in kind:
        return str(field)
    if "Array" in kind:
        return [value_of(element) for element in field]
    if "Real" in kind:
        return float(field)
    return int(field)


def nanoseconds(snapshot):
    """Since the clock's origin, rounded down. The library's own figure is a double where a cycle is no nanosecond."""
    clock = snapshot.clock_class
    cycles = clock.offset.cycles + snapshot.value
    return clock.offset.seconds * SECOND + cycles * SECOND // clock.frequency


def integer_among(structure, names):
    if structure is not None:
        for name in names:
            if name in structure:
                return int(structure[name])
    return None


class Trace:
    """The events that `wanted` names, all streams, all losses."""

    def __init__(self, path, wanted, is_wanted=None, name_of=plain_name):
        self.path, self.wanted, self.name_of = path, wanted, name_of
        self.is_wanted = is_wanted or (lambda name: self.fields_of(name) is not None)
        self.streams, self.events, self.environment = [], [], {}
        self.counts = {}
        self.stale, self._lately = set(), {}
        numbers = {}
        for message in bt2.TraceCollectionMessageIterator(path):
            kind = type(message).__name__
            if kind == "_EventMessageConst":
                self._event(message, numbers)
            elif kind == "_StreamBeginningMessageConst":
                numbers[self._key(message.stream)] = len(self.streams)
                self.streams.append(Stream(len(self.streams), message.stream))
                self.environment = dict(message.stream.trace.environment)
            elif kind == "_PacketBeginningMessageConst":
                self._packet_begin(message, self.streams[numbers[self._key(message.packet.stream)]])
            elif kind == "_PacketEndMessageConst":
                stream = self.streams[numbers[self._key(message.packet.stream)]]
                if message.packet.stream.cls.packets_have_end_default_clock_snapshot:
                    stream.seen(nanoseconds(message.default_clock_snapshot))
            elif kind in ("_DiscardedEventsMessageConst", "_DiscardedPacketsMessageConst"):
                self._loss(message, self.streams[numbers[self._key(message.stream)]], "Events" in kind)
        self.events.sort(key=lambda event: (event.time, event.cpu is None, event.cpu or 0))

    @staticmethod
    def _key(stream):
        return stream.trace.addr if hasattr(stream.trace, "addr") else 0, stream.cls.id, stream.id

    def fields_of(self, name):
        """Which fields of the events of a name are asked for; None: not even the event."""
        if callable(self.wanted):
            return self.wanted(name)
        return self.wanted.get(name)

    def _packet_begin(self, message, stream):
        packet = message.packet
        if stream.cpu is None:
            stream.cpu = integer_among(packet.context_field, ("cpu_id",))
        if stream.begin is None and packet.stream.cls.packets_have_beginning_default_clock_snapshot:
            stream.begin = nanoseconds(message.default_clock_snapshot)

    def _loss(self, message, stream, is_events):
        has_times = (
            message.stream.cls.discarded_events_have_default_clock_snapshots
            if is_events
            else message.stream.cls.discarded_packets_have_default_clock_snapshots
        )
        begin = nanoseconds(message.beginning_default_clock_snapshot) if has_times else None
        end = nanoseconds(message.end_default_clock_snapshot) if has_times else None
        stream.losses.append(Loss(begin, end, message.count if is_events else None))

    def _event(self, message, numbers):
        source = message.event
        stream = self.streams[numbers[self._key(source.stream)]]
        time = nanoseconds(message.default_clock_snapshot) if source.stream.cls.default_clock_class else None
        stream.first_event = time if stream.first_event is None else stream.first_event
        stream.last_event = time
        if time is not None:
            stream.earliest, stream.latest = min(stream.earliest, time), max(stream.latest, time)
        key = (stream.class_id, source.name)
        self.counts[stream.number, key] = self.counts.get((stream.number, key), 0) + 1
        name = self.name_of(source.name)
        wanted = self.fields_of(name)
        if wanted is None:
            return
        payload, common = source.payload_field, source.common_context_field
        specific = source.specific_context_field
        parts = [part for part in (payload, specific, common) if part is not None]
        fields = {}
        for part in parts:
            for field in wanted:
                if field not in fields and field in part:
                    fields[field] = value_of(part[field])
                    if field in PATH_FIELDS:
                        self._note_text(stream.class_id, name, field, fields[field])
        contexts = [part for part in (specific, common) if part is not None]
        cpu = tid = pid = comm = None
        for part in contexts:
            cpu = integer_among(part, CPU_FIELDS) if cpu is None else cpu
            tid = integer_among(part, TID_CONTEXTS) if tid is None else tid
            pid = integer_among(part, PID_CONTEXTS) if pid is None else pid
            comm = next((str(part[name]) for name in COMM_FIELDS if name in part), comm)
        if payload is not None:
            cpu = integer_among(payload, CPU_FIELDS[1:]) if cpu is None else cpu
            tid = integer_among(payload, TID_FIELDS[1:]) if tid is None else tid
            pid = integer_among(payload, PID_FIELDS[1:]) if pid is None else pid
        cpu = stream.cpu if cpu is None else cpu
        self.events.append(Event(time, cpu, stream.number, name, fields, tid, pid, comm))

    def _note_text(self, class_id, name, field, text):
        lately = self._lately.setdefault((class_id, name, field), collections.deque(maxlen=LATELY))
        if text in lately:
            self.stale.add(text)
        lately.append(text)

    def cpus(self):
        """All CPUs, in order."""
        found = {stream.cpu for stream in self.streams} | {event.cpu for event in self.events}
        return sorted(cpu for cpu in found if cpu is not None)

    def _streams_of(self, cpu):
        """The streams of a CPU; where streams have none, those with events of it."""
        numbers = {event.stream for event in self.events if event.cpu == cpu}
        return [stream for stream in self.streams if stream.cpu == cpu or (stream.cpu is None and stream.number in numbers)]

    def event_span(self):
        """From the first event or loss to the last one; None: not all packets have times, or nothing happens."""
        if any(stream.begin is None or stream.end is None for stream in self.streams):
            return None
        losses = [loss for stream in self.streams for loss in stream.losses]
        begins = [stream.earliest for stream in self.streams] + [loss.begin for loss in losses if loss.begin != -math.inf]
        ends = [stream.latest for stream in self.streams] + [loss.end for loss in losses if loss.end != math.inf]
        span = min(begins, default=math.inf), max(ends, default=-math.inf)
        return span if -math.inf < span[0] <= span[1] < math.inf else None

    def _span_of(self, streams):
        begins = [stream.first_event if stream.begin is None else stream.begin for stream in streams]
        ends = [time for stream in streams for time in (stream.end, stream.last_event)]
        begins, ends = ([time for time in times if time is not None] for times in (begins, ends))
        if not begins or not ends:
            return None
        first, last = self.event_span() or (-math.inf, math.inf)
        return min(max(min(begins), first), last), min(max(max(ends), first), last)

    def span(self, cpu):
        """Begin and end of a CPU."""
        return self._span_of(self._streams_of(cpu))

    def whole_span(self):
        """Begin and end of the trace."""
        return self._span_of(self.streams)

    def losses(self, cpu=None, is_wanted=None):
        """Losses that a CPU has (None: all of the trace) of streams that may have such events."""
        wanted = is_wanted or self.is_wanted
        return [
            loss
            for stream in self.streams
            if (cpu is None or stream.cpu in (cpu, None)) and stream.may_have(wanted, self.name_of)
            for loss in stream.losses
        ]


def lost_count(losses):
    """How many events are lost; None: unknown."""
    return None if any(loss.count is None for loss in losses) else sum(loss.count for loss in losses)
