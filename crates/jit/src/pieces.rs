//! Functions that machine code calls to write pieces of text: thin covers over `kymo_ir::emit`.
//!
//! Each takes where to write and returns the address behind the written bytes; 0 means that it does
//! not fit.

use std::cell::Cell;

use kymo_ir::{Emit, ReadProgram, emit};

/// Bytes that a byte of text becomes at most when it is escaped (`\xNN`).
const ESCAPED_BYTES: usize = 4;

thread_local! {
    /// Memory for a piece before it is known to fit.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The digits of an unsigned number. The caller made sure of 20 bytes.
pub(crate) extern "C" fn decimal(out: usize, value: u64) -> usize {
    if value < 10 {
        return write(out, &[b'0' + value as u8]);
    }
    let (digits, at) = emit::decimal_digits(value);
    write(out, &digits[at..])
}

/// The digits of a signed number. The caller made sure of 21 bytes.
pub(crate) extern "C" fn decimal_signed(out: usize, value: i64) -> usize {
    let out = if value < 0 { write(out, b"-") } else { out };
    decimal(out, value.unsigned_abs())
}

/// Text in double quotes as Babeltrace writes it.
pub(crate) extern "C" fn pretty_text(out: usize, limit: usize, text: usize, length: usize) -> usize {
    let needed = length.saturating_mul(ESCAPED_BYTES).saturating_add(2);
    if out > limit || limit - out < needed {
        return 0;
    }
    let bytes = bytes(text, length);
    if bytes.iter().any(|&byte| emit::is_escaped(byte)) {
        let mut written = Vec::with_capacity(needed);
        emit::pretty_text(&mut written, bytes);
        return write(out, &written);
    }
    let out = write(out, b"\"");
    let out = write(out, bytes);
    write(out, b"\"")
}

/// Anything: `one` and `other` are the values of the operation's registers, addresses for bytes.
pub(crate) extern "C" fn any(
    out: usize,
    limit: usize,
    program: *const ReadProgram,
    emit: *const Emit,
    one: u64,
    other: u64,
) -> usize {
    // SAFETY: both point into the program that the compiled code's owner keeps.
    #[allow(unsafe_code)]
    let (program, emit) = unsafe { (&*program, &*emit) };
    let mut written = SCRATCH.take();
    written.clear();
    match *emit {
        Emit::Literal(literal) => written.extend_from_slice(&program.literals[usize::from(literal)]),
        Emit::Integer { signed, style, .. } => emit::integer(&mut written, one, signed, style),
        Emit::Real { width, style, .. } => emit::real(&mut written, one, width, style),
        Emit::Text { encoding, style, .. } => {
            emit::text(&mut written, bytes(one as usize, other as usize), encoding, style);
        }
        Emit::Bytes { style, .. } => emit::bytes(&mut written, bytes(one as usize, other as usize), style),
        Emit::Label { labels, style, .. } => {
            emit::label(&mut written, one, &program.labels[usize::from(labels)], style);
        }
        Emit::Flags { labels, style, .. } => {
            emit::flags(&mut written, one, &program.labels[usize::from(labels)], style);
        }
    }
    let end = if out > limit || limit - out < written.len() { 0 } else { write(out, &written) };
    SCRATCH.set(written);
    end
}

/// Bytes before the first zero code unit.
pub(crate) extern "C" fn cut(text: usize, length: usize, unit: usize) -> usize {
    let bytes = bytes(text, length);
    if unit == 1 {
        return bytes.iter().position(|&byte| byte == 0).unwrap_or(length);
    }
    let zero = bytes.chunks_exact(unit).position(|unit| unit.iter().all(|&byte| byte == 0));
    zero.map_or(length, |index| index * unit)
}

/// Bytes of the window.
fn bytes<'a>(address: usize, length: usize) -> &'a [u8] {
    // SAFETY: machine code hands in only bytes that a `Text` or `Bytes` operation found inside
    // the window.
    #[allow(unsafe_code)]
    unsafe {
        std::slice::from_raw_parts(address as *const u8, length)
    }
}

fn write(out: usize, bytes: &[u8]) -> usize {
    // SAFETY: the caller, or the machine code that called it, made sure of room for the bytes at `out`, which lies in
    // a vector's spare capacity, apart from any bytes of a window.
    #[allow(unsafe_code)]
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), out as *mut u8, bytes.len());
    }
    out + bytes.len()
}
