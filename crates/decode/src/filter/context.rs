//! The programs that read packets' contexts for a filter: fields into slots, and tests that are settled once for each packet.

use kymo_format::model::Scope;
use kymo_ir::{InputOperand, Op};

use super::face::TestFace;
use super::packet::{PacketField, PacketPart};
use crate::builder::ProgramBuilder;
use crate::decoder::Decoder;
use crate::lower::{Face, FreshValue, LowerError};
use crate::plan::BodyFace;
use crate::walk::FieldWalk;

/// Writes the programs of questions about packets, once all of them are known.
pub(super) fn write(packet: &mut PacketPart, decoder: &Decoder, stream_class: usize) -> Result<(), LowerError> {
    if !packet.fields.is_empty() {
        let mut face = PacketFace { fields: &packet.fields, operands: Vec::new(), walk: FieldWalk::new() };
        packet.program = Some(decoder.packet_context(stream_class, &mut face)?);
    }
    for number in 0..packet.settled.len() {
        let (predicate, sources) = (packet.settled[number].predicate.clone(), packet.settled[number].sources.clone());
        let mut face = TestFace::of_packet(&predicate, &sources, packet);
        packet.settled[number].program = Some(decoder.packet_context(stream_class, &mut face)?);
    }
    Ok(())
}

/// Reads fields of a packet's context into slots.
struct PacketFace<'a> {
    fields: &'a [PacketField],
    operands: Vec<InputOperand>,
    walk: FieldWalk,
}

/// The walk itself is the face of the fields: only scopes and the ends concern this one.
impl Face for PacketFace<'_> {
    fn value(&mut self, builder: &mut ProgramBuilder, value: FreshValue<'_>) {
        Face::value(&mut self.walk, builder, value);
    }
}

impl BodyFace for PacketFace<'_> {
    fn begin(&mut self, builder: &mut ProgramBuilder) {
        for field in self.fields {
            let operand = self.walk.want(builder, &field.places, field.kind, true);
            self.operands.push(operand);
        }
    }

    fn scope(&mut self, builder: &mut ProgramBuilder, scope: Scope) {
        self.walk.scope(builder, scope);
    }

    fn end(&mut self, builder: &mut ProgramBuilder) {
        builder.flush();
        for (field, operand) in self.fields.iter().zip(&self.operands) {
            if let InputOperand::Number { value, present: Some(present) } = *operand {
                builder.push(Op::Out { slot: field.value, from: value });
                builder.push(Op::Out { slot: field.present, from: present });
            }
        }
    }

    fn as_face(&mut self) -> &mut dyn Face {
        &mut self.walk
    }
}
