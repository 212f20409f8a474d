//! Tests of texts: equality and order of their bytes, patterns as `LIKE`, regular expressions as they are.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use kymo_ir::predicate::{Pattern, Refusal, Test, TextExpression};

use super::ExpressionBuilder;
use super::part::ExpressionPart;

impl ExpressionBuilder<'_> {
    pub(super) fn text(&self, test: &Test, text: &TextExpression) -> Result<ExpressionPart, Refusal> {
        match text {
            TextExpression::Literal(bytes) => self.literal(test, bytes),
            TextExpression::Input(input) => Ok(match self.column(*input) {
                Some(column) => column.cast(DataType::Utf8),
                None => ExpressionPart::literal(ScalarValue::Utf8(None)),
            }),
        }
    }

    fn literal(&self, test: &Test, bytes: &[u8]) -> Result<ExpressionPart, Refusal> {
        Ok(ExpressionPart::literal(self.utf8(test, bytes)?.into()))
    }

    fn utf8<'b>(&self, test: &Test, bytes: &'b [u8]) -> Result<&'b str, Refusal> {
        std::str::from_utf8(bytes).map_err(|_| self.predicate.refusal(test, "SQL has no text that is not UTF-8"))
    }

    pub(super) fn matches(
        &self,
        test: &Test,
        text: &TextExpression,
        pattern: &Pattern,
    ) -> Result<ExpressionPart, Refusal> {
        let text = self.text(test, text)?;
        Ok(match pattern {
            Pattern::Exactly(bytes) => text.binary(Operator::Eq, self.literal(test, bytes)?),
            Pattern::Prefix(bytes) => text.like(self.like_pattern(test, &[bytes, b""])?),
            Pattern::Glob(parts) => {
                let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
                text.like(self.like_pattern(test, &parts)?)
            }
            Pattern::Regex(regex) => {
                // DataFusion compiles it with the same library, for text that is UTF-8.
                if regex::Regex::new(regex.source()).is_err() {
                    return Err(self.predicate.refusal(test, "SQL has no regular expressions on bytes"));
                }
                text.binary(Operator::RegexMatch, ExpressionPart::literal(regex.source().into()))
            }
        })
    }

    /// Any text between the parts; it may hold line ends. Characters that are special to `LIKE` get
    /// a backslash.
    fn like_pattern(&self, test: &Test, parts: &[&[u8]]) -> Result<String, Refusal> {
        let mut pattern = String::new();
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                pattern.push('%');
            }
            for letter in self.utf8(test, part)?.chars() {
                if matches!(letter, '%' | '_' | '\\') {
                    pattern.push('\\');
                }
                pattern.push(letter);
            }
        }
        Ok(pattern)
    }
}
