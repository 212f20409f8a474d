//! The kitchen in Rust: `cargo build` makes its events from `kitchen.kymo`.
//!
//! ```console
//! $ cargo build --package example-kitchen && kymo record -- target/debug/example-kitchen
//! $ kymo pairs kymo-traces/example-kitchen-*
//! ```

/// The events of the schema.
mod events {
    include!(concat!(env!("OUT_DIR"), "/kitchen_events.rs"));
}

use events::{Dish, orders, stove};

fn main() {
    for order in 0..100_u32 {
        let cook = (order % 2) as u16;
        let dish = if order % 10 == 0 { Dish::Cake } else { Dish::Soup };
        orders::placed(order, dish, "window");
        orders::taken(order, cook);
        stove::busy(cook);
        stove::begin(order, dish, kymo_tracer::Hex(0xCAFE), [1, 2, 3, 4]);
        stove::done(order, 250.5, order == 13, &[7, 8]);
        if order % 10 == 9 {
            let _clean = stove::clean(cook);
        }
        stove::idle(cook);
    }
}
