//! Reads the head of one packet again, for facts that the packet index does not keep.

use kymo_decode::PacketHead;
use kymo_ir::PacketWindow;
use kymo_scan::Trace;
use kymo_scan::index::{HeadReader, PacketRow};

/// Hands over the head of a packet; `None`: it cannot be read.
pub(crate) fn with_packet<T>(
    trace: &Trace,
    row: &PacketRow,
    with: impl FnOnce(&PacketHead, PacketWindow<'_>) -> T,
) -> Option<T> {
    let file = trace.folder.stream(row.file as usize);
    let mut heads = HeadReader::default();
    let head = heads.read(&trace.decoder, &file, row.offset_bytes, 0).ok()?;
    let bytes = kymo_source::Buffer::copy(heads.bytes());
    Some(with(&head, PacketWindow::new(bytes.with_slack(), 0, head.body_start)))
}
