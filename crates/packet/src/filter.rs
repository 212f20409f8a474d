//! Filters over packets: an expression with the names that captures have as traces.

use kymo_filter::{Binding, Filter, FilterProblem, Verdict, with_place};
use kymo_ir::predicate::{Datum, Input, Pattern, Relation, Test, TextExpression};

use crate::classic::{self, ClassicInstruction};
use crate::fields::{HeadField, PacketFacts, PacketNames};

/// An expression that is true of some packets.
#[derive(Clone, Debug)]
pub struct PacketFilter {
    binding: Binding,
    /// The field of each input.
    fields: Vec<HeadField>,
}

impl PacketFilter {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// The errors in it, for people.
    ///
    /// ```
    /// use kymo_packet::{PacketDirection, PacketFacts, PacketFilter};
    ///
    /// let filter = PacketFilter::parse("length < 100 && direction == \"inbound\"").expect("it is an expression");
    /// let facts = PacketFacts { interface: "lo", direction: PacketDirection::Inbound, link: 1, length: 60, data: &[0; 60] };
    /// assert!(filter.keeps(&facts));
    /// assert!(PacketFilter::parse("tcp.port == 80").unwrap_err().contains("tcp.port"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let render = |problems: Vec<FilterProblem>| -> String {
            problems.iter().map(|problem| format!("error: {}", problem.render(text))).collect()
        };
        let filter = Filter::parse(text).map_err(render)?;
        let binding = filter.bind(&PacketNames).map_err(render)?;
        let unknown = binding.missing.iter().map(|name| filter.unknown_name(name.span.clone(), &name.near));
        let unknown: Vec<FilterProblem> = unknown.collect();
        if !unknown.is_empty() {
            return Err(render(unknown));
        }
        let fields = binding.keys.iter().map(|key| HeadField::ALL[*key as usize]).collect();
        Ok(Self { binding, fields })
    }

    /// Why it cannot be meant, for people: it is true of no packet at all, or has addresses that none has. `text` is its
    /// expression.
    #[must_use]
    pub fn fault(&self, text: &str) -> Option<String> {
        if self.binding.verdict() == Verdict::NeverTrue {
            let help = "a number in it is more or less than the field can be, or its parts exclude each other";
            return Some(format!(
                "error: {}",
                with_place("this is true of no packet", text, &(0..text.len()), Some(help))
            ));
        }
        let (address, help) = self.address_fault(&self.binding.predicate.root)?;
        let at = text.find(&*address).map_or(0..text.len(), |at| at..at + address.len());
        Some(format!("error: {}", with_place("no packet has this address", text, &at, Some(&help))))
    }

    /// A text that is compared with addresses and is none, and why.
    fn address_fault(&self, test: &Test) -> Option<(String, String)> {
        let fault = |input: &Input, text: &[u8]| {
            let form = self.fields.get(input.0 as usize)?.address()?;
            let text = String::from_utf8_lossy(text);
            Some((text.to_string(), form.fault(&text)?))
        };
        match test {
            Test::Not(test) => self.address_fault(test),
            Test::All(tests) | Test::Any(tests) => tests.iter().find_map(|test| self.address_fault(test)),
            Test::Matches { text: TextExpression::Input(input), pattern: Pattern::Exactly(text) } => fault(input, text),
            Test::CompareText { relation: Relation::Equal | Relation::NotEqual, left, right } => match (left, right) {
                (TextExpression::Input(input), TextExpression::Literal(text))
                | (TextExpression::Literal(text), TextExpression::Input(input)) => fault(input, text),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it is true of a packet.
    #[must_use]
    pub fn keeps(&self, packet: &PacketFacts<'_>) -> bool {
        let heads = packet.heads();
        let values: Vec<Datum> = self.fields.iter().map(|field| packet.value(&heads, *field)).collect();
        self.binding.predicate.keeps(&values[..])
    }

    /// Classic BPF for a packet socket, which takes `snap` bytes of each packet of which the expression is true. Of other
    /// packets, it takes some too.
    #[must_use]
    pub fn classic(&self, snap: u32) -> Vec<ClassicInstruction> {
        classic::compile(&self.binding.predicate.root, &self.fields, snap)
    }
}
