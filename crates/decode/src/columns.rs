//! Event records of one class as columns: the shape of its fields, and the program that fills them.
//!
//! ```text
//! payload { len: u8, items: u32[len], name: text }
//!
//! table 0   len: U8 │ items: span of table 1 │ name: span of bytes     one row per record
//! table 1   items: U32                                                 one row per element
//! ```
//!
//! Text and blobs are spans of the packet's bytes: nothing is copied here. A caller that keeps
//! columns longer than the bytes copies them.

use std::sync::{Arc, OnceLock};

use kymo_format::model::{
    self, BitMap, DisplayBase, EnumerationMapping, FieldClass, IntegerMeaning, Optional, Scope, Structure,
    TextEncoding, Variant,
};
use kymo_ir::{
    CellType, Cells, NumberSource, Op, PacketWindow, ProgramColumn, ProgramTable, ReadProgram, ReadState, Reg,
    RowFault, eval,
};
use kymo_jit::CompiledRows;

use crate::builder::ProgramBuilder;
use crate::decoder::Decoder;
use crate::hot::Hot;
use crate::lower::{Face, FreshValue, LowerError};
use crate::plan::BodyFace;

/// The columns of one event record class.
#[derive(Clone, Debug)]
pub struct ClassColumns {
    /// Its fields, in the order of the bytes.
    pub fields: Vec<ScopeField>,
    /// Fills the columns; runs at the positions that a scan finds.
    pub program: Arc<ReadProgram>,
}

/// A direct member of one of the record's scopes.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeField {
    /// Its scope.
    pub scope: Scope,
    /// Its name, as people see it.
    pub name: String,
    /// Where its values are.
    pub shape: ColumnShape,
}

/// Where the values of a field are. Numbers are indexes into the program's columns and tables.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnShape {
    /// An integer.
    Integer {
        /// Column of the smallest cell that holds it, extended.
        column: u16,
        /// That cell.
        cell: CellType,
        /// Two's complement.
        signed: bool,
        /// For people.
        base: DisplayBase,
        /// Labels, if it is an enumeration.
        labels: Option<Vec<EnumerationMapping>>,
    },
    /// 0 is false.
    Boolean {
        /// Column of `U64` cells.
        column: u16,
    },
    /// Bits.
    BitArray {
        /// Column of `U64` cells.
        column: u16,
    },
    /// Bits with names.
    BitMap {
        /// Column of `U64` cells.
        column: u16,
        /// The names.
        flags: Vec<EnumerationMapping>,
    },
    /// A real number's bits.
    Real {
        /// Column of its bits.
        column: u16,
        /// `U16`, `U32` or `U64`.
        cell: CellType,
    },
    /// Text.
    Text {
        /// Column of spans of bytes.
        column: u16,
        /// How its characters are encoded.
        encoding: TextEncoding,
    },
    /// Bytes.
    Blob {
        /// Column of spans of bytes.
        column: u16,
    },
    /// Elements.
    List {
        /// Column of spans of rows.
        column: u16,
        /// The table with a row per element.
        table: u16,
        /// Where the elements' values are.
        element: Box<ColumnShape>,
    },
    /// Members.
    Structure {
        /// Names, as people see them, and values.
        members: Vec<(String, ColumnShape)>,
    },
    /// Content or nothing.
    Optional {
        /// Column of `U8` cells: 1 where there is content.
        present: u16,
        /// The content.
        content: Box<ColumnShape>,
    },
    /// One of several contents.
    Variant {
        /// Column of `U16` cells: index of the option that is there.
        option: u16,
        /// Names, as people see them, and values.
        options: Vec<(Option<String>, ColumnShape)>,
    },
}

/// Which fields are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Projection {
    /// All.
    #[default]
    All,
    /// These members of scopes, by the name people see.
    Fields(Vec<(Scope, String)>),
}

/// Reads events of a data stream class into columns, class by class. Shared by threads.
#[derive(Debug)]
pub struct ColumnReader {
    decoder: Arc<Decoder>,
    stream_class: usize,
    projection: Projection,
    classes: Vec<OnceLock<ClassColumnReader>>,
}

#[derive(Debug)]
struct ClassColumnReader {
    columns: ClassColumns,
    compiled: Hot<CompiledRows>,
}

/// Records of a class that the evaluator reads before its columns are compiled.
pub(crate) const COMPILE_AFTER: usize = 600;

impl ColumnReader {
    /// A reader of these fields.
    #[must_use]
    pub fn new(decoder: Arc<Decoder>, stream_class: usize, projection: Projection) -> Self {
        let classes = decoder.stream_class(stream_class).event_classes.iter().map(|_| OnceLock::new()).collect();
        Self { decoder, stream_class, projection, classes }
    }

    /// The columns of a class.
    #[must_use]
    pub fn columns(&self, event_class: usize) -> &ClassColumns {
        &self.class(event_class).columns
    }

    fn class(&self, event_class: usize) -> &ClassColumnReader {
        self.classes[event_class].get_or_init(|| {
            let columns = self.decoder.columns(self.stream_class, event_class, &self.projection);
            ClassColumnReader {
                columns: columns.expect("every class was lowered when the decoder was made"),
                compiled: Hot::default(),
            }
        })
    }

    /// Fills `cells` with the records of one class at `positions`, which a scan found.
    ///
    /// # Errors
    ///
    /// The first record that could not be read.
    pub fn read(
        &self,
        event_class: usize,
        window: PacketWindow<'_>,
        positions: &[u64],
        state: &mut ReadState,
        cells: &mut Cells,
    ) -> Result<(), RowFault> {
        let class = self.class(event_class);
        match class.compiled(&self.decoder, positions.len()) {
            Some(rows) => rows.run(window, positions, state, cells),
            None => eval::rows(&class.columns.program, window, positions, state, cells),
        }
    }
}

impl ClassColumnReader {
    /// Machine code for that many more records, once it pays off.
    fn compiled(&self, decoder: &Decoder, records: usize) -> Option<&CompiledRows> {
        let engine = decoder.engine()?;
        let after = if decoder.compiles_at_once() { 0 } else { COMPILE_AFTER };
        self.compiled.get(records, after, || CompiledRows::new(engine, &self.columns.program))
    }
}

impl Decoder {
    /// The columns of an event record class.
    ///
    /// # Errors
    ///
    /// A field class that cannot be decoded.
    pub fn columns(
        &self,
        stream_class: usize,
        event_class: usize,
        projection: &Projection,
    ) -> Result<ClassColumns, LowerError> {
        let mut face = ColumnFace::new(self.trace_class().dialect, projection);
        let program = self.body(stream_class, event_class, &mut face)?;
        Ok(ClassColumns { fields: face.fields, program: Arc::new(program) })
    }
}

impl Decoder {
    /// The columns of a packet's context: its members that are not there for readers of packets alone. The program
    /// runs at [`crate::PacketHead::context_start`].
    ///
    /// # Errors
    ///
    /// A field class that cannot be decoded.
    pub fn packet_columns(&self, stream_class: usize) -> Result<ClassColumns, LowerError> {
        let dialect = self.trace_class().dialect;
        let context = self.stream_class(stream_class).packet_context.as_ref().map(|class| &class.kind);
        let members = match context {
            Some(model::FieldKind::Structure(structure)) => &structure.members[..],
            _ => &[],
        };
        let shown = members.iter().filter(|member| member.class.roles().is_empty());
        let name = |member: &model::Member| model::display_name(dialect, &member.name).to_owned();
        let projection = Projection::Fields(shown.map(|member| (Scope::PacketContext, name(member))).collect());
        let mut face = ColumnFace::new(dialect, &projection);
        let program = self.packet_context(stream_class, &mut face)?;
        Ok(ClassColumns { fields: face.fields, program: Arc::new(program) })
    }
}

/// An incomplete compound field.
#[derive(Debug)]
enum OpenCompound {
    Structure { members: Vec<(String, ColumnShape)> },
    List { column: u16, table: u16, element: Option<ColumnShape> },
    Optional { present: u16, content: Option<ColumnShape> },
    Variant { option: u16, options: Vec<(Option<String>, ColumnShape)> },
}

struct ColumnFace<'a> {
    dialect: model::Dialect,
    projection: &'a Projection,
    fields: Vec<ScopeField>,
    scope: Scope,
    open: Vec<OpenCompound>,
    /// Names of the members, one for each open structure.
    names: Vec<String>,
    /// Tables with open rows, with the number of choices open inside each.
    tables: Vec<(u16, usize)>,
}

impl<'a> ColumnFace<'a> {
    fn new(dialect: model::Dialect, projection: &'a Projection) -> Self {
        let scope = Scope::EventPayload;
        Self { dialect, projection, fields: Vec::new(), scope, open: Vec::new(), names: Vec::new(), tables: Vec::new() }
    }

    fn column(&self, builder: &mut ProgramBuilder, cell: CellType) -> u16 {
        let &(table, choices) = self.tables.last().expect("table 0 is open in every scope");
        let columns = &mut builder.program.columns;
        // Only inside a choice a row may leave the cell empty, and only then the column has a mark
        // for each row.
        columns.push(ProgramColumn { table, cell, nullable: choices > 0 });
        (columns.len() - 1) as u16
    }

    fn store(&self, builder: &mut ProgramBuilder, cell: CellType, from: Reg) -> u16 {
        let column = self.column(builder, cell);
        builder.push(Op::Store { column, from });
        column
    }

    fn store_constant(builder: &mut ProgramBuilder, column: u16, value: u64) {
        let from = builder.set(value);
        builder.push(Op::Store { column, from });
        builder.release(from);
    }

    fn integer(
        &self,
        builder: &mut ProgramBuilder,
        from: Reg,
        width: Option<u8>,
        meaning: &IntegerMeaning,
    ) -> ColumnShape {
        let cell = cell(width.unwrap_or(64));
        let column = self.store(builder, cell, from);
        let labels = meaning.enumeration.then(|| meaning.mappings.clone());
        ColumnShape::Integer { column, cell, signed: meaning.signed, base: meaning.base, labels }
    }

    fn span(&self, builder: &mut ProgramBuilder, start: Reg, length: Reg) -> u16 {
        let column = self.column(builder, CellType::Span);
        builder.push(Op::StoreSpan { column, start, length });
        column
    }

    /// A field is complete: it becomes part of the open field.
    fn close(&mut self, shape: ColumnShape) {
        let outermost = self.open.len() == 1;
        match self.open.last_mut() {
            Some(OpenCompound::Structure { members }) => {
                let name = self.names.last().expect("a member has a name").clone();
                if outermost {
                    self.fields.push(ScopeField { scope: self.scope, name, shape });
                } else {
                    members.push((name, shape));
                }
            }
            Some(OpenCompound::List { element, .. }) => *element = Some(shape),
            Some(OpenCompound::Optional { content, .. }) => *content = Some(shape),
            Some(OpenCompound::Variant { options, .. }) => {
                options.last_mut().expect("an option is open").1 = shape;
            }
            None => {}
        }
    }

    fn choices(&mut self) -> &mut usize {
        &mut self.tables.last_mut().expect("table 0 is open in every scope").1
    }

    fn display(&self, name: &str) -> String {
        model::display_name(self.dialect, name).to_owned()
    }
}

/// The smallest cell for a number of `width` bits.
fn cell(width: u8) -> CellType {
    match width {
        0..=8 => CellType::U8,
        9..=16 => CellType::U16,
        17..=32 => CellType::U32,
        _ => CellType::U64,
    }
}

impl Face for ColumnFace<'_> {
    fn value(&mut self, builder: &mut ProgramBuilder, value: FreshValue<'_>) {
        let shape = match value {
            FreshValue::Integer { register, width, meaning } => self.integer(builder, register, width, meaning),
            FreshValue::Boolean { register } => {
                ColumnShape::Boolean { column: self.store(builder, CellType::U64, register) }
            }
            FreshValue::BitArray { register, .. } => {
                ColumnShape::BitArray { column: self.store(builder, CellType::U64, register) }
            }
            FreshValue::BitMap { register, map } => bit_map(self.store(builder, CellType::U64, register), map),
            FreshValue::Real { register, width } => {
                ColumnShape::Real { column: self.store(builder, cell(width), register), cell: cell(width) }
            }
            FreshValue::Text { start, length, encoding } => {
                ColumnShape::Text { column: self.span(builder, start, length), encoding }
            }
            FreshValue::Blob { start, length } => ColumnShape::Blob { column: self.span(builder, start, length) },
        };
        self.close(shape);
    }

    fn structure(&mut self, _: &mut ProgramBuilder, _: &Structure) {
        self.open.push(OpenCompound::Structure { members: Vec::new() });
        self.names.push(String::new());
    }

    fn member(&mut self, _: &mut ProgramBuilder, structure: &Structure, index: usize) -> bool {
        let name = self.display(&structure.members[index].name);
        let wanted = match self.projection {
            Projection::Fields(fields) if self.open.len() == 1 => {
                fields.iter().any(|(scope, field)| *scope == self.scope && *field == name)
            }
            _ => true,
        };
        *self.names.last_mut().expect("a structure is open") = name;
        wanted
    }

    fn structure_end(&mut self, _: &mut ProgramBuilder, _: &Structure) {
        self.names.pop();
        if let Some(OpenCompound::Structure { members }) = self.open.pop() {
            self.close(ColumnShape::Structure { members });
        }
    }

    fn array(&mut self, builder: &mut ProgramBuilder, count: NumberSource, _: &FieldClass) {
        let column = self.column(builder, CellType::Span);
        let parent = self.tables.last().map(|(table, _)| *table);
        builder.program.tables.push(ProgramTable { parent });
        let table = (builder.program.tables.len() - 1) as u16;
        builder.push(Op::StoreList { column, table, count });
        self.tables.push((table, 0));
        self.open.push(OpenCompound::List { column, table, element: None });
    }

    fn element_end(&mut self, builder: &mut ProgramBuilder) {
        let &(table, _) = self.tables.last().expect("an array is open");
        builder.push(Op::Row { table });
    }

    fn array_end(&mut self, _: &mut ProgramBuilder) {
        self.tables.pop();
        if let Some(OpenCompound::List { column, table, element }) = self.open.pop() {
            let element = Box::new(element.expect("an array's element was described"));
            self.close(ColumnShape::List { column, table, element });
        }
    }

    fn present(&mut self, builder: &mut ProgramBuilder, _: &Optional) {
        let present = self.column(builder, CellType::U8);
        Self::store_constant(builder, present, 1);
        *self.choices() += 1;
        self.open.push(OpenCompound::Optional { present, content: None });
    }

    fn absent(&mut self, builder: &mut ProgramBuilder, _: &Optional) {
        if let Some(&OpenCompound::Optional { present, .. }) = self.open.last() {
            Self::store_constant(builder, present, 0);
        }
    }

    fn option(&mut self, builder: &mut ProgramBuilder, variant: &Variant, index: usize) {
        // The walk reports each option, but the variant has one column: the first option makes it.
        if index == 0 {
            let option = self.column(builder, CellType::U16);
            *self.choices() += 1;
            self.open.push(OpenCompound::Variant { option, options: Vec::new() });
        }
        let name = variant.options[index].name.as_deref().map(|name| self.display(name));
        if let Some(OpenCompound::Variant { option, options }) = self.open.last_mut() {
            options.push((name, ColumnShape::Structure { members: Vec::new() }));
            Self::store_constant(builder, *option, index as u64);
        }
    }

    fn choice_end(&mut self, _: &mut ProgramBuilder) {
        *self.choices() -= 1;
        match self.open.pop() {
            Some(OpenCompound::Optional { present, content }) => {
                let content = Box::new(content.expect("an optional's content was described"));
                self.close(ColumnShape::Optional { present, content });
            }
            Some(OpenCompound::Variant { option, options }) => self.close(ColumnShape::Variant { option, options }),
            _ => {}
        }
    }
}

fn bit_map(column: u16, map: &BitMap) -> ColumnShape {
    ColumnShape::BitMap { column, flags: map.flags.clone() }
}

impl BodyFace for ColumnFace<'_> {
    fn begin(&mut self, builder: &mut ProgramBuilder) {
        builder.program.tables.push(ProgramTable { parent: None });
        self.tables.push((0, 0));
    }

    fn scope(&mut self, _: &mut ProgramBuilder, scope: Scope) {
        self.scope = scope;
    }

    fn as_face(&mut self) -> &mut dyn Face {
        self
    }
}
