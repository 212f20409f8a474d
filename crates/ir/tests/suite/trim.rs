//! Programs without what their stores do not need, as text.

use kymo_ir::{text, verify};

/// What is left of a program.
fn check(source: &str, expected: &str) {
    let trimmed = text::read(source).expect("the program is right").trimmed();
    verify::verify(&trimmed).expect("what is left is sound");
    let expected = text::read(expected).expect("the expectation is right");
    assert_eq!(trimmed.to_string(), expected.to_string());
}

/// Programs that read the first field are the same, whatever follows.
#[test]
fn what_stands_behind_the_last_store_is_left_out() {
    let expected = "entry 6 0  table  column 0 u64  need 64  r0 = read 0 +64 le  store 0 r0";
    check("entry 6 0  table  column 0 u64  need 64  r0 = read 0 +64 le  store 0 r0  advance 64", expected);
    check(
        "entry 6 0  table  column 0 u64
         need 96  r3 = read 0 +64 le  store 0 r3  r1 = read 64 +32 le  advance 96  r4 r5 = text 1",
        expected,
    );
}

/// Lengths of what is passed over matter only where something behind is wanted.
#[test]
fn what_nobody_reads_is_left_out() {
    check(
        "entry 6 0  table  column 0 u32
         need 64  r0 = read 0 +32 le  r7 = r0  r1 = read 32 +32 le  store 0 r1  advance 64  skip r0 * 8",
        "entry 6 0  table  column 0 u32  need 64  r0 = read 32 +32 le  store 0 r0",
    );
    check(
        "entry 6 0  table  column 0 u8
         need 32  r5 = read 0 +32 le  advance 32  skip r5 * 8  need 16  r6 = read 0 +8 le  store 0 r6  advance 16",
        "entry 6 0  table  column 0 u8
         need 32  r0 = read 0 +32 le  advance 32  skip r0 * 8  need 8  r1 = read 0 +8 le  store 0 r1",
    );
}

/// Registers are used again: what was read into them before does not matter.
#[test]
fn a_register_is_read_by_what_wrote_it_last() {
    check(
        "entry 3 0  table  column 0 u8 nullable
         r0 = bytes 2  need 16  r0 = read 0 +8 le  r1 = read 8 +8 le  advance 16
         switch r1 { 0 { r0 = 7  r1 = 3  store 0 r0 } else { r0 = bytes r1  need 8  r0 = read 0 +8 le  store 0 r0 } }",
        "entry 3 0  table  column 0 u8 nullable
         need 32  r0 = read 24 +8 le  advance 32
         switch r0 { 0 { r1 = 7  store 0 r1 } else { skip r0 * 8  need 8  r1 = read 0 +8 le  store 0 r1 } }",
    );
    let loops = "entry 3 0  table  column 0 u8
         r0 = 5  r1 = 1  repeat 3 { r2 = r1  r1 = r0  need 8  r0 = read 0 +8 le  advance 8 }  store 0 r2";
    check(loops, loops);
}

/// A kernel's events have fields of both byte orders, and texts of fixed sizes between them.
#[test]
fn runs_become_one_over_what_is_passed_by() {
    check(
        "entry 3 0  table  column 0 u32  column 0 u32
         r1 = bytes 16  order le  need 32  r0 = read 0 +32 le  store 0 r0  advance 32  skip 3 * 8
         order be  need 40  r2 = read 8 +32 be  store 1 r2  advance 40",
        "entry 3 0  table  column 0 u32  column 0 u32
         need 224  r0 = read 128 +32 le  store 0 r0  r1 = read 192 +32 be  store 1 r1",
    );
}

/// Where something moves by bits, orders may meet inside of a byte.
#[test]
fn orders_stay_where_they_may_matter() {
    let source = "entry 3 0  table  column 0 u8
         order le  need 4  r0 = read 0 +4 le  advance 4  order be  need 4  r1 = read 0 +4 be  store 0 r1";
    let expected = "entry 3 0  table  column 0 u8
         order le  need 4  advance 4  order be  need 4  r0 = read 0 +4 be  store 0 r0";
    check(source, expected);
}

/// Text begins where the position is.
#[test]
fn runs_end_where_the_position_is_needed() {
    check(
        "entry 3 0  table  column 0 span  column 0 u8
         need 8  advance 8  skip 2 * 8  r1 r2 = text 1  span 0 r1 r2  need 16  r3 = read 0 +8 le  advance 8
         switch r3 { 1 { store 1 r3 } else { need 8  r3 = read 0 +8 le  store 1 r3 } }  advance 8",
        "entry 3 0  table  column 0 span  column 0 u8
         need 24  advance 24  r0 r1 = text 1  span 0 r0 r1  need 8  r2 = read 0 +8 le  advance 8
         switch r2 { 1 { store 1 r2 } else { need 8  r2 = read 0 +8 le  store 1 r2 } }",
    );
}

/// A block is kept whole, with what it moves over.
#[test]
fn stores_inside_of_blocks_count() {
    check(
        "entry 6 0  table  column 0 u8 nullable
         need 8  r0 = read 0 +8 le  advance 8
         repeat r0 as r1 { need 16  r2 = read 0 +8 le  r3 = read 8 +8 le  advance 16  switch r1 { 3 { store 0 r2 } else { } } }
         need 8  advance 8",
        "entry 6 0  table  column 0 u8 nullable
         need 8  r0 = read 0 +8 le  advance 8
         repeat r0 as r1 { need 16  r2 = read 0 +8 le  switch r1 { 3 { store 0 r2 } else { } }  advance 16 }",
    );
}

#[test]
fn a_program_without_stores_does_nothing() {
    check("entry 6 0  table  need 8  r0 = read 0 +8 le  advance 8", "entry 6 0  table");
}
