//! The metadata of a recording: the recorder's own, with what it lacks.

use kymo_format::model::{Member, TextEncoding};
use kymo_format::{ClockOrigin, EnvironmentValue, FieldClass, FieldKind, TraceClass};
use kymo_units::Uuid;

use super::date::RecordingDate;
use crate::capture;
use crate::tsdl;

/// The metadata of a recording that began then, in seconds, and with this event, in cycles; with a class of captures or
/// without.
pub(super) fn metadata(
    mut class: TraceClass,
    root: Option<&str>,
    (date, earliest): (Option<RecordingDate>, u64),
    captures: Option<(u32, bool)>,
) -> Vec<u8> {
    let frequency = class.clock_classes[0].frequency_hz;
    class.uuid = Some(uuid(date, earliest, frequency));
    let text = |value: &str| EnvironmentValue::Text(value.to_owned());
    class.environment.push(("tracer_name".to_owned(), text("genode")));
    if let Some(root) = root {
        class.environment.push(("recording".to_owned(), text(root)));
    }
    if let Some(date) = date {
        let clock = &mut class.clock_classes[0];
        let ahead = i128::from(date.seconds) * i128::from(frequency) - i128::from(earliest);
        clock.offset_s = ahead.div_euclid(i128::from(frequency)) as i64;
        clock.offset_cycles = ahead.rem_euclid(i128::from(frequency));
        clock.origin = ClockOrigin::UnixEpoch;
    } else if is_since_1970(earliest, frequency) {
        class.clock_classes[0].origin = ClockOrigin::UnixEpoch;
    }
    if let Some(FieldClass { kind: FieldKind::Structure(context), .. }) = &mut class.stream_classes[0].packet_context {
        let kind = FieldKind::NullTerminatedText(TextEncoding::Utf8);
        context.members.push(Member { name: "thread".to_owned(), class: FieldClass { kind, attributes: None } });
    }
    let mut text = kymo_format::write::to_tsdl(&class).expect("metadata of TSDL can be written as TSDL");
    if let Some((id, has_data)) = captures {
        text.push_str(tsdl::TYPES);
        text.push_str(&capture::stream_text(id, has_data));
    }
    text.into_bytes()
}

/// Whether times are since 1970: kymo's recorder writes such ones, for which a machine would have to run for decades.
/// Genode's are since the machine was started.
pub(super) fn is_since_1970(earliest: u64, frequency: u64) -> bool {
    const YEAR_2000_S: u64 = 946_684_800;
    earliest / frequency.max(1) > YEAR_2000_S
}

/// The same for the same recording, whichever part of its tree is read.
fn uuid(date: Option<RecordingDate>, earliest: u64, frequency: u64) -> Uuid {
    let seconds = date.map_or(0, |date| date.seconds) as u64;
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&seconds.to_be_bytes()[2..]);
    // RFC 9562: a version of one's own, and the variant.
    bytes[6..8].copy_from_slice(&((frequency / 1000 % 0x1000) as u16 | 0x8000).to_be_bytes());
    bytes[8..].copy_from_slice(&((earliest & (u64::MAX >> 2)) | 1 << 63).to_be_bytes());
    Uuid(bytes)
}
