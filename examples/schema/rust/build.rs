//! Makes the module of events from the schema.

fn main() {
    kymo_define::cargo::build("../kitchen.kymo");
}
