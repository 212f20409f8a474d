//! Event records as text: back ends of the same read programs, straight from bytes.

mod csv;
pub mod details;
mod json;
mod paint;
mod pretty;
mod printer;
mod script;
mod stamp;

pub use paint::{Paint, Tone};
pub use pretty::{PrettyFields, PrettyOptions, trace_name};
pub use printer::{LineFormat, PacketText, Printer, PrinterEvent};
pub(crate) use script::encoding;
pub use stamp::{Moment, Stamp, StampOptions, ZoneOffset};
