//! Filters over packets: an expression with the names that captures have as traces.

use kymo_filter::{Binding, Filter, FilterProblem, Verdict};
use kymo_ir::predicate::Datum;

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

    /// Whether it is true of a packet.
    #[must_use]
    pub fn keeps(&self, packet: &PacketFacts<'_>) -> bool {
        let heads = packet.heads();
        let values: Vec<Datum> = self.fields.iter().map(|field| packet.value(&heads, *field)).collect();
        self.binding.predicate.keeps(&values[..])
    }

    /// Whether it is true of no packet at all.
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.binding.verdict() == Verdict::NeverTrue
    }

    /// Classic BPF for a packet socket, which takes `snap` bytes of each packet of which the expression is true. Of other
    /// packets, it takes some too.
    #[must_use]
    pub fn classic(&self, snap: u32) -> Vec<ClassicInstruction> {
        classic::compile(&self.binding.predicate.root, &self.fields, snap)
    }
}
