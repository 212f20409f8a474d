//! Event records as text: back ends of the same read programs, straight from bytes.

mod csv;
mod json;
mod pretty;
mod printer;
mod script;
mod stamp;

pub use pretty::{PrettyFields, PrettyOptions};
pub use printer::{Event, LineFormat, PacketText, Printer};
pub use stamp::{Moment, Stamp, StampOptions, ZoneOffset};
