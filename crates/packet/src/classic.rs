//! Filters as classic BPF, which a packet socket runs in the kernel before it copies a packet.
//!
//! ```text
//! tcp.destination_port == 443 && tcp.flags == "*SYN*"
//!
//! kernel       a link of Ethernet without a tag? IPv4 or IPv6? TCP, not a fragment? port 443?  ── yes ──> takes the packet
//!              └ no link, packet or head that is understood here ─────────────────────────────────────> takes the packet
//! user space   evaluates the whole expression again
//! ```
//!
//! The program takes at least the packets of which the expression is true. Each test, negated or not, is one of three:
//! it can be compiled; its field is certainly missing, so that neither the test nor its negation is true; or there is
//! doubt, and it counts as true. `not` is moved inwards first, so that doubt is never negated. A packet that is unlike
//! those that are compiled for (tags, options of IPv6, broken or short heads) is taken as a whole.

use std::net::{Ipv4Addr, Ipv6Addr};

use kymo_ir::predicate::{Input, Number, Pattern, Relation, Test, TextExpression};

use crate::addresses::mac_of;
use crate::fields::HeadField;

/// An instruction, as `struct sock_filter` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the kernel's documentation of BPF describes them")]
pub struct ClassicInstruction {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// Instructions of a program, at most; the kernel's limit.
const INSTRUCTIONS_MAX: usize = 4096;

const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
/// Added to the loads above: at X plus a constant.
const AT_X: u16 = 0x20;
const LOAD_LENGTH: u16 = 0x80;
const LOAD_CONSTANT: u16 = 0x00;
const X_CONSTANT: u16 = 0x01;
/// X is the length of a head of IPv4 at a place.
const X_HEAD_LENGTH: u16 = 0xB1;
const ADD: u16 = 0x04;
const AND: u16 = 0x54;
const SHIFT_LEFT: u16 = 0x64;
const TO_X: u16 = 0x07;
const FROM_X: u16 = 0x87;
const RETURN: u16 = 0x06;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_GREATER: u16 = 0x25;
const IF_NOT_LESS: u16 = 0x35;
const IF_NOT_LESS_THAN_X: u16 = 0x3D;
const IF_ANY_BIT: u16 = 0x45;

/// Places of facts beside the packet's bytes.
const PACKET_TYPE: u32 = 0xFFFF_F000 + 4;
const HARDWARE: u32 = 0xFFFF_F000 + 28;
const HAS_TAG: u32 = 0xFFFF_F000 + 48;

const OUTGOING: u32 = 4;
/// Kinds of hardware whose packets begin with a head of Ethernet.
const ETHERNET: u32 = 1;
const LOOPBACK: u32 = 772;

/// Bytes before the head of IP.
const LINK_BYTES: u32 = 14;
/// Protocols behind the link's head that have heads of their own before those that are understood here: tags of VLANs and
/// MACsec.
const TAGS: [u32; 4] = [0x8100, 0x88A8, 0x9100, 0x88E5];
/// Heads that may be between IPv6 and the protocol that it carries; the fourth one is also between IPv4 and that.
const EXTENSIONS: [u32; 8] = [0, 43, 44, 51, 60, 135, 139, 140];
const AUTHENTICATION: u32 = 51;

/// A place in the code, which jumps before it lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CodePlace(usize);

/// The lines of a program before jumps have distances.
enum CodeLine {
    Plain { code: u16, k: u32 },
    Branch { code: u16, k: u32, yes: CodePlace, no: CodePlace },
    Place(CodePlace),
}

/// The program of an expression.
pub(crate) fn compile(root: &Test, fields: &[HeadField], snap: u32) -> Vec<ClassicInstruction> {
    let mut code = ClassicCode { fields, lines: Vec::new(), places: 0, taken: CodePlace(0) };
    let (taken, left) = (code.place(), code.place());
    code.taken = taken;
    let (hardware, tag, ready) = (code.place(), code.place(), code.place());
    code.loopback(tag, hardware, left);
    code.put(hardware);
    code.branch(IF_EQUAL, ETHERNET, tag, taken);
    code.put(tag);
    code.plain(LOAD_WORD, HAS_TAG);
    code.branch(IF_EQUAL, 0, ready, taken);
    code.put(ready);
    code.test(root, false, taken, left);
    code.put(left);
    code.plain(RETURN, 0);
    code.put(taken);
    code.plain(RETURN, snap);
    let assembled = code.assembled();
    if assembled.len() > INSTRUCTIONS_MAX { take_all(snap) } else { assembled }
}

/// The program that takes `snap` bytes of every packet, as [`PacketFilter::classic`](crate::PacketFilter::classic) does
/// without a filter. Of packets of the loopback, which come twice, it takes those that arrive.
#[must_use]
pub fn take_all(snap: u32) -> Vec<ClassicInstruction> {
    let mut code = ClassicCode { fields: &[], lines: Vec::new(), places: 0, taken: CodePlace(0) };
    let (taken, left) = (code.place(), code.place());
    code.loopback(taken, taken, left);
    code.put(left);
    code.plain(RETURN, 0);
    code.put(taken);
    code.plain(RETURN, snap);
    code.assembled()
}

struct ClassicCode<'a> {
    fields: &'a [HeadField],
    lines: Vec<CodeLine>,
    places: usize,
    /// Where the packet is taken.
    taken: CodePlace,
}

impl ClassicCode<'_> {
    fn place(&mut self) -> CodePlace {
        self.places += 1;
        CodePlace(self.places - 1)
    }

    fn put(&mut self, place: CodePlace) {
        self.lines.push(CodeLine::Place(place));
    }

    fn plain(&mut self, code: u16, k: u32) {
        self.lines.push(CodeLine::Plain { code, k });
    }

    fn branch(&mut self, code: u16, k: u32, yes: CodePlace, no: CodePlace) {
        self.lines.push(CodeLine::Branch { code, k, yes, no });
    }

    fn go(&mut self, place: CodePlace) {
        self.branch(JUMP, 0, place, place);
    }

    /// Jumps to `yes` if the test, or its negation, may be true.
    fn test(&mut self, test: &Test, is_negated: bool, yes: CodePlace, no: CodePlace) {
        match test {
            Test::Constant(value) => self.go(if value.is_some_and(|value| value != is_negated) { yes } else { no }),
            Test::Not(test) => self.test(test, !is_negated, yes, no),
            Test::All(tests) => self.tests(tests, !is_negated, is_negated, (yes, no)),
            Test::Any(tests) => self.tests(tests, is_negated, is_negated, (yes, no)),
            Test::Compare { relation, left: Number::Input(input), right: Number::Integer(value) } => {
                self.compare(*input, *relation, *value, is_negated, (yes, no));
            }
            Test::Compare { relation, left: Number::Integer(value), right: Number::Input(input) } => {
                self.compare(*input, relation.mirrored(), *value, is_negated, (yes, no));
            }
            Test::Among { value: Number::Input(input), ranges } => self.among(*input, ranges, is_negated, yes, no),
            Test::Matches { text: TextExpression::Input(input), pattern: Pattern::Exactly(text) } => {
                self.same_text(*input, text, is_negated, yes, no);
            }
            Test::CompareText { relation, left, right } => match (relation, left, right) {
                (Relation::Equal, TextExpression::Input(input), TextExpression::Literal(text))
                | (Relation::Equal, TextExpression::Literal(text), TextExpression::Input(input)) => {
                    self.same_text(*input, text, is_negated, yes, no);
                }
                (Relation::NotEqual, TextExpression::Input(input), TextExpression::Literal(text))
                | (Relation::NotEqual, TextExpression::Literal(text), TextExpression::Input(input)) => {
                    self.same_text(*input, text, !is_negated, yes, no);
                }
                _ => self.go(yes),
            },
            _ => self.go(yes),
        }
    }

    /// All of the tests, or any.
    fn tests(&mut self, tests: &[Test], needs_all: bool, is_negated: bool, (yes, no): (CodePlace, CodePlace)) {
        for test in tests {
            let next = self.place();
            let (yes, no) = if needs_all { (next, no) } else { (yes, next) };
            self.test(test, is_negated, yes, no);
            self.put(next);
        }
        self.go(if needs_all { yes } else { no });
    }

    fn compare(
        &mut self,
        input: Input,
        relation: Relation,
        value: i128,
        is_negated: bool,
        (yes, no): (CodePlace, CodePlace),
    ) {
        let (range, is_outside) = match relation {
            Relation::Equal => ((value, value), false),
            Relation::NotEqual => ((value, value), true),
            Relation::Less => ((i128::MIN, value - 1), false),
            Relation::LessOrEqual => ((i128::MIN, value), false),
            Relation::Greater => ((value + 1, i128::MAX), false),
            Relation::GreaterOrEqual => ((value, i128::MAX), false),
        };
        self.among(input, &[range], is_negated != is_outside, yes, no);
    }

    /// Whether the value lies in one of the ranges.
    fn among(&mut self, input: Input, ranges: &[(i128, i128)], is_negated: bool, yes: CodePlace, no: CodePlace) {
        if !self.load(self.fields[usize::from(input.0)], no) {
            return self.go(yes);
        }
        let (inside, outside) = if is_negated { (no, yes) } else { (yes, no) };
        for &(lowest, highest) in ranges {
            let (lowest, highest) = (lowest.max(0), highest.min(u32::MAX.into()));
            if lowest > highest {
                continue;
            }
            let (lowest, highest) = (lowest as u32, highest as u32);
            let next = self.place();
            if lowest == highest {
                self.branch(IF_EQUAL, lowest, inside, next);
            } else {
                let not_less = self.place();
                self.branch(IF_NOT_LESS, lowest, not_less, next);
                self.put(not_less);
                self.branch(IF_GREATER, highest, next, inside);
            }
            self.put(next);
        }
        self.go(outside);
    }

    /// Loads the value of a field; jumps to `missing` where the packet has none. `false`: this is not compiled.
    fn load(&mut self, field: HeadField, missing: CodePlace) -> bool {
        match field {
            HeadField::Direction => self.direction(),
            HeadField::Length => self.plain(LOAD_LENGTH, 0),
            HeadField::EthType => self.ether_type(missing),
            HeadField::IpVersion => self.of_ip(missing, (LOAD_CONSTANT, 4), (LOAD_CONSTANT, 6)),
            HeadField::IpTtl => self.of_ip(missing, (LOAD_BYTE, 22), (LOAD_BYTE, 21)),
            HeadField::IpLength => self.of_ip(missing, (LOAD_HALF, 16), (LOAD_HALF, 18)),
            HeadField::IpProtocol => self.protocol(missing),
            HeadField::IpFragment => self.fragment(missing),
            HeadField::IcmpType => self.of_transport(missing, &[1, 58], 8, (LOAD_BYTE, 0)),
            HeadField::IcmpCode => self.of_transport(missing, &[1, 58], 8, (LOAD_BYTE, 1)),
            HeadField::UdpSourcePort => self.of_transport(missing, &[17], 8, (LOAD_HALF, 0)),
            HeadField::UdpDestinationPort => self.of_transport(missing, &[17], 8, (LOAD_HALF, 2)),
            HeadField::UdpLength => self.of_transport(missing, &[17], 8, (LOAD_HALF, 4)),
            HeadField::TcpSourcePort => self.of_transport(missing, &[6], 20, (LOAD_HALF, 0)),
            HeadField::TcpDestinationPort => self.of_transport(missing, &[6], 20, (LOAD_HALF, 2)),
            HeadField::TcpSequence => self.of_transport(missing, &[6], 20, (LOAD_WORD, 4)),
            HeadField::TcpAcknowledgment => self.of_transport(missing, &[6], 20, (LOAD_WORD, 8)),
            HeadField::TcpWindow => self.of_transport(missing, &[6], 20, (LOAD_HALF, 14)),
            _ => return false,
        }
        true
    }

    /// Where to go on for packets of the loopback that arrive, and of other hardware; those that leave are `left`.
    fn loopback(&mut self, arriving: CodePlace, other: CodePlace, left: CodePlace) {
        let loopback = self.place();
        self.plain(LOAD_WORD, HARDWARE);
        self.branch(IF_EQUAL, LOOPBACK, loopback, other);
        self.put(loopback);
        self.plain(LOAD_WORD, PACKET_TYPE);
        self.branch(IF_EQUAL, OUTGOING, left, arriving);
    }

    fn direction(&mut self) {
        let (outbound, inbound, loaded) = (self.place(), self.place(), self.place());
        self.plain(LOAD_WORD, PACKET_TYPE);
        self.branch(IF_EQUAL, OUTGOING, outbound, inbound);
        self.put(inbound);
        self.plain(LOAD_CONSTANT, 1);
        self.go(loaded);
        self.put(outbound);
        self.plain(LOAD_CONSTANT, 2);
        self.put(loaded);
    }

    /// Goes on if the packet has so many bytes.
    fn has_bytes(&mut self, count: u32, otherwise: CodePlace) {
        let enough = self.place();
        self.plain(LOAD_LENGTH, 0);
        self.branch(IF_NOT_LESS, count, enough, otherwise);
        self.put(enough);
    }

    /// Jumps where the loaded value is one of these.
    fn jump_if_any(&mut self, values: &[u32], place: CodePlace) {
        for &value in values {
            let next = self.place();
            self.branch(IF_EQUAL, value, place, next);
            self.put(next);
        }
    }

    fn ether_type(&mut self, missing: CodePlace) {
        self.has_bytes(LINK_BYTES, missing);
        self.plain(LOAD_HALF, 12);
        self.jump_if_any(&TAGS, self.taken);
    }

    /// Goes on where the packet has a head of IPv4, and returns the place where it has one of IPv6.
    fn ip(&mut self, missing: CodePlace) -> CodePlace {
        let (v4, v6, whole) = (self.place(), self.place(), self.place());
        self.ether_type(missing);
        self.jump_if_any(&[0x86DD], v6);
        self.branch(IF_EQUAL, 0x800, v4, missing);
        self.put(v4);
        self.has_bytes(LINK_BYTES + 20, self.taken);
        self.plain(LOAD_BYTE, LINK_BYTES);
        self.plain(AND, 0xF0);
        self.branch(IF_EQUAL, 0x40, whole, self.taken);
        self.put(whole);
        v6
    }

    /// Goes on at the place where the packet has a head of IPv6.
    fn ip_v6(&mut self, place: CodePlace) {
        let whole = self.place();
        self.put(place);
        self.has_bytes(LINK_BYTES + 40, self.taken);
        self.plain(LOAD_BYTE, LINK_BYTES);
        self.plain(AND, 0xF0);
        self.branch(IF_EQUAL, 0x60, whole, self.taken);
        self.put(whole);
    }

    fn of_ip(&mut self, missing: CodePlace, v4: (u16, u32), v6: (u16, u32)) {
        let loaded = self.place();
        let other = self.ip(missing);
        self.plain(v4.0, v4.1);
        self.go(loaded);
        self.ip_v6(other);
        self.plain(v6.0, v6.1);
        self.put(loaded);
    }

    fn protocol(&mut self, missing: CodePlace) {
        let loaded = self.place();
        let other = self.ip(missing);
        self.plain(LOAD_BYTE, 23);
        self.jump_if_any(&[AUTHENTICATION], self.taken);
        self.go(loaded);
        self.ip_v6(other);
        self.plain(LOAD_BYTE, 20);
        self.jump_if_any(&EXTENSIONS, self.taken);
        self.put(loaded);
    }

    fn fragment(&mut self, missing: CodePlace) {
        let loaded = self.place();
        let other = self.ip(missing);
        self.plain(LOAD_HALF, 20);
        self.plain(AND, 0x1FFF);
        self.plain(SHIFT_LEFT, 3);
        self.go(loaded);
        self.ip_v6(other);
        self.plain(LOAD_CONSTANT, 0);
        self.put(loaded);
    }

    /// Loads from the head behind that of IP, which is of one of these protocols and has so many bytes at least.
    fn of_transport(&mut self, missing: CodePlace, protocols: &[u32], bytes: u32, (load, at): (u16, u32)) {
        let (known, valid, whole, unbroken) = (self.place(), self.place(), self.place(), self.place());
        let (known_v6, loaded) = (self.place(), self.place());
        let other = self.ip(missing);
        self.plain(LOAD_HALF, 20);
        // No head behind that of IP is looked at if more fragments follow, or this is not the first one.
        self.branch(IF_ANY_BIT, 0x3FFF, missing, unbroken);
        self.put(unbroken);
        self.plain(LOAD_BYTE, 23);
        self.jump_if_any(protocols, known);
        self.branch(IF_EQUAL, AUTHENTICATION, self.taken, missing);
        self.put(known);
        self.plain(X_HEAD_LENGTH, LINK_BYTES);
        self.plain(FROM_X, 0);
        self.branch(IF_NOT_LESS, 20, valid, self.taken);
        self.put(valid);
        self.plain(ADD, LINK_BYTES + bytes);
        self.plain(TO_X, 0);
        self.plain(LOAD_LENGTH, 0);
        self.branch(IF_NOT_LESS_THAN_X, 0, whole, self.taken);
        self.put(whole);
        self.plain(X_HEAD_LENGTH, LINK_BYTES);
        self.plain(load + AT_X, LINK_BYTES + at);
        self.go(loaded);
        self.ip_v6(other);
        self.plain(LOAD_BYTE, 20);
        self.jump_if_any(protocols, known_v6);
        self.jump_if_any(&EXTENSIONS, self.taken);
        self.go(missing);
        self.put(known_v6);
        self.has_bytes(LINK_BYTES + 40 + bytes, self.taken);
        self.plain(X_CONSTANT, 40);
        self.plain(load + AT_X, LINK_BYTES + at);
        self.put(loaded);
    }

    /// Whether a field is this very text.
    fn same_text(&mut self, input: Input, text: &[u8], is_negated: bool, yes: CodePlace, no: CodePlace) {
        let (same, unlike) = if is_negated { (no, yes) } else { (yes, no) };
        let text = std::str::from_utf8(text).unwrap_or_default();
        match self.fields[usize::from(input.0)] {
            HeadField::EthSource => self.same_mac(text, 6, no, (same, unlike)),
            HeadField::EthDestination => self.same_mac(text, 0, no, (same, unlike)),
            HeadField::IpSource => self.same_ip(text, (26, 22), no, (same, unlike)),
            HeadField::IpDestination => self.same_ip(text, (30, 38), no, (same, unlike)),
            _ => self.go(yes),
        }
    }

    fn same_mac(&mut self, text: &str, at: u32, missing: CodePlace, (same, unlike): (CodePlace, CodePlace)) {
        self.has_bytes(LINK_BYTES, missing);
        let Some(address) = mac_of(text) else { return self.go(unlike) };
        let [a, b, c, d, e, f] = address;
        let next = self.place();
        self.plain(LOAD_WORD, at);
        self.branch(IF_EQUAL, u32::from_be_bytes([a, b, c, d]), next, unlike);
        self.put(next);
        self.plain(LOAD_HALF, at + 4);
        self.branch(IF_EQUAL, u16::from_be_bytes([e, f]).into(), same, unlike);
    }

    fn same_ip(&mut self, text: &str, at: (u32, u32), missing: CodePlace, (same, unlike): (CodePlace, CodePlace)) {
        // An address that is written in another way is no text that packets have.
        let v4 = text.parse::<Ipv4Addr>().ok().filter(|address| address.to_string() == text);
        let v6 = text.parse::<Ipv6Addr>().ok().filter(|address| address.to_string() == text);
        let other = self.ip(missing);
        match v4 {
            Some(address) => {
                self.plain(LOAD_WORD, at.0);
                self.branch(IF_EQUAL, address.to_bits(), same, unlike);
            }
            None => self.go(unlike),
        }
        self.ip_v6(other);
        for (word, bytes) in v6.iter().flat_map(|address| address.octets().as_chunks::<4>().0.to_vec()).enumerate() {
            let next = self.place();
            self.plain(LOAD_WORD, at.1 + 4 * word as u32);
            self.branch(IF_EQUAL, u32::from_be_bytes(bytes), next, unlike);
            self.put(next);
        }
        self.go(if v6.is_some() { same } else { unlike });
    }

    /// The program with distances. All jumps lead forward: from the end on, every place is known when a jump needs it.
    fn assembled(&self) -> Vec<ClassicInstruction> {
        let mut backward: Vec<ClassicInstruction> = Vec::new();
        let mut known = vec![0; self.places];
        for line in self.lines.iter().rev() {
            match *line {
                CodeLine::Place(CodePlace(number)) => known[number] = backward.len(),
                CodeLine::Plain { code, k } => backward.push(ClassicInstruction { code, jt: 0, jf: 0, k }),
                CodeLine::Branch { code, k, yes, no } => {
                    let distance =
                        |backward: &[ClassicInstruction], place: CodePlace| (backward.len() - known[place.0]) as u32;
                    if code == JUMP {
                        let k = distance(&backward, yes);
                        // A jump to the next line does nothing.
                        if k > 0 {
                            backward.push(ClassicInstruction { code, jt: 0, jf: 0, k });
                        }
                        continue;
                    }
                    let is_near = |distance: u32| distance < 255;
                    let (mut jt, mut jf) = (distance(&backward, yes), distance(&backward, no));
                    if !is_near(jf) {
                        backward.push(ClassicInstruction { code: JUMP, jt: 0, jf: 0, k: jf });
                        (jt, jf) = (distance(&backward, yes), 0);
                    }
                    if !is_near(jt) {
                        backward.push(ClassicInstruction { code: JUMP, jt: 0, jf: 0, k: jt });
                        (jt, jf) = (0, jf + 1);
                    }
                    backward.push(ClassicInstruction { code, jt: jt as u8, jf: jf as u8, k });
                }
            }
        }
        backward.reverse();
        backward
    }
}
