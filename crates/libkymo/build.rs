//! The library says what it needs, and what it is called.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        for argument in ["-Wl,--no-as-needed", "-lc", "-Wl,-soname,libkymo.so.0"] {
            println!("cargo::rustc-cdylib-link-arg={argument}");
        }
    }
}
