//! Event records as text: back ends of the same read programs, straight from bytes.

mod pretty;
mod printer;
mod script;
mod stamp;

pub use pretty::{PrettyFields, PrettyOptions};
pub use printer::{Event, PacketText, Printer};
pub use stamp::{Moment, Stamp, StampOptions, ZoneOffset};
