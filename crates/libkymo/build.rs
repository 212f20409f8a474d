//! The library says what it needs, and what it is called.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // It stays where it was loaded with a plugin that goes: threads that recorded end later, and call it then.
        for argument in ["-Wl,--no-as-needed", "-lc", "-Wl,-soname,libkymo.so.0", "-Wl,-z,nodelete"] {
            println!("cargo::rustc-cdylib-link-arg={argument}");
        }
    }
}
