//! A bridge: frames come in on the left side, and most go out on the right one.
//!
//! ```console
//! $ cargo build --package example-server --bin bridge
//! $ kymo record --output bridge-trace -- target/debug/bridge
//! $ kymo export bridge-trace --format pcapng --output bridge.pcapng
//! ```

use kymo_tracer::marks::{Direction, Level, set_snap_length};
use kymo_tracer::{log, packet};

/// A frame of Ethernet with a protocol for experiments (0x88b5), and a number behind the head.
fn frame(number: u8) -> Vec<u8> {
    let mut frame = vec![number; 60 + usize::from(number) * 10];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xB5]);
    frame
}

fn main() {
    set_snap_length(128);
    for number in 0..40 {
        let frame = frame(number);
        packet!("left", Direction::Inbound, &frame);
        if number % 4 == 3 {
            log!(Level::Warning, "frame {number} goes nowhere");
        } else {
            packet!("right", Direction::Outbound, &frame);
        }
    }
}
