//! Images as bytes: written by recorders, read and checked by programs.

use super::limits::{FRAMES_MAX, KEY_BYTES_MAX, has_helper};

/// `kyOB`.
pub(super) const IMAGE_MAGIC: [u8; 4] = *b"kyOB";
/// Bytes of the head.
pub const IMAGE_HEAD_BYTES: usize = 64;
const MAP_BYTES: usize = 32;
const MOVE_BYTES: usize = 24;
const INSTRUCTION_BYTES: usize = 16;
/// Limits of what programs accept.
const INSTRUCTIONS_MAX: u32 = 1 << 13;
const MAPS_MAX: u32 = 64;
const MOVES_MAX: u32 = 255;
const CONTEXT_BYTES_MAX: u32 = 1024;
const ARGUMENTS_BYTES_MAX: u32 = 1 << 16;

/// Operations of instructions. Those that end with `_CONSTANT` take the constant, the others the register `b`.
pub(super) mod op {
    pub(in super::super) const NOTHING: u8 = 0x00;
    pub(in super::super) const ALU_64: u8 = 0x01;
    pub(in super::super) const ALU_64_CONSTANT: u8 = 0x02;
    pub(in super::super) const ALU_32: u8 = 0x03;
    pub(in super::super) const ALU_32_CONSTANT: u8 = 0x04;
    pub(in super::super) const EXTEND: u8 = 0x05;
    pub(in super::super) const SWAP: u8 = 0x06;
    pub(in super::super) const LOAD: u8 = 0x10;
    pub(in super::super) const STORE: u8 = 0x11;
    pub(in super::super) const STORE_CONSTANT: u8 = 0x12;
    pub(in super::super) const ATOMIC: u8 = 0x13;
    pub(in super::super) const JUMP: u8 = 0x20;
    pub(in super::super) const JUMP_64: u8 = 0x21;
    pub(in super::super) const JUMP_64_CONSTANT: u8 = 0x22;
    pub(in super::super) const JUMP_32: u8 = 0x23;
    pub(in super::super) const JUMP_32_CONSTANT: u8 = 0x24;
    pub(in super::super) const CALL: u8 = 0x28;
    pub(in super::super) const HELPER: u8 = 0x29;
    pub(in super::super) const CONSTANT: u8 = 0x2a;
    pub(in super::super) const ABSENT: u8 = 0x2b;
    pub(in super::super) const EXIT: u8 = 0x2c;
}

/// The flag in `c` beside a number of bytes or bits: signed, wide, turned, or fetching.
pub(super) const FLAG: u8 = 0x80;

/// An instruction of an image: the operation is one of `kymo_ir::machine`'s, by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageInstruction {
    /// The operation.
    pub op: u8,
    /// The register that is written, compared, or the base of a store.
    pub a: u8,
    /// The other register.
    pub b: u8,
    /// The kind of operation, or bytes, and a flag.
    pub c: u8,
    /// The instruction to go on at, the offset of an access, or the number of a helper function.
    pub target: i32,
    /// A constant.
    pub constant: u64,
}

/// The second number of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageOperand {
    /// A register's.
    Register(u8),
    /// A constant.
    Constant(i32),
}

impl ImageInstruction {
    const fn new(op: u8, [a, b, c]: [u8; 3], target: i32, constant: u64) -> Self {
        Self { op, a, b, c, target, constant }
    }

    fn with(ops: [u8; 2], (a, right, c): (u8, ImageOperand, u8), target: i32) -> Self {
        match right {
            ImageOperand::Register(b) => Self::new(ops[0], [a, b, c], target, 0),
            ImageOperand::Constant(constant) => Self::new(ops[1], [a, 0, c], target, i64::from(constant) as u64),
        }
    }

    /// No effect: the second half of a constant.
    #[must_use]
    pub const fn nothing() -> Self {
        Self::new(op::NOTHING, [0; 3], 0, 0)
    }

    /// `to = to OPERATION right`; the operation by its number in `numbers::alu`.
    #[must_use]
    pub fn alu(operation: u8, is_wide: bool, to: u8, right: ImageOperand) -> Self {
        let ops = if is_wide { [op::ALU_64, op::ALU_64_CONSTANT] } else { [op::ALU_32, op::ALU_32_CONSTANT] };
        Self::with(ops, (to, right, operation), 0)
    }

    /// `to = from`, of which the low bits are a signed number.
    #[must_use]
    pub fn extend(to: u8, from: u8, bits: u8, is_wide: bool) -> Self {
        Self::new(op::EXTEND, [to, from, bits | flag(is_wide)], 0, 0)
    }

    /// The low bits of `to`, their bytes turned around or not; zeros above.
    #[must_use]
    pub fn swap(to: u8, bits: u8, turns: bool) -> Self {
        Self::new(op::SWAP, [to, 0, bits | flag(turns)], 0, 0)
    }

    /// `to = *(base + offset)`
    #[must_use]
    pub fn load(to: u8, (base, offset): (u8, i16), bytes: u8, is_signed: bool) -> Self {
        Self::new(op::LOAD, [to, base, bytes | flag(is_signed)], offset.into(), 0)
    }

    /// `*(base + offset) = right`
    #[must_use]
    pub fn store((base, offset): (u8, i16), bytes: u8, right: ImageOperand) -> Self {
        Self::with([op::STORE, op::STORE_CONSTANT], (base, right, bytes), offset.into())
    }

    /// Changes a number in memory, as [`ObjectChange`](super::ObjectChange) number `change` says.
    #[must_use]
    pub fn atomic((base, offset): (u8, i16), bytes: u8, from: u8, change: u8, fetches: bool) -> Self {
        Self::new(op::ATOMIC, [base, from, bytes | flag(fetches)], offset.into(), change.into())
    }

    /// Goes on there.
    #[must_use]
    pub fn jump(target: u32) -> Self {
        Self::new(op::JUMP, [0; 3], target.cast_signed(), 0)
    }

    /// Goes on there if the relation holds; it is that number in `numbers::holds`.
    #[must_use]
    pub fn jump_if(relation: u8, is_wide: bool, (left, right): (u8, ImageOperand), target: u32) -> Self {
        let ops = if is_wide { [op::JUMP_64, op::JUMP_64_CONSTANT] } else { [op::JUMP_32, op::JUMP_32_CONSTANT] };
        Self::with(ops, (left, right, relation), target.cast_signed())
    }

    /// Calls a function of the program.
    #[must_use]
    pub fn call(target: u32) -> Self {
        Self::new(op::CALL, [0; 3], target.cast_signed(), 0)
    }

    /// Calls a helper function.
    #[must_use]
    pub fn helper(number: u32) -> Self {
        Self::new(op::HELPER, [0; 3], number.cast_signed(), 0)
    }

    /// `to` is a constant.
    #[must_use]
    pub fn constant(to: u8, constant: u64) -> Self {
        Self::new(op::CONSTANT, [to, 0, 0], 0, constant)
    }

    /// Stops: the program needs a field that is not there.
    #[must_use]
    pub const fn absent() -> Self {
        Self::new(op::ABSENT, [0; 3], 0, 0)
    }

    /// Ends the function.
    #[must_use]
    pub const fn exit() -> Self {
        Self::new(op::EXIT, [0; 3], 0, 0)
    }

    fn bytes(self) -> [u8; INSTRUCTION_BYTES] {
        let mut bytes = [0; INSTRUCTION_BYTES];
        bytes[..4].copy_from_slice(&[self.op, self.a, self.b, self.c]);
        bytes[4..8].copy_from_slice(&self.target.to_le_bytes());
        bytes[8..].copy_from_slice(&self.constant.to_le_bytes());
        bytes
    }

    #[inline(always)]
    pub(super) fn of(bytes: &[u8; INSTRUCTION_BYTES]) -> Self {
        let [op, a, b, c, t0, t1, t2, t3, constant @ ..] = *bytes;
        Self { op, a, b, c, target: i32::from_le_bytes([t0, t1, t2, t3]), constant: u64::from_le_bytes(constant) }
    }

    /// Whether registers, targets, sizes and helper functions of it exist.
    fn is_sound(self, count: u32) -> bool {
        let is_size = |bytes: u8| matches!(bytes & !FLAG, 1 | 2 | 4 | 8);
        let is_target = self.target >= 0 && self.target.cast_unsigned() < count;
        let (is_written, is_read) = (self.a < 10, self.b <= 10);
        match self.op {
            op::NOTHING | op::ABSENT | op::EXIT => true,
            op::ALU_64 | op::ALU_64_CONSTANT | op::ALU_32 | op::ALU_32_CONSTANT => is_written && is_read && self.c < 15,
            op::EXTEND => is_written && is_read && matches!(self.c & !FLAG, 8 | 16 | 32),
            op::SWAP => is_written && matches!(self.c & !FLAG, 16 | 32 | 64),
            op::LOAD => is_written && is_read && is_size(self.c),
            op::STORE | op::STORE_CONSTANT => self.a <= 10 && is_read && is_size(self.c) && self.c & FLAG == 0,
            op::ATOMIC => self.a <= 10 && self.b < 10 && matches!(self.c & !FLAG, 1 | 2 | 4 | 8) && self.constant < 6,
            op::JUMP | op::CALL => is_target,
            op::JUMP_64 | op::JUMP_64_CONSTANT | op::JUMP_32 | op::JUMP_32_CONSTANT => {
                self.a <= 10 && is_read && self.c < 11 && is_target
            }
            op::HELPER => has_helper(self.target.cast_unsigned()),
            op::CONSTANT => is_written,
            _ => false,
        }
    }
}

fn flag(is_set: bool) -> u8 {
    if is_set { FLAG } else { 0 }
}

/// The kind of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageMapKind {
    /// The key is the number of the value.
    Array = 0,
    /// Keys are looked for.
    Hash = 1,
    /// The same; if there is no room, an entry that was not used for long goes.
    LruHash = 2,
}

/// A map of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageMap {
    /// Its kind.
    pub kind: ImageMapKind,
    /// Programs cannot write it.
    pub is_read_only: bool,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Entries at most.
    pub entries: u32,
    /// Values that each entry has, one for each of the runs at the same time; 1: all runs share it.
    pub lines: u32,
    /// Its place in the shared memory.
    pub place: u64,
}

impl ImageMap {
    /// Bytes from a value to the next.
    #[must_use]
    pub fn stride(&self) -> u32 {
        self.value_bytes.next_multiple_of(8)
    }

    /// Bytes of all values of one line.
    #[must_use]
    pub fn line_bytes(&self) -> u64 {
        u64::from(self.stride()) * u64::from(self.entries)
    }

    fn bytes(&self) -> [u8; MAP_BYTES] {
        let mut bytes = [0; MAP_BYTES];
        bytes[..2].copy_from_slice(&[self.kind as u8, self.is_read_only.into()]);
        for (at, number) in [(4, self.key_bytes), (8, self.value_bytes), (12, self.entries), (24, self.lines)] {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[16..24].copy_from_slice(&self.place.to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8; MAP_BYTES]) -> Option<Self> {
        let kind = match bytes[0] {
            0 => ImageMapKind::Array,
            1 => ImageMapKind::Hash,
            2 => ImageMapKind::LruHash,
            _ => return None,
        };
        let map = Self {
            kind,
            is_read_only: bytes[1] != 0,
            key_bytes: word(bytes, 4),
            value_bytes: word(bytes, 8),
            entries: word(bytes, 12),
            lines: word(bytes, 24),
            place: long(bytes, 16),
        };
        let is_sized = (1..1 << 31).contains(&map.value_bytes) && map.entries > 0 && (1..=64).contains(&map.lines);
        let is_small = is_sized && map.line_bytes().checked_mul(map.lines.into()).is_some_and(|bytes| bytes < 1 << 31);
        let has_key = match kind {
            ImageMapKind::Array => map.key_bytes == 4,
            _ => (1..=KEY_BYTES_MAX as u32).contains(&map.key_bytes),
        };
        (is_small && has_key && map.place.is_multiple_of(8)).then_some(map)
    }
}

/// What a move does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageMoveKind {
    /// A number, which may become longer.
    Number = 0,
    /// A real of 4 bytes becomes one of 8.
    Real = 1,
    /// A text, cut before its place is full.
    Text = 2,
    /// The address of a text.
    TextAddress = 3,
    /// Numbers behind an address.
    Numbers = 4,
    /// Reals of 4 bytes behind an address become ones of 8.
    Reals = 5,
}

/// A part of the context of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageMove {
    /// What it does.
    pub kind: ImageMoveKind,
    /// Bytes of a number among the arguments, and in the context.
    pub bytes: [u8; 2],
    /// Its first bit is a sign.
    pub is_signed: bool,
    /// Place among the arguments; of texts and numbers behind an address that of the address.
    pub from: u32,
    /// Place in the context.
    pub to: u32,
    /// Bytes of a text's place; numbers that have one.
    pub count: u32,
    /// Bytes from a number in the context to the next.
    pub stride: u32,
    /// Numbers that are there; 0: behind the address is how many.
    pub length: u32,
}

impl ImageMove {
    fn bytes(&self) -> [u8; MOVE_BYTES] {
        let mut bytes = [0; MOVE_BYTES];
        bytes[..4].copy_from_slice(&[self.kind as u8, self.bytes[0], self.bytes[1], self.is_signed.into()]);
        for (at, number) in (4..).step_by(4).zip([self.from, self.to, self.count, self.stride, self.length]) {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn of(bytes: &[u8; MOVE_BYTES]) -> Option<Self> {
        use ImageMoveKind as Kind;
        let kinds = [Kind::Number, Kind::Real, Kind::Text, Kind::TextAddress, Kind::Numbers, Kind::Reals];
        let [from, to, count, stride, length] = [4, 8, 12, 16, 20].map(|at| word(bytes, at));
        Some(Self {
            kind: *kinds.get(usize::from(bytes[0]))?,
            bytes: [bytes[1], bytes[2]],
            is_signed: bytes[3] != 0,
            from,
            to,
            count,
            stride,
            length,
        })
    }

    /// Whether it stays within arguments and a context of these sizes.
    fn is_sound(&self, size: u32, context: u32) -> bool {
        use ImageMoveKind as Kind;
        let is_number = self.bytes.iter().all(|bytes| matches!(bytes, 1 | 2 | 4 | 8)) && self.bytes[0] <= self.bytes[1];
        let is_real = self.bytes == [4, 8];
        let to = u64::from(self.bytes[1]);
        let (is_right, from, to) = match self.kind {
            Kind::Number => (is_number, u64::from(self.bytes[0]), to),
            Kind::Real => (is_real, 4, 8),
            Kind::Text => (self.count > 0, 16, self.count.into()),
            Kind::TextAddress => (true, 16, 8),
            Kind::Numbers | Kind::Reals => {
                let is_right = if self.kind == Kind::Reals { is_real } else { is_number };
                let all = u64::from(self.stride) * u64::from(self.count.saturating_sub(1)) + to;
                (is_right && self.count > 0, if self.length == 0 { 16 } else { 8 }, all)
            }
        };
        let end = |at: u32, bytes: u64| u64::from(at).saturating_add(bytes);
        is_right && end(self.from, from) <= size.into() && end(self.to, to) <= context.into()
    }
}

/// The sizes of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ImageHead {
    /// Bytes of the arguments.
    pub size: u32,
    /// Bytes of the context.
    pub context_bytes: u32,
    /// Functions that are called inside of each other, at most.
    pub frames: u32,
    /// Number of the program in its object.
    pub number: u32,
    /// Place of the object's state in the shared memory.
    pub state: u64,
    /// Bytes of the object in the shared memory, from its state on.
    pub bytes: u64,
    /// The result says whether the event is kept: it is not, if that is 0.
    pub is_filter: bool,
    /// Offset and bytes of its machine code in the arena of the traced program.
    pub code: Option<(u32, u32)>,
}

/// An image that was checked.
#[derive(Clone, Copy, Debug)]
pub struct ObjectImage<'i> {
    head: ImageHead,
    maps: &'i [[u8; MAP_BYTES]],
    moves: &'i [[u8; MOVE_BYTES]],
    code: &'i [[u8; INSTRUCTION_BYTES]],
}

impl<'i> ObjectImage<'i> {
    /// The bytes of an image.
    pub fn write(
        head: &ImageHead,
        maps: &[ImageMap],
        moves: &[ImageMove],
        code: &[ImageInstruction],
        mut put: impl FnMut(&[u8]),
    ) {
        let mut bytes = [0; IMAGE_HEAD_BYTES];
        bytes[..4].copy_from_slice(&IMAGE_MAGIC);
        let counts = [moves.len(), maps.len(), code.len()].map(|count| count as u32);
        let words = [head.size, head.context_bytes, head.frames, counts[0], counts[1], counts[2], head.number];
        for (at, number) in (4..).step_by(4).zip(words) {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[32..40].copy_from_slice(&head.state.to_le_bytes());
        bytes[40..48].copy_from_slice(&head.bytes.to_le_bytes());
        bytes[48] = head.is_filter.into();
        let (code_at, code_bytes) = head.code.unwrap_or_default();
        bytes[52..56].copy_from_slice(&code_at.to_le_bytes());
        bytes[56..60].copy_from_slice(&code_bytes.to_le_bytes());
        put(&bytes);
        maps.iter().for_each(|map| put(&map.bytes()));
        moves.iter().for_each(|step| put(&step.bytes()));
        code.iter().for_each(|instruction| put(&instruction.bytes()));
    }

    /// Reads an image; `None`: it is none, or could leave what it has.
    ///
    /// ```
    /// use kymo_bytecode::object::{ImageHead, ImageInstruction, ObjectImage};
    ///
    /// let (head, mut bytes) = (ImageHead { frames: 1, ..ImageHead::default() }, [0; 96]);
    /// let mut at = 0;
    /// ObjectImage::write(&head, &[], &[], &[ImageInstruction::constant(0, 7), ImageInstruction::exit()], |part| {
    ///     bytes[at..at + part.len()].copy_from_slice(part);
    ///     at += part.len();
    /// });
    /// assert_eq!(ObjectImage::read(&bytes[..at]).map(|image| image.head()), Some(head));
    /// assert!(ObjectImage::read(&bytes[..at - 16]).is_none(), "it would run off its end");
    /// ```
    #[must_use]
    pub fn read(bytes: &'i [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(IMAGE_HEAD_BYTES)?;
        let [size, context_bytes, frames, moves, maps, code, number] =
            [4, 8, 12, 16, 20, 24, 28].map(|at| word(head, at));
        let [state, object_bytes] = [long(head, 32), long(head, 40)];
        let limits = [
            (size, ARGUMENTS_BYTES_MAX),
            (context_bytes, CONTEXT_BYTES_MAX),
            (frames, FRAMES_MAX as u32),
            (moves, MOVES_MAX),
            (maps, MAPS_MAX),
            (code, INSTRUCTIONS_MAX),
            (number, 63),
        ];
        let is_small = limits.iter().all(|(found, limit)| found <= limit) && frames > 0;
        if head[..4] != IMAGE_MAGIC || !is_small || !state.is_multiple_of(8) {
            return None;
        }
        let (map_bytes, rest) = rest.split_at_checked(maps as usize * MAP_BYTES)?;
        let (move_bytes, code_bytes) = rest.split_at_checked(moves as usize * MOVE_BYTES)?;
        let is_filter = head[48] != 0;
        let native = Some((word(head, 52), word(head, 56))).filter(|(_, bytes)| *bytes > 0);
        let head =
            ImageHead { size, context_bytes, frames, number, state, bytes: object_bytes, is_filter, code: native };
        let image = Self {
            head,
            maps: map_bytes.as_chunks().0,
            moves: move_bytes.as_chunks().0,
            code: code_bytes.as_chunks().0,
        };
        let is_whole = code_bytes.len() == code as usize * INSTRUCTION_BYTES;
        let has_maps = image.maps.iter().all(|map| ImageMap::of(map).is_some());
        let is_moved =
            |step: &[u8; MOVE_BYTES]| ImageMove::of(step).is_some_and(|step| step.is_sound(size, context_bytes));
        let is_sound = image.code.iter().all(|bytes| ImageInstruction::of(bytes).is_sound(code));
        let last = image.code.last().map(|bytes| bytes[0]);
        let ends = matches!(last, Some(op::EXIT | op::JUMP | op::ABSENT));
        (is_whole && has_maps && image.moves.iter().all(is_moved) && is_sound && ends).then_some(image)
    }

    /// Its sizes.
    #[must_use]
    pub fn head(&self) -> ImageHead {
        self.head
    }

    /// A map.
    #[must_use]
    pub fn map(&self, number: usize) -> Option<ImageMap> {
        self.maps.get(number).and_then(ImageMap::of)
    }

    /// Programs cannot write a map.
    #[inline(always)]
    pub(super) fn is_read_only(&self, number: usize) -> bool {
        self.maps.get(number).is_none_or(|map| map[1] != 0)
    }

    /// Bytes of a map's keys and values.
    #[inline(always)]
    pub(super) fn sizes(&self, number: usize) -> Option<[usize; 2]> {
        let map = self.maps.get(number)?;
        Some([word(map, 4) as usize, word(map, 8) as usize])
    }

    /// Number of maps.
    #[must_use]
    pub fn map_count(&self) -> usize {
        self.maps.len()
    }

    /// Parts of the context.
    pub(super) fn moves(&self) -> impl Iterator<Item = ImageMove> + use<'i> {
        self.moves.iter().filter_map(ImageMove::of)
    }

    #[inline(always)]
    pub(super) fn instruction(&self, at: usize) -> Option<ImageInstruction> {
        self.code.get(at).map(ImageInstruction::of)
    }
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
