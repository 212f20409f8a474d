//! Tests of texts.

use kymo_bytecode::{Instruction, PARTS_MAX, TextPattern, TextPlace};
use kymo_ir::predicate::{Input, InputPlace, Pattern, Refusal, Relation, Test, TextExpression};

use super::{BytecodeCompiler, TOO_LONG, Targets, orders};

impl BytecodeCompiler<'_> {
    pub(super) fn compare_text(
        &mut self,
        test: &Test,
        relation: Relation,
        left: &TextExpression,
        right: &TextExpression,
        targets: Targets,
    ) -> Result<(), Refusal> {
        let (input, literal) = match (left, right) {
            (TextExpression::Literal(_), TextExpression::Input(_)) => {
                return self.compare_text(test, relation.mirrored(), right, left, targets);
            }
            (TextExpression::Literal(left), TextExpression::Literal(right)) => {
                self.code.jump(targets.of(relation.holds(left.cmp(right))));
                return Ok(());
            }
            (TextExpression::Input(left), TextExpression::Input(right)) => {
                let left = self.text(test, *left, None)?;
                let right = self.text(test, *right, Some(left))?;
                let jump = |orders| Instruction::CompareTexts { left, right, orders, skip: 0 };
                self.branch_orders(orders(relation), targets, jump);
                return Ok(());
            }
            (TextExpression::Input(input), TextExpression::Literal(literal)) => (*input, literal),
        };
        match relation {
            Relation::Equal => self.matches_input(test, input, &Pattern::Exactly(literal.clone()), targets),
            Relation::NotEqual => {
                self.matches_input(test, input, &Pattern::Exactly(literal.clone()), targets.swapped())
            }
            _ => {
                let left = self.text(test, input, None)?;
                let right = self.code.constant(literal).ok_or_else(|| self.predicate.refusal(test, TOO_LONG))?;
                let jump = |orders| Instruction::CompareLiteral { left, right, orders, skip: 0 };
                self.branch_orders(orders(relation), targets, jump);
                Ok(())
            }
        }
    }

    pub(super) fn matches(
        &mut self,
        test: &Test,
        text: &TextExpression,
        pattern: &Pattern,
        targets: Targets,
    ) -> Result<(), Refusal> {
        match text {
            TextExpression::Literal(text) => {
                self.code.jump(targets.of(pattern.matches(text)));
                Ok(())
            }
            TextExpression::Input(input) => self.matches_input(test, *input, pattern, targets),
        }
    }

    fn matches_input(&mut self, test: &Test, input: Input, pattern: &Pattern, targets: Targets) -> Result<(), Refusal> {
        let pattern = self.pattern(test, pattern)?;
        let text = self.text(test, input, None)?;
        let jump = |jumps_if| Instruction::TestText { text, pattern, jumps_if, skip: 0 };
        if targets.next == targets.on_true {
            self.code.push_to(jump(false), targets.on_false);
            self.code.jump(targets.on_true);
        } else {
            self.code.push_to(jump(true), targets.on_true);
            self.code.jump(targets.on_false);
        }
        Ok(())
    }

    fn pattern(&mut self, test: &Test, pattern: &Pattern) -> Result<TextPattern, Refusal> {
        let refuse = |why| self.predicate.refusal(test, why);
        match pattern {
            Pattern::Exactly(bytes) => self.code.constant(bytes).map(TextPattern::Is),
            Pattern::Prefix(bytes) => self.code.constant(bytes).map(TextPattern::Begins),
            Pattern::Regex(_) => return Err(refuse("bytecode has no regular expressions")),
            Pattern::Glob(parts) => {
                let count = u32::try_from(parts.len()).ok().filter(|count| *count <= PARTS_MAX);
                let count = count.ok_or_else(|| refuse("bytecode takes patterns of at most 255 parts"))?;
                let mut bytes = Vec::new();
                for part in parts {
                    let length = u16::try_from(part.len()).map_err(|_| refuse(TOO_LONG))?;
                    bytes.extend(length.to_le_bytes());
                    bytes.extend_from_slice(part);
                }
                let literal = self.code.constant(&bytes);
                literal.map(|literal| TextPattern::Like { offset: literal.offset, parts: count })
            }
        }
        .ok_or_else(|| self.predicate.refusal(test, TOO_LONG))
    }

    /// A register that holds a text that is there; `keep` is one that stays as it is.
    fn text(&mut self, test: &Test, input: Input, keep: Option<u8>) -> Result<u8, Refusal> {
        if !self.predicate.is_utf8(input) {
            return Err(self.predicate.refusal(test, "bytecode takes text of UTF-8 alone"));
        }
        if let Some(register) = self.code.text(input) {
            return Ok(register);
        }
        let place = match self.places[usize::from(input.0)] {
            InputPlace::Inline { offset, capacity } => TextPlace::Inline { offset: offset as u16, capacity },
            InputPlace::Pointer { offset } => TextPlace::Pointer { offset: offset as u16 },
            InputPlace::Missing | InputPlace::Integer { .. } | InputPlace::Real { .. } => {
                unreachable!("a test of a text that is not there is decided already")
            }
        };
        let to = self.code.new_text(input, keep);
        self.code.push(Instruction::LoadText { to, place });
        Ok(to)
    }
}
