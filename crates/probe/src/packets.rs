//! Packet sockets: everything that an interface sends and receives, in memory that the kernel shares.
//!
//! ```text
//! kernel ── BPF: bytes to take, or 0 ──> ring of frames, each with a status
//!                                        │ status says USER: it is ours, until we write KERNEL
//!           no free frame: dropped, and counted
//! ```
//!
//! Frames are handed over one by one (version 2 of the ring). Version 3 hands over blocks of packets, where a packet of a
//! quiet interface waits for up to a tick of the kernel's timer: 4 ms later, events around it would be before it.

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libc::{sockaddr_ll, tpacket_req, tpacket_stats, tpacket2_hdr};

/// An instruction of classic BPF, as `struct sock_filter` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the kernel's documentation of BPF describes them")]
pub struct BpfLine {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// Packets of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounts {
    /// Packets that the filter let through, those that were dropped included.
    pub received: u64,
    /// Packets for which there was no room.
    pub dropped: u64,
}

/// A packet as the kernel has it.
#[derive(Clone, Copy, Debug)]
pub struct SocketPacket<'r> {
    /// In nanoseconds since 1970.
    pub time: u64,
    /// The number of its interface.
    pub interface: u32,
    /// The kind of hardware (`ARPHRD_`).
    pub hardware: u16,
    /// The protocol behind the link's head (`ETH_P_`).
    pub protocol: u16,
    /// As the kernel classifies it: 0 for this machine, 4 from it (`PACKET_OUTGOING`), and others.
    pub kind: u8,
    /// The sender's address of the link.
    pub sender: &'r [u8],
    /// A tag of a VLAN that was taken out of the bytes: its protocol and its value.
    pub tag: Option<(u16, u16)>,
    /// Bytes that it has.
    pub length: u32,
    /// The place behind the link's head.
    pub network: usize,
    /// Its bytes, as many as the filter says.
    pub data: &'r [u8],
}

/// `kind` of packets that this machine sends.
pub const OUTGOING: u8 = libc::PACKET_OUTGOING;

/// Bytes of the ring, about.
const RING_BYTES: usize = 32 << 20;
/// Frames lie in blocks, which are pages in a row.
const BLOCK_BYTES: usize = 1 << 18;
/// Bytes of a frame before a packet's, at most: the frame's head, the address, and room that the kernel leaves.
const FRAME_HEAD_BYTES: usize = 112;

/// A packet socket with its ring.
#[derive(Debug)]
pub struct PacketSocket {
    file: OwnedFd,
    ring: RingMemory,
    /// The frame that comes next.
    next: usize,
}

/// Memory that is shared with the kernel.
#[derive(Debug)]
struct RingMemory {
    start: NonNull<u8>,
    bytes: usize,
    frame_bytes: usize,
    frames: usize,
    frames_in_block: usize,
}

// SAFETY: the memory is that of one socket and belongs to this value alone, on whichever thread that is.
#[allow(unsafe_code)]
unsafe impl Send for RingMemory {}

/// The number of an interface.
///
/// # Errors
///
/// The kernel's error, `ENODEV` if there is none of that name.
pub fn interface_index(name: &CStr) -> io::Result<u32> {
    // SAFETY: the name ends with a zero.
    #[allow(unsafe_code)]
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// The name of an interface; `None`: it is gone.
#[must_use]
pub fn interface_name(index: u32) -> Option<String> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: there is room for a name of that size.
    #[allow(unsafe_code)]
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
    let name = CStr::from_bytes_until_nul(&name).ok().filter(|_| !found.is_null())?;
    Some(name.to_string_lossy().into_owned())
}

impl PacketSocket {
    /// Opens one for an interface; number 0: all. The filter says how many bytes of a packet are taken, `snap` at most.
    ///
    /// # Errors
    ///
    /// The kernel's error, `EPERM` without the capability `CAP_NET_RAW`.
    pub fn open(index: u32, snap: u32, filter: &[BpfLine]) -> io::Result<Self> {
        // It gets no packet before it is bound.
        // SAFETY: no memory is handed over.
        #[allow(unsafe_code)]
        let file = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this file descriptor for us; no other code knows it.
        #[allow(unsafe_code)]
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        set_filter(&file, filter)?;
        set(&file, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        let frame_bytes = (snap as usize + FRAME_HEAD_BYTES).next_multiple_of(libc::TPACKET_ALIGNMENT);
        let (blocks, frames_in_block) = (RING_BYTES / BLOCK_BYTES, BLOCK_BYTES / frame_bytes);
        let frames = blocks * frames_in_block;
        let request = tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: frame_bytes as u32,
            tp_frame_nr: frames as u32,
        };
        set(&file, libc::PACKET_RX_RING, &request)?;
        let ring = RingMemory::map(&file, (blocks * BLOCK_BYTES, frame_bytes), frames, frames_in_block)?;
        bind(&file, index)?;
        Ok(Self { file, ring, next: 0 })
    }

    /// Hands over packets that are there, `most` at most; returns their number.
    pub fn take(&mut self, most: usize, take: &mut dyn FnMut(&SocketPacket<'_>)) -> usize {
        for taken in 0..most {
            let Some(frame) = self.ring.frame(self.next) else { return taken };
            take(&frame.packet());
            frame.give_back();
            self.next = (self.next + 1) % self.ring.frames;
        }
        most
    }

    /// Counts since the last call.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub fn counts(&self) -> io::Result<SocketCounts> {
        let mut counts = tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut bytes = size_of::<tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `bytes` bytes of the counts.
        #[allow(unsafe_code)]
        let answer = unsafe {
            libc::getsockopt(
                self.file.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                std::ptr::from_mut(&mut counts).cast(),
                &raw mut bytes,
            )
        };
        checked(answer)?;
        Ok(SocketCounts { received: counts.tp_packets.into(), dropped: counts.tp_drops.into() })
    }

    /// The error that waits, which does not wait any more.
    fn take_error(&self) -> io::Result<()> {
        let mut errno: c_int = 0;
        let mut bytes = size_of::<c_int>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `bytes` bytes of the number.
        #[allow(unsafe_code)]
        let answer = unsafe {
            libc::getsockopt(
                self.file.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut errno).cast(),
                &raw mut bytes,
            )
        };
        checked(answer)?;
        if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
    }

    /// Sends a frame on its interface.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the kernel reads as many bytes as the frame has.
        #[allow(unsafe_code)]
        let sent = unsafe { libc::send(self.file.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Waits until one of the sockets has a packet, or the time is over.
///
/// # Errors
///
/// The kernel's error: of an interface that is down or gone (`ENETDOWN`), once each time.
pub fn wait_for_packets(sockets: &[PacketSocket], time: Duration) -> io::Result<()> {
    let polled = |socket: &PacketSocket| libc::pollfd { fd: socket.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<libc::pollfd> = sockets.iter().map(polled).collect();
    let millis = c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX);
    // SAFETY: the kernel reads and writes the structures of the list.
    #[allow(unsafe_code)]
    let answer = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, millis) };
    match checked(answer) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
        answer => answer?,
    }
    let mut has_error = polled.iter().zip(sockets).filter(|(polled, _)| polled.revents & libc::POLLERR != 0);
    has_error.try_for_each(|(_, socket)| socket.take_error())
}

fn checked(answer: c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set<T>(file: &OwnedFd, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes of the value as it has.
    #[allow(unsafe_code)]
    checked(unsafe {
        libc::setsockopt(
            file.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast::<c_void>(),
            size_of::<T>() as libc::socklen_t,
        )
    })
}

fn set_filter(file: &OwnedFd, filter: &[BpfLine]) -> io::Result<()> {
    let mut lines: Vec<libc::sock_filter> =
        filter.iter().map(|line| libc::sock_filter { code: line.code, jt: line.jt, jf: line.jf, k: line.k }).collect();
    let count = u16::try_from(lines.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: count, filter: lines.as_mut_ptr() };
    // SAFETY: the kernel reads the program and its `len` lines, which outlive the call.
    #[allow(unsafe_code)]
    checked(unsafe {
        libc::setsockopt(
            file.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    })
}

fn bind(file: &OwnedFd, index: u32) -> io::Result<()> {
    let address = sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the kernel reads as many bytes of the address as it has.
    #[allow(unsafe_code)]
    checked(unsafe {
        libc::bind(file.as_raw_fd(), (&raw const address).cast(), size_of::<sockaddr_ll>() as libc::socklen_t)
    })
}

impl RingMemory {
    fn map(
        file: &OwnedFd,
        (bytes, frame_bytes): (usize, usize),
        frames: usize,
        frames_in_block: usize,
    ) -> io::Result<Self> {
        // SAFETY: a new mapping at a place that the kernel chooses.
        #[allow(unsafe_code)]
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes, frame_bytes, frames, frames_in_block })
    }

    /// The frame of that number, if the kernel has handed it over.
    fn frame(&self, number: usize) -> Option<RingFrame<'_>> {
        let offset = number / self.frames_in_block * BLOCK_BYTES + number % self.frames_in_block * self.frame_bytes;
        debug_assert!(offset + self.frame_bytes <= self.bytes);
        // SAFETY: the frame lies inside of the mapping, and its begin is aligned to 16 bytes. Its status is a word that the
        // kernel and this process read and write as a whole.
        #[allow(unsafe_code)]
        let status = unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) };
        // What the kernel wrote before the status is there (acquire).
        let said = status.load(Ordering::Acquire);
        if said & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the status says that the kernel does not touch the frame until it is given back, which takes the borrow.
        #[allow(unsafe_code)]
        let bytes = unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset).add(4), self.frame_bytes - 4) };
        Some(RingFrame { status, said, bytes })
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this size; nothing borrows from it any more.
        #[allow(unsafe_code)]
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.bytes);
        }
    }
}

/// A frame that is ours.
struct RingFrame<'r> {
    status: &'r AtomicU32,
    said: u32,
    /// Behind the status.
    bytes: &'r [u8],
}

impl RingFrame<'_> {
    fn u32(&self, at: usize) -> u32 {
        let bytes = self.bytes.get(at - 4..at).and_then(|bytes| bytes.first_chunk::<4>());
        u32::from_ne_bytes(bytes.copied().unwrap_or_default())
    }

    fn u16(&self, at: usize) -> u16 {
        let bytes = self.bytes.get(at - 4..at - 2).and_then(|bytes| bytes.first_chunk::<2>());
        u16::from_ne_bytes(bytes.copied().unwrap_or_default())
    }

    fn packet(&self) -> SocketPacket<'_> {
        use std::mem::offset_of;
        let mac = usize::from(self.u16(offset_of!(tpacket2_hdr, tp_mac)));
        let network = usize::from(self.u16(offset_of!(tpacket2_hdr, tp_net))).saturating_sub(mac);
        let count = self.u32(offset_of!(tpacket2_hdr, tp_snaplen)) as usize;
        let data = self.bytes.get(mac.saturating_sub(4)..).unwrap_or_default();
        let address = size_of::<tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
        let u8 = |at: usize| self.bytes.get(address + at - 4).copied().unwrap_or_default();
        let sender = address + offset_of!(sockaddr_ll, sll_addr) - 4;
        let sender = sender..sender + usize::from(u8(offset_of!(sockaddr_ll, sll_halen))).min(8);
        let has = |bit: u32| self.said & bit != 0;
        let tag = has(libc::TP_STATUS_VLAN_VALID).then(|| {
            let protocol = self.u16(offset_of!(tpacket2_hdr, tp_vlan_tpid));
            let protocol = if has(libc::TP_STATUS_VLAN_TPID_VALID) { protocol } else { 0x8100 };
            (protocol, self.u16(offset_of!(tpacket2_hdr, tp_vlan_tci)))
        });
        SocketPacket {
            time: u64::from(self.u32(offset_of!(tpacket2_hdr, tp_sec))) * 1_000_000_000
                + u64::from(self.u32(offset_of!(tpacket2_hdr, tp_nsec))),
            interface: self.u32(address + offset_of!(sockaddr_ll, sll_ifindex)),
            hardware: self.u16(address + offset_of!(sockaddr_ll, sll_hatype)),
            protocol: u16::from_be(self.u16(address + offset_of!(sockaddr_ll, sll_protocol))),
            kind: u8(offset_of!(sockaddr_ll, sll_pkttype)),
            sender: self.bytes.get(sender).unwrap_or_default(),
            tag,
            length: self.u32(offset_of!(tpacket2_hdr, tp_len)),
            network,
            data: &data[..data.len().min(count)],
        }
    }

    fn give_back(self) {
        // Everything was read from the frame before the kernel may write it again (release).
        self.status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}
