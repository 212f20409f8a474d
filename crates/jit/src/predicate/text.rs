//! Texts: compared with bytes in the instructions, searched and ordered by loops. Nothing is read
//! that does not belong to the text, so that it may end where memory does.
//!
//! ```text
//! "kworker/3" against input        length >= 9, 8 bytes at 0, 1 byte at 8      a prefix
//! a*bc*d                           length >= 4, "a" in front, "d" at the end, then a loop that looks for "bc" between
//! ```

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, StackSlotData, StackSlotKind, Type, Value, types};
use kymo_ir::predicate::{Assembler, Pattern, Relation, TextExpression};

use crate::translate::zero_bytes;

use super::refuse::ORDERED_MAX;
use super::{ByteSpan, Operands, PredicateWriter, Targets, integer, little, unsigned};

/// A text with its length.
#[derive(Clone, Copy)]
struct Sized {
    address: Value,
    length: Value,
}

/// The kind of a subject.
enum SubjectKind<'t> {
    Literal(&'t [u8]),
    Input(ByteSpan),
}

impl<O: Operands> PredicateWriter<'_, '_, O> {
    fn subject<'t>(&mut self, text: &'t TextExpression, unknown: Block) -> SubjectKind<'t> {
        match text {
            TextExpression::Literal(bytes) => SubjectKind::Literal(bytes),
            TextExpression::Input(input) => {
                self.require(*input, unknown);
                SubjectKind::Input(self.operands.text(self.builder, *input))
            }
        }
    }

    pub(super) fn matches(&mut self, text: &TextExpression, pattern: &Pattern, targets: Targets) {
        let span = match self.subject(text, targets.on_unknown) {
            SubjectKind::Literal(bytes) => return self.jump(targets.of(pattern.matches(bytes))),
            SubjectKind::Input(span) => span,
        };
        match pattern {
            Pattern::Exactly(bytes) => self.exactly(span, bytes, targets),
            Pattern::Prefix(bytes) => self.prefix(span, bytes, targets),
            Pattern::Glob(parts) => self.glob(span, parts, targets),
            Pattern::Regex(_) => unreachable!("regular expressions are refused"),
        }
    }

    fn exactly(&mut self, span: ByteSpan, bytes: &[u8], targets: Targets) {
        match span {
            ByteSpan::Sized { address, length } => {
                let differs = self.builder.ins().icmp_imm_u(IntCC::NotEqual, length, bytes.len() as i64);
                self.leave_if(differs, targets.on_false);
                self.same_bytes(address, 0, bytes, targets.on_false);
            }
            ByteSpan::Ended { capacity, .. } if bytes.len() > capacity as usize || bytes.contains(&0) => {
                return self.jump(targets.on_false);
            }
            ByteSpan::Ended { address, capacity } if bytes.len() == capacity as usize => {
                self.same_bytes(address, 0, bytes, targets.on_false);
            }
            // The zero byte behind it is compared as well.
            ByteSpan::Ended { address, .. } => self.same_bytes(address, 0, &[bytes, &[0]].concat(), targets.on_false),
        }
        self.jump(targets.on_true);
    }

    fn prefix(&mut self, span: ByteSpan, bytes: &[u8], targets: Targets) {
        let address = match span {
            ByteSpan::Sized { address, length } => {
                self.at_least(length, bytes.len(), targets.on_false);
                address
            }
            ByteSpan::Ended { capacity, .. } if bytes.len() > capacity as usize || bytes.contains(&0) => {
                return self.jump(targets.on_false);
            }
            ByteSpan::Ended { address, .. } => address,
        };
        self.same_bytes(address, 0, bytes, targets.on_false);
        self.jump(targets.on_true);
    }

    fn at_least(&mut self, length: Value, bytes: usize, otherwise: Block) {
        if bytes > 0 {
            let short = self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThan, length, bytes as i64);
            self.leave_if(short, otherwise);
        }
    }

    /// Goes on where the bytes at the address are the same; there are as many.
    fn same_bytes(&mut self, address: Value, offset: usize, bytes: &[u8], otherwise: Block) {
        let mut at = 0;
        while at < bytes.len() {
            let left = bytes.len() - at;
            // The last word may begin in front of the remaining bytes, if so much was compared
            // already.
            let (word, start) = match (left, at) {
                (8.., _) => (8, at),
                (_, 8..) => (8, bytes.len() - 8),
                (4.., _) => (4, at),
                (_, 4..) => (4, bytes.len() - 4),
                (2.., _) => (2, at),
                _ => (1, at),
            };
            self.same_word(address, offset + start, &bytes[start..start + word], otherwise);
            at = start + word;
        }
    }

    fn same_word(&mut self, address: Value, offset: usize, bytes: &[u8], otherwise: Block) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let found = self.load(integer(bytes.len()), address, offset);
        let wanted = self.builder.ins().iconst(integer(bytes.len()), u64::from_le_bytes(word) as i64);
        let differs = self.builder.ins().icmp(IntCC::NotEqual, found, wanted);
        self.leave_if(differs, otherwise);
    }

    fn load(&mut self, class: Type, address: Value, offset: usize) -> Value {
        let offset = i32::try_from(offset).expect("literals are short");
        self.builder.ins().load(class, little(), address, offset)
    }

    fn sized(&mut self, span: ByteSpan) -> Sized {
        match span {
            ByteSpan::Sized { address, length } => Sized { address, length },
            ByteSpan::Ended { address, capacity } => Sized { address, length: self.first_zero(address, capacity) },
        }
    }

    /// Index of the first zero byte of so many bytes; how many they are if there is none.
    fn first_zero(&mut self, address: Value, capacity: u32) -> Value {
        let behind = self.builder.create_block();
        let length = self.builder.append_block_param(behind, types::I64);
        if capacity < 8 {
            for index in 0..capacity {
                let byte = self.load(types::I8, address, index as usize);
                let (next, index) = (self.builder.create_block(), self.constant(u64::from(index)));
                self.builder.ins().brif(byte, next, &[], behind, &[index.into()]);
                self.builder.switch_to_block(next);
            }
        } else {
            self.first_zero_word(address, capacity, behind);
        }
        let capacity = self.constant(u64::from(capacity));
        self.builder.ins().jump(behind, &[capacity.into()]);
        self.builder.switch_to_block(behind);
        length
    }

    /// Eight bytes at a time; the last eight may have been looked at in part. Goes on where there is no zero byte.
    fn first_zero_word(&mut self, address: Value, capacity: u32, behind: Block) {
        let (search, found, further, none) = (
            self.builder.create_block(),
            self.builder.create_block(),
            self.builder.create_block(),
            self.builder.create_block(),
        );
        let at = self.builder.append_block_param(search, types::I64);
        let zero = self.constant(0);
        self.builder.ins().jump(search, &[zero.into()]);
        self.builder.switch_to_block(search);
        let from = self.builder.ins().iadd(address, at);
        let word = self.load(types::I64, from, 0);
        let zeros = zero_bytes(self.builder, word);
        self.builder.ins().brif(zeros, found, &[], further, &[]);
        self.builder.switch_to_block(found);
        let bit = self.builder.ins().ctz(zeros);
        let byte = self.builder.ins().ushr_imm_u(bit, 3);
        let index = self.builder.ins().iadd(at, byte);
        self.builder.ins().jump(behind, &[index.into()]);
        self.builder.switch_to_block(further);
        let last = self.constant(u64::from(capacity - 8));
        let next = self.builder.ins().iadd_imm_s(at, 8);
        let next = self.builder.ins().umin(next, last);
        let was_last = self.builder.ins().icmp(IntCC::Equal, at, last);
        self.builder.ins().brif(was_last, none, &[], search, &[next.into()]);
        self.builder.switch_to_block(none);
    }

    fn glob(&mut self, span: ByteSpan, parts: &[Box<[u8]>], targets: Targets) {
        let [first, middle @ .., last] = parts else { return self.jump(targets.on_false) };
        if middle.is_empty() && last.is_empty() {
            return self.prefix(span, first, targets);
        }
        let Sized { address, length } = self.sized(span);
        self.at_least(length, parts.iter().map(|part| part.len()).sum(), targets.on_false);
        self.same_bytes(address, 0, first, targets.on_false);
        let behind = self.builder.ins().iadd(address, length);
        let end = self.builder.ins().iadd_imm_s(behind, -(last.len() as i64));
        self.same_bytes(end, 0, last, targets.on_false);
        let mut from = self.builder.ins().iadd_imm_s(address, first.len() as i64);
        for part in middle {
            from = self.find(part, from, end, targets.on_false);
        }
        self.jump(targets.on_true);
    }

    /// The address behind the first place of the part; there is room for it between `from` and `end`, or for less if
    /// another part was found late.
    fn find(&mut self, part: &[u8], from: Value, end: Value, otherwise: Block) -> Value {
        let (search, inside, next) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        let at = self.builder.append_block_param(search, types::I64);
        self.builder.ins().jump(search, &[from.into()]);
        self.builder.switch_to_block(search);
        let left = self.builder.ins().isub(end, at);
        let short = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, left, part.len() as i64);
        self.branch(short, otherwise, inside);
        self.builder.switch_to_block(next);
        let further = self.builder.ins().iadd_imm_s(at, 1);
        self.builder.ins().jump(search, &[further.into()]);
        self.builder.switch_to_block(inside);
        self.same_bytes(at, 0, part, next);
        self.builder.ins().iadd_imm_s(at, part.len() as i64)
    }

    pub(super) fn compare_text(
        &mut self,
        relation: Relation,
        left: &TextExpression,
        right: &TextExpression,
        targets: Targets,
    ) {
        let (left, right) = (self.subject(left, targets.on_unknown), self.subject(right, targets.on_unknown));
        let (left, right) = match (left, right) {
            (SubjectKind::Literal(left), SubjectKind::Literal(right)) => {
                return self.jump(targets.of(relation.holds(left.cmp(right))));
            }
            (SubjectKind::Input(span), SubjectKind::Literal(bytes))
            | (SubjectKind::Literal(bytes), SubjectKind::Input(span))
                if matches!(relation, Relation::Equal | Relation::NotEqual) =>
            {
                let (equal, other) =
                    (targets.of(relation == Relation::Equal), targets.of(relation == Relation::NotEqual));
                return self.exactly(span, bytes, Targets { on_true: equal, on_false: other, ..targets });
            }
            (left, right) => (self.placed(left), self.placed(right)),
        };
        self.order(relation, left, right, targets);
    }

    /// The bytes in memory: those of a literal are put on the stack.
    fn placed(&mut self, subject: SubjectKind<'_>) -> Sized {
        let bytes = match subject {
            SubjectKind::Input(span) => return self.sized(span),
            SubjectKind::Literal(bytes) => bytes,
        };
        // One place does for all of a function: it is read before the next literal is written.
        let known = self.builder.func.sized_stack_slots.keys().next();
        let slot = known.unwrap_or_else(|| {
            let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, ORDERED_MAX as u32, 3);
            self.builder.create_sized_stack_slot(slot)
        });
        let address = self.builder.ins().stack_addr(types::I64, slot, 0);
        for (index, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let word = self.constant(u64::from_le_bytes(word));
            self.builder.ins().store(little(), word, address, index as i32 * 8);
        }
        Sized { address, length: self.constant(bytes.len() as u64) }
    }

    /// Eight bytes at a time, then one at a time, up to the first difference; without one the lengths decide.
    fn order(&mut self, relation: Relation, left: Sized, right: Sized, targets: Targets) {
        if matches!(relation, Relation::Equal | Relation::NotEqual) {
            let differ = self.builder.ins().icmp(IntCC::NotEqual, left.length, right.length);
            self.leave_if(differ, targets.of(relation == Relation::NotEqual));
        }
        let common = self.builder.ins().umin(left.length, right.length);
        let decide = self.builder.create_block();
        let one = self.builder.append_block_param(decide, types::I64);
        let other = self.builder.append_block_param(decide, types::I64);
        let zero = self.constant(0);
        let at = self.same_chunks(types::I64, zero, common, (left.address, right.address), decide);
        self.same_chunks(types::I8, at, common, (left.address, right.address), decide);
        self.builder.ins().jump(decide, &[left.length.into(), right.length.into()]);
        self.builder.switch_to_block(decide);
        let holds = self.builder.ins().icmp(unsigned(relation), one, other);
        self.branch(holds, targets.on_true, targets.on_false);
    }

    /// Where less than a chunk is left; chunks that differ go to `decide` as numbers of the same order.
    fn same_chunks(
        &mut self,
        chunk: Type,
        from: Value,
        common: Value,
        (left, right): (Value, Value),
        decide: Block,
    ) -> Value {
        let (head, inside, differ, behind) = (
            self.builder.create_block(),
            self.builder.create_block(),
            self.builder.create_block(),
            self.builder.create_block(),
        );
        let at = self.builder.append_block_param(head, types::I64);
        self.builder.ins().jump(head, &[from.into()]);
        self.builder.switch_to_block(head);
        let left_over = self.builder.ins().isub(common, at);
        let bytes = i64::from(chunk.bytes());
        let short = self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThan, left_over, bytes);
        self.builder.ins().brif(short, behind, &[], inside, &[]);
        self.builder.switch_to_block(inside);
        let [one, other] = [left, right].map(|text| {
            let address = self.builder.ins().iadd(text, at);
            self.load(chunk, address, 0)
        });
        let next = self.builder.ins().iadd_imm_s(at, bytes);
        let same = self.builder.ins().icmp(IntCC::Equal, one, other);
        self.builder.ins().brif(same, head, &[next.into()], differ, &[]);
        self.builder.switch_to_block(differ);
        let [one, other] = [one, other].map(|word| match chunk {
            types::I64 => self.builder.ins().bswap(word),
            _ => self.builder.ins().uextend(types::I64, word),
        });
        self.builder.ins().jump(decide, &[one.into(), other.into()]);
        self.builder.switch_to_block(behind);
        at
    }
}
