//! What the verifier passes can be run on any bytes: seeded random programs, most of them refused, never panic.

use kymo_ir::{
    BitPhase, BytesStyle, Emit, Encoding, IntegerStyle, NumberSource, Op, OutputSlot, PacketWindow, ReadProgram,
    ReadState, Reg, TextStyle, eval, verify,
};
use kymo_units::ByteOrder;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn register(&mut self) -> Reg {
        Reg(self.below(4) as u16)
    }

    fn source(&mut self) -> NumberSource {
        if self.below(2) == 0 { NumberSource::Constant(self.below(5)) } else { NumberSource::Register(self.register()) }
    }

    fn order(&mut self) -> ByteOrder {
        if self.below(2) == 0 { ByteOrder::Little } else { ByteOrder::Big }
    }

    fn block(&mut self, depth: u64) -> Vec<Op> {
        (0..1 + self.below(5)).flat_map(|_| self.ops(depth)).collect()
    }

    /// One operation, or a few that belong together.
    fn ops(&mut self, depth: u64) -> Vec<Op> {
        let (to, start, length) = (self.register(), self.register(), self.register());
        let (order, signed, reversed) = (self.order(), self.below(2) == 0, self.below(2) == 0);
        let unit = 1 << self.below(3);
        match self.below(if depth == 0 { 10 } else { 12 }) {
            0 => vec![Op::Align { log2: self.below(6) as u8 }],
            1 | 2 => {
                let (offset, width) = (self.below(20) as u32, 1 + self.below(64) as u8);
                let bits = u64::from(offset) + u64::from(width);
                let read = Op::Read { to, offset, width, order, signed, reversed };
                vec![Op::Need { bits }, read, Op::Advance { bits }]
            }
            3 => vec![Op::Skip { count: self.source(), bits: 1 + self.below(40) }],
            4 => vec![Op::Align { log2: 3 }, Op::Leb { to, signed, bits: None }],
            5 => {
                let text =
                    Op::Emit(Emit::Text { start, length, encoding: Encoding::Utf16Le, style: TextStyle::Pretty });
                vec![Op::Align { log2: 3 }, Op::Text { start, length, unit }, Op::Cut { start, length, unit }, text]
            }
            6 => {
                let emit = Op::Emit(Emit::Bytes { start, length, style: BytesStyle::HexadecimalSpaced });
                vec![Op::Align { log2: 3 }, Op::Bytes { start, length: NumberSource::Register(length) }, emit]
            }
            7 => vec![Op::Clock { from: to, bits: self.source() }, Op::Order { order }],
            8 => vec![Op::Out { slot: OutputSlot(1), from: to }, Op::Load { to: start, slot: OutputSlot(1) }],
            9 => vec![Op::Emit(Emit::Integer { from: to, signed, style: IntegerStyle::Grouped })],
            10 => vec![Op::Repeat { count: self.source(), index: Some(to), body: self.block(depth - 1) }],
            _ => {
                let arms = vec![(vec![(0, self.below(9))], self.block(depth - 1))];
                let default = (self.below(2) == 0).then(|| self.block(depth - 1));
                vec![Op::Switch { on: to, signed, arms, default }]
            }
        }
    }
}

#[test]
fn verified_programs_never_panic() {
    let mut random = Random(88_172_645_463_325_252);
    let mut passed = 0;
    for _ in 0..20_000 {
        let entry = BitPhase { modulus_log2: 3, phase: 0 };
        let program = ReadProgram { entry, registers: 4, body: random.block(2), ..ReadProgram::default() };
        if verify::verify(&program).is_err() {
            continue;
        }
        passed += 1;
        let bytes: Vec<u8> =
            (0..64).map(|_| [0, 0, 1, 2, 3, 0x80, 0xff, random.below(256) as u8][random.below(8) as usize]).collect();
        let (origin, end) = (random.below(3), 48 * 8 - random.below(9));
        let window = PacketWindow::new(&bytes, origin, end);
        let mut state = ReadState { clock: 0, slots: vec![0; 2] };
        let mut out = Vec::new();
        if let Ok(behind) = eval::emit(&program, window, origin * 8, &mut state, &mut out) {
            assert!((origin * 8..=end).contains(&behind), "{behind} in {origin}..{end}: {program:?}");
        }
    }
    assert!(passed > 5_000, "{passed} programs passed");
}
