//! Reals are written as the C library writes them: a table that a C program printed is the judge.

use kymo_ir::{RealStyle, emit};

fn written(bits: u64, style: RealStyle) -> String {
    let mut out = Vec::new();
    emit::real(&mut out, bits, 64, style);
    String::from_utf8(out).expect("numbers are ASCII")
}

#[test]
fn general_and_fixed_reals_equal_the_c_library() {
    let lines = include_str!("../printf.txt").lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let [bits, general, fixed] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let bits = u64::from_str_radix(bits, 16).unwrap();
        assert_eq!(written(bits, RealStyle::General), general, "%g of {bits:016x}");
        assert_eq!(written(bits, RealStyle::Fixed), fixed, "%f of {bits:016x}");
        count += 1;
    }
    assert!(count > 400, "{count} values");
}
