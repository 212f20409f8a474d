//! Packets of network interfaces, recorded as events by the process that receives them: `kymo record --packets`.
//!
//! ```text
//! interface ── BPF ──> ring ── link, tag, filter ──> packet, cut ──┬──> kymo:packet
//!                       └ no room: dropped, counted ── kymo:packet_counts ──> trace
//!                                                                  └──> a capture (pcapng), if one is wanted
//! ```
//!
//! The process thereby becomes a traced program, as with the lines of [`capture`](crate::capture).

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kymo_packet::pcapng::{InterfaceCounts, PcapngPacket, PcapngWriter};
use kymo_packet::{ClassicInstruction, HEADS_MAX, PacketDirection, PacketFacts, PacketFilter, take_all};
use kymo_probe::packets::{
    BpfLine, OUTGOING, PacketSocket, SocketPacket, interface_index, interface_name, wait_for_packets,
};
use kymo_tracer::marks::{
    CapturedPacket, Direction, LINK_COOKED, LINK_ETHERNET, LINK_RAW_IP, captured, kymo_event_packet,
};
use kymo_tracer::{Event, Field, marks};
use rustix::io::Errno;

use crate::select::{SelectionRule, SelectionStep, StepKind};

/// Bytes of a packet that are recorded unless another number is asked for: all of a frame of Ethernet.
pub const SNAP_LENGTH: u32 = 2000;
/// Maximum of that.
pub const SNAP_LENGTH_MAX: u32 = marks::SNAP_LENGTH_MAX;
/// The name that means all interfaces.
pub const ANY: &str = "any";

/// Packets of a socket that are taken before another one has its turn.
const TURN: usize = 256;
/// How long the thread sleeps at most: then it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);
/// Between two questions how many packets were dropped.
const COUNT: Duration = Duration::from_millis(100);

/// Kinds of hardware.
const ETHERNET: u16 = 1;
const RAW_IP: u16 = 519;
const LOOPBACK: u16 = 772;
const NONE: u16 = 65534;

static COUNTS: Event =
    Event::new(b"event kymo:packet_counts\nlevel 6\nfield text interface\nfield u64 received\nfield u64 dropped\n");

/// The packets to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOptions {
    /// Names of interfaces; `any`: all.
    pub interfaces: Vec<String>,
    /// Only packets of which this expression is true.
    pub filter: Option<String>,
    /// Bytes of a packet, at most [`SNAP_LENGTH_MAX`].
    pub snap_length: u32,
    /// A capture to write besides.
    pub file: Option<PathBuf>,
}

/// Why no packet can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum PacketProblem {
    /// The expression is wrong.
    #[error("{0}")]
    Filter(String),
    /// There is no such interface.
    #[error("there is no network interface `{name}`{}\n  there are {}", suggestion(near), known.join(", "))]
    NoInterface {
        /// Its name.
        name: String,
        /// Names like it.
        near: Vec<String>,
        /// All names.
        known: Vec<String>,
    },
    /// Packets of an interface cannot be received.
    #[error("packets of `{interface}` cannot be received: {error}{}", if is_forbidden(error) { NOT_ALLOWED } else { "" })]
    Socket {
        /// The interface.
        interface: String,
        /// The error.
        error: io::Error,
    },
    /// The capture cannot be written.
    #[error("{path}: {error}", path = .path.display())]
    File {
        /// The capture.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The process cannot record events.
    #[error("the packets cannot be recorded: {0}")]
    Events(&'static str),
}

fn suggestion(near: &[String]) -> String {
    near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// How to get the right to receive packets.
const NOT_ALLOWED: &str = "\nhelp: this needs the capability CAP_NET_RAW: root has it, and `sudo setcap cap_net_raw+ep $(command -v kymo)` gives it to all users of kymo";

fn is_forbidden(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| matches!(errno, Errno::PERM | Errno::ACCESS))
}

/// Names of the events with packets, and with their counts.
pub const EVENTS: [&str; 2] = ["kymo:packet", "kymo:packet_counts"];

/// The selection step of a session that is to have the packets that a process with this word receives.
#[must_use]
pub fn selects(word: &str) -> SelectionStep {
    let events = EVENTS.map(str::to_owned).to_vec();
    let rule = SelectionRule { events, tag: Some(word.to_owned()), ..SelectionRule::default() };
    SelectionStep { act: StepKind::Enable, rule }
}

/// Checks a filter of packets.
///
/// # Errors
///
/// The problem, in lines.
pub fn check_filter(filter: &str) -> Result<(), String> {
    filter_of(filter).map(drop)
}

fn filter_of(text: &str) -> Result<PacketFilter, String> {
    let filter = PacketFilter::parse(text)?;
    filter.fault(text).map_or(Ok(filter), Err)
}

/// Checks the name of an interface.
///
/// # Errors
///
/// There is none of this name.
pub fn check_interface(name: &str) -> Result<(), PacketProblem> {
    if name == ANY { Ok(()) } else { index_of(name).map(drop) }
}

/// Counts of packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Recorded packets.
    pub packets: u64,
    /// Those of them of which only the beginning is there.
    pub cut: u64,
    /// Packets that the kernel dropped, as there was no room for them.
    pub dropped: u64,
    /// Recorded packets by the names of interfaces.
    pub interfaces: BTreeMap<String, u64>,
    /// Errors, in sentences.
    pub problems: Vec<String>,
}

/// Sockets that receive packets already.
#[derive(Debug)]
pub struct PacketSource {
    sockets: Vec<PacketSocket>,
    /// For each socket, the name that was asked for.
    names: Vec<String>,
    filter: Option<PacketFilter>,
    snap_length: u32,
    file: Option<(PathBuf, PcapngWriter<BufWriter<File>>)>,
}

impl PacketSource {
    /// Opens sockets for the interfaces, and the capture.
    ///
    /// # Errors
    ///
    /// The first of them that cannot be opened, or what is wrong with the filter.
    pub fn open(options: &PacketOptions) -> Result<Self, PacketProblem> {
        let filter = options.filter.as_deref().map(filter_of).transpose().map_err(PacketProblem::Filter)?;
        // The filter sees all heads, whatever is recorded of them.
        let snap = options.snap_length.max(HEADS_MAX as u32);
        let program = filter.as_ref().map_or_else(|| take_all(snap), |filter| filter.classic(snap));
        let program: Vec<BpfLine> =
            program.into_iter().map(|ClassicInstruction { code, jt, jf, k }| BpfLine { code, jt, jf, k }).collect();
        let names: Vec<String> = match options.interfaces.iter().any(|name| name == ANY) {
            true => vec![ANY.to_owned()],
            false => {
                let mut names = options.interfaces.clone();
                names.sort_unstable();
                names.dedup();
                names
            }
        };
        let sockets = names.iter().map(|name| {
            let index = if name == ANY { 0 } else { index_of(name)? };
            PacketSocket::open(index, snap, &program)
                .map_err(|error| PacketProblem::Socket { interface: name.clone(), error })
        });
        let sockets = sockets.collect::<Result<Vec<_>, _>>()?;
        let file = options.file.as_deref().map(|path| begin_file(path, options.snap_length)).transpose()?;
        Ok(Self { sockets, names, filter, snap_length: options.snap_length.min(SNAP_LENGTH_MAX), file })
    }

    /// Begins to record packets for a session that [selects] this word.
    ///
    /// # Errors
    ///
    /// This process has no memory for events, or no thread can be started.
    pub fn begin(self, word: &str, contexts: u64) -> Result<PacketRecording, PacketProblem> {
        // A process calls this once.
        kymo_tracer::record_for(String::leak(word.to_owned()), contexts);
        if !(kymo_event_packet.register() && COUNTS.register()) {
            return Err(PacketProblem::Events(match std::env::var_os("KYMO") {
                Some(value) if value == "off" => "`KYMO=off` forbids it",
                _ => "there is no memory for them; `kymo doctor` says more",
            }));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("kymo-packets".to_owned());
        let thread = thread.spawn(move || PacketThread::new(self).run(&told));
        let thread = thread.map_err(|_| PacketProblem::Events("no thread can be started"))?;
        Ok(PacketRecording { stop, thread })
    }
}

fn begin_file(path: &Path, snap: u32) -> Result<(PathBuf, PcapngWriter<BufWriter<File>>), PacketProblem> {
    let file = File::create_new(path).and_then(|file| {
        let application = concat!("kymo ", env!("CARGO_PKG_VERSION"));
        PcapngWriter::begin(BufWriter::with_capacity(1 << 16, file), application, snap)
    });
    match file {
        Ok(writer) => Ok((path.to_owned(), writer)),
        Err(error) => Err(PacketProblem::File { path: path.to_owned(), error: named(error) }),
    }
}

/// An error with words of ours, where there is something to do about it.
fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            io::Error::new(error.kind(), "there is such a file already, and a capture is a new one")
        }
        _ => error,
    }
}

fn index_of(name: &str) -> Result<u32, PacketProblem> {
    let found = CString::new(name).map_err(io::Error::from).and_then(|name| interface_index(&name));
    found.map_err(|_| {
        let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
        let mut known: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        known.sort_unstable();
        known.push(ANY.to_owned());
        let near = kymo_filter::nearest(name, known.iter().map(String::as_str));
        PacketProblem::NoInterface { name: name.to_owned(), near, known }
    })
}

/// Packets that a thread records.
#[derive(Debug)]
pub struct PacketRecording {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<PacketCounts>,
}

impl PacketRecording {
    /// Records the packets that are there, and ends.
    #[must_use]
    pub fn end(self) -> PacketCounts {
        self.stop.store(true, Ordering::Release);
        match self.thread.join() {
            Ok(counts) => counts,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// The thread's state.
struct PacketThread {
    sockets: Vec<PacketSocket>,
    names: Vec<String>,
    packets: PacketSink,
    /// For each socket, from the beginning.
    counts: Vec<InterfaceCounts>,
    counted: Instant,
}

/// Where packets go.
struct PacketSink {
    filter: Option<PacketFilter>,
    snap_length: usize,
    file: Option<(PathBuf, PcapngWriter<BufWriter<File>>)>,
    /// Names of interfaces by their numbers.
    interfaces: BTreeMap<u32, (String, u64)>,
    counts: PacketCounts,
    /// Memory for packets whose bytes are not as they were received.
    whole: Vec<u8>,
}

impl PacketThread {
    fn new(source: PacketSource) -> Self {
        let PacketSource { sockets, names, filter, snap_length, file } = source;
        let packets = PacketSink {
            filter,
            snap_length: snap_length as usize,
            file,
            interfaces: BTreeMap::new(),
            counts: PacketCounts::default(),
            whole: Vec::new(),
        };
        let counts = vec![InterfaceCounts { received: Some(0), dropped: 0 }; names.len()];
        Self { sockets, names, packets, counts, counted: Instant::now() }
    }

    fn run(mut self, stop: &AtomicBool) -> PacketCounts {
        loop {
            let is_over = stop.load(Ordering::Acquire);
            // On an interface that is never quiet, the last turn takes a ring's packets at most.
            let most = if is_over { usize::from(u16::MAX) } else { TURN };
            let mut taken = 0;
            for socket in &mut self.sockets {
                taken += socket.take(most, &mut |packet| self.packets.take(packet));
            }
            if is_over {
                break;
            }
            if self.counted.elapsed() >= COUNT {
                self.count(false);
            }
            if taken == 0
                && let Err(error) = wait_for_packets(&self.sockets, LOOK)
            {
                self.packets.problem(format!("an interface has stopped: {error}"));
                std::thread::sleep(LOOK);
            }
        }
        self.count(true);
        self.packets.end(&self.names, &self.counts)
    }

    /// Asks how many packets were dropped, and records it where that is new.
    fn count(&mut self, is_last: bool) {
        self.counted = Instant::now();
        for ((socket, name), counts) in self.sockets.iter().zip(&self.names).zip(&mut self.counts) {
            let more = match socket.counts() {
                Ok(more) => more,
                Err(error) => {
                    self.packets.problem(format!("it is not known how many packets of {name} were dropped: {error}"));
                    continue;
                }
            };
            let received = counts.received.unwrap_or(0) + more.received;
            *counts = InterfaceCounts { received: Some(received), dropped: counts.dropped + more.dropped };
            self.packets.counts.dropped += more.dropped;
            if is_last || more.dropped > 0 {
                record_counts(name, received, counts.dropped);
            }
        }
        self.packets.flush();
    }
}

impl PacketSink {
    fn take(&mut self, packet: &SocketPacket<'_>) {
        // A session that is over, or that waits for its trigger, has no packets.
        if !kymo_event_packet.is_on() {
            return;
        }
        let (link, added) = self.whole(packet);
        let data = if added.is_some() { &self.whole } else { packet.data };
        let length = packet.length.saturating_add_signed(added.unwrap_or(0));
        let (interface, count) = self.interfaces.entry(packet.interface).or_insert_with(|| {
            let name = interface_name(packet.interface);
            (name.unwrap_or_else(|| format!("interface {}", packet.interface)), 0)
        });
        let is_outbound = packet.kind == OUTGOING;
        let direction = if is_outbound { PacketDirection::Outbound } else { PacketDirection::Inbound };
        let facts = PacketFacts { interface, direction, link, length, data };
        if self.filter.as_ref().is_some_and(|filter| !filter.keeps(&facts)) {
            return;
        }
        let data = &data[..data.len().min(self.snap_length)];
        *count += 1;
        self.counts.packets += 1;
        self.counts.cut += u64::from((data.len() as u32) < length);
        let way = if is_outbound { Direction::Outbound } else { Direction::Inbound };
        captured(&CapturedPacket { interface, direction: way, link, length, received: packet.time, data });
        if let Some((_, file)) = &mut self.file {
            let packet = PcapngPacket { interface, link, direction, time: packet.time, length, data };
            let written = file.packet(&packet);
            self.written(written);
        }
    }

    /// The link of a packet, and by how much its bytes in `whole` are more than those that were received; `None`: its bytes
    /// are those that were received.
    fn whole(&mut self, packet: &SocketPacket<'_>) -> (u16, Option<i32>) {
        match (packet.hardware, packet.tag) {
            (ETHERNET | LOOPBACK, None) => (LINK_ETHERNET, None),
            // The kernel, or the hardware, has taken the tag out.
            (ETHERNET | LOOPBACK, Some((protocol, tag))) if packet.data.len() >= 12 => {
                let (addresses, rest) = packet.data.split_at(12);
                self.whole.clear();
                self.whole.extend(addresses);
                self.whole.extend([protocol.to_be_bytes(), tag.to_be_bytes()].concat());
                self.whole.extend(rest);
                (LINK_ETHERNET, Some(4))
            }
            (ETHERNET | LOOPBACK, Some(_)) => (LINK_ETHERNET, None),
            (NONE | RAW_IP, _) if packet.network == 0 && matches!(packet.protocol, 0x800 | 0x86DD) => {
                (LINK_RAW_IP, None)
            }
            // A head that is known, instead of one that may be any.
            _ => {
                let network = packet.network.min(packet.data.len());
                let mut sender = [0; 8];
                sender[..packet.sender.len()].copy_from_slice(packet.sender);
                self.whole.clear();
                for word in [u16::from(packet.kind), packet.hardware, packet.sender.len() as u16] {
                    self.whole.extend(word.to_be_bytes());
                }
                self.whole.extend(sender);
                self.whole.extend(packet.protocol.to_be_bytes());
                self.whole.extend(&packet.data[network..]);
                (LINK_COOKED, Some(16 - network as i32))
            }
        }
    }

    fn written(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && let Some((path, _)) = self.file.take()
        {
            self.problem(format!("{}: {error}; it ends there", path.display()));
        }
    }

    fn flush(&mut self) {
        if let Some((_, file)) = &mut self.file {
            let written = file.flush();
            self.written(written);
        }
    }

    /// Keeps an error, once.
    fn problem(&mut self, what: String) {
        if !self.counts.problems.contains(&what) {
            self.counts.problems.push(what);
        }
    }

    fn end(mut self, names: &[String], counts: &[InterfaceCounts]) -> PacketCounts {
        if let Some((path, mut file)) = self.file.take() {
            let mut told = names.iter().zip(counts).filter(|(name, counts)| *name != ANY || counts.dropped > 0);
            let written = told.try_for_each(|(name, counts)| file.counts(name, *counts));
            if let Err(error) = written.and_then(|()| file.finish().map(drop)) {
                self.problem(format!("{}: {error}; it ends there", path.display()));
            }
        }
        for (name, count) in self.interfaces.into_values() {
            *self.counts.interfaces.entry(name).or_default() += count;
        }
        self.counts.interfaces.retain(|_, count| *count > 0);
        self.counts
    }
}

/// Arguments of counts that filters see, laid out as in C.
#[repr(C)]
struct DropArguments<'a> {
    interface: <&'a str as Field>::Argument,
    received: u64,
    dropped: u64,
}

fn record_counts(interface: &str, received: u64, dropped: u64) {
    let arguments = DropArguments { interface: interface.argument(), received, dropped };
    if !COUNTS.is_on() || !COUNTS.is_kept(&arguments) {
        return;
    }
    let fixed = <&str as Field>::FIXED + 2 * u64::FIXED;
    if let Some(mut write) = COUNTS.enter(fixed + interface.varying()) {
        interface.put(&mut write, interface.varying());
        received.put(&mut write, 0);
        dropped.put(&mut write, 0);
        write.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(packet: &SocketPacket<'_>) -> (u16, i64, Vec<u8>) {
        let mut sink = PacketSink {
            filter: None,
            snap_length: 100,
            file: None,
            interfaces: BTreeMap::new(),
            counts: PacketCounts::default(),
            whole: vec![1, 2, 3],
        };
        let (link, added) = sink.whole(packet);
        let data = if added.is_some() { sink.whole } else { packet.data.to_vec() };
        (link, i64::from(added.unwrap_or(0)), data)
    }

    /// Packets have a head that readers know, whatever hardware they come from.
    #[test]
    fn packets_begin_with_a_known_head() {
        let frame: Vec<u8> = (0..60).collect();
        let packet = |hardware, protocol, tag, network| SocketPacket {
            time: 0,
            interface: 1,
            hardware,
            protocol,
            kind: OUTGOING,
            sender: &[2, 0, 0, 0, 0, 9],
            tag,
            length: 60,
            network,
            data: &frame,
        };
        for hardware in [ETHERNET, LOOPBACK] {
            assert_eq!(whole(&packet(hardware, 0x800, None, 14)), (1, 0, frame.clone()));
            let tagged = [&frame[..12], &[0x88, 0xA8, 0x20, 42], &frame[12..]].concat();
            assert_eq!(whole(&packet(hardware, 0x800, Some((0x88A8, 0x202A)), 14)), (1, 4, tagged));
        }
        for hardware in [NONE, RAW_IP] {
            assert_eq!(whole(&packet(hardware, 0x86DD, None, 0)), (101, 0, frame.clone()));
        }
        // A head of 30 bytes, say, of a radio; or none, and a protocol that is not IP.
        let head = |hardware: u16| {
            [&[0, 4][..], &hardware.to_be_bytes(), &[0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 0x88, 0xB5]].concat()
        };
        let cooked = [head(803), frame[30..].to_vec()].concat();
        assert_eq!(whole(&packet(803, 0x88B5, None, 30)), (113, -14, cooked));
        let cooked = [head(NONE), frame.clone()].concat();
        assert_eq!(whole(&packet(NONE, 0x88B5, None, 0)), (113, 16, cooked));
        // A head as long as the one that replaces it.
        let cooked = [head(803), frame[16..].to_vec()].concat();
        assert_eq!(whole(&packet(803, 0x88B5, None, 16)), (113, 0, cooked));
    }

    #[test]
    fn wrong_interfaces_and_filters_are_told() {
        let options = |interface: &str, filter: &str| PacketOptions {
            interfaces: vec![interface.to_owned()],
            filter: Some(filter.to_owned()),
            snap_length: 100,
            file: None,
        };
        let told = |options: &PacketOptions| PacketSource::open(options).expect_err("it is wrong").to_string();
        assert!(told(&options("lo", "length >")).contains("expected a value"));
        let said = told(&options("l0", "length > 3"));
        assert!(said.contains("no network interface `l0`; did you mean `lo`?") && said.contains(ANY), "{said}");
    }
}
