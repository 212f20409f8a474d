//! `kymo export`

use std::io::{self, Write};
use std::sync::Arc;

use kymo_session::{CaptureOptions, ExportOptions, FileFormat, PacketFilter, Progress, Session, Zone};

use crate::CommandOutcome;
use crate::arguments::{ExportArguments, TableFormat};
use crate::message::plain_output;
use crate::progress::watched;
use crate::select::understood;
use crate::show;
use crate::stop::StopReason;

/// Writes tables and lists them.
pub(crate) fn run(session: &Session, arguments: &ExportArguments) -> Result<CommandOutcome, StopReason> {
    let (options, warnings) = asked(session, arguments)?;
    message_text!("{warnings}");
    let progress = Progress::default();
    let exported = watched(&progress, || session.export(&options, &progress)).map_err(io::Error::other)?;
    let mut out = plain_output();
    for table in &exported.tables {
        writeln!(out, "{:>15}  {}", show::grouped(table.rows), table.path.display())?;
        if table.replaced_texts > 0 && !arguments.keep_bytes {
            let count = show::grouped(table.replaced_texts);
            let file = table.path.display();
            message!("warning: {file}: {count} texts are not valid and have U+FFFD there; --keep-bytes keeps them");
        }
    }
    Ok(show::report(&exported.report, arguments.common.strict))
}

/// Writes the packets of the traces as a capture.
pub(crate) fn packets(session: Session, arguments: &ExportArguments) -> Result<CommandOutcome, StopReason> {
    let session = Arc::new(session);
    let (begin_ns, end_ns) = arguments.between.nanos(&session, Zone::Local)?;
    let packet_filter = arguments.packet_filter.as_deref().map(packet_filter).transpose()?;
    let understood = understood(&session, &arguments.event, arguments.filter.as_deref(), Zone::Local);
    let (selection, warnings) = understood.inspect_err(|_| {
        // Heads of recorded packets are no fields: those of captures are.
        if arguments.filter.as_deref().is_some_and(|filter| PacketFilter::parse(filter).is_ok()) {
            message!("note: `--packet-filter` asks about the heads of packets");
        }
    })?;
    message_text!("{warnings}");
    let options = CaptureOptions { output: arguments.output.clone(), selection, packet_filter, begin_ns, end_ns };
    let written = session.write_capture(&options, &Progress::default()).map_err(io::Error::other)?;
    let file = options.output.display();
    let mut out = plain_output();
    for (interface, packets) in &written.interfaces {
        writeln!(out, "{:>15}  {interface}", show::grouped(*packets))?;
    }
    writeln!(out, "{:>15}  {file}", show::grouped(written.packets))?;
    let told = [
        (written.cut, "of which the traces have only the beginning"),
        (written.dropped, "dropped before the recorder had them, as the capture says too"),
        (written.timeless, "without a time: in the capture, they have that of the packet before"),
        (
            written.without_bytes,
            "left out: their bytes are not in the traces; `--packet-data` keeps these when a capture is cut or converted",
        ),
    ];
    for (count, what) in told.into_iter().filter(|(count, _)| *count > 0) {
        message!("warning: {file}: {} {what}", show::counted(count, "packet"));
    }
    if written.filtered > 0 {
        message!("note: `--packet-filter` has kept out {}", show::counted(written.filtered, "packet"));
    }
    let is_all = arguments.filter.is_none() && arguments.event.is_empty() && begin_ns.is_none() && end_ns.is_none();
    if written.packets == 0 && written.filtered == 0 && !is_all {
        message!("warning: none of these events is a packet: `kymo:packet`, or one of a capture (docs/packets.md)");
    } else if written.packets == 0 && written.filtered == 0 {
        message!("warning: the traces have no packets: events `kymo:packet`, or captures (docs/packets.md)");
    }
    let outcome = show::report(&written.report, arguments.common.strict);
    let has_none = written.packets == 0 && written.filtered == 0 && is_all;
    Ok(if written.without_bytes > 0 || has_none { CommandOutcome::Incomplete } else { outcome })
}

/// A filter about the heads of packets.
fn packet_filter(text: &str) -> Result<PacketFilter, StopReason> {
    let wrong = |why: String| StopReason::Usage(why.trim_start_matches("error: ").trim_end().to_owned());
    let filter = PacketFilter::parse(text).map_err(wrong)?;
    filter.fault(text).map_or(Ok(filter), |why| Err(wrong(why)))
}

/// The options that the arguments ask for, and notes on them.
pub(crate) fn asked(session: &Session, arguments: &ExportArguments) -> Result<(ExportOptions, String), StopReason> {
    if arguments.packet_filter.is_some() {
        return Err(StopReason::Usage("`--packet-filter` is for `--format pcapng`".to_owned()));
    }
    let (begin_ns, end_ns) = arguments.between.nanos(session, Zone::Local)?;
    let (selection, warnings) = understood(session, &arguments.event, arguments.filter.as_deref(), Zone::Local)?;
    let format = match arguments.format {
        TableFormat::Arrow => FileFormat::Arrow,
        TableFormat::Parquet => FileFormat::Parquet,
        TableFormat::Pcapng => return Err(StopReason::Usage("packets are a capture, and no tables".to_owned())),
    };
    let (output, keep_bytes) = (arguments.output.clone(), arguments.keep_bytes);
    Ok((ExportOptions { output, format, selection, begin_ns, end_ns, keep_bytes }, warnings))
}
