//! Filters as machine code for traced programs: bytes that other code puts into executable memory,
//! anywhere.
//!
//! ```text
//! Predicate + Layout ──NativeFilter──> bytes   extern "C" fn(arguments: *const u8) -> u64     1: keep, 0: drop
//!                                        │
//!                                        └─load──> LoadedFilter, which runs them here
//! ```
//!
//! The code of a filter calls nothing, refers to nothing outside of itself, reads the structure of arguments and the texts that
//! pointers in it lead to, and writes to its own stack alone. Putting it into another program is the recorder's duty.

use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, InstBuilder, MemFlagsData, UserFuncName, Value, types};
use cranelift_codegen::isa::{self, Builder, CallConv, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider, SystemMemoryProvider};
use kymo_ir::predicate::{ArgumentLayout, Fact, Input, InputKind, InputPlace, Predicate, Refusal};
use kymo_units::ByteOrder;

use crate::engine::of_words;
use crate::predicate::{self, ByteSpan, Operands, Ways, little};

/// Bytes of an argument structure, at most: instructions contain offsets.
const LAYOUT_BYTES_MAX: u32 = 1 << 20;
/// Where code begins in memory.
const CODE_ALIGNMENT: u64 = 64;

/// A machine that filters are compiled for.
#[derive(Clone)]
pub struct NativeTarget {
    isa: Arc<dyn TargetIsa>,
    is_host: bool,
}

impl std::fmt::Debug for NativeTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Target({})", self.isa.triple())
    }
}

impl NativeTarget {
    /// This machine, with the features of its processor; `None` where there is no machine code for
    /// it.
    #[must_use]
    pub fn host() -> Option<Self> {
        if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            return None;
        }
        Self::of(cranelift_native::builder().ok()?, true)
    }

    /// A machine of x86-64 or aarch64 by its triple; `None` where this program was built without it (see the feature
    /// `every-target`).
    #[must_use]
    pub fn named(triple: &str) -> Option<Self> {
        let is_known = ["x86_64-", "aarch64-"].iter().any(|name| triple.starts_with(name));
        let builder = isa::lookup(triple.parse().ok().filter(|_| is_known)?).ok()?;
        Self::of(builder, false)
    }

    fn of(builder: Builder, is_host: bool) -> Option<Self> {
        let mut flags = settings::builder();
        for (name, value) in [
            // Code that is copied anywhere may call nothing: no function that probes the stack, and
            // no tables for unwinding that would refer to its address.
            ("is_pic", "true"),
            ("opt_level", "speed"),
            ("enable_verifier", "false"),
            ("enable_probestack", "false"),
            ("unwind_info", "false"),
        ] {
            flags.set(name, value).ok()?;
        }
        let isa = builder.finish(settings::Flags::new(flags)).ok()?;
        Some(Self { isa, is_host })
    }

    /// How its functions are called.
    pub(crate) fn convention(&self) -> CallConv {
        CallConv::triple_default(self.isa.triple())
    }
}

/// A filter as machine code.
#[derive(Clone, Debug)]
pub struct NativeFilter {
    code: Box<[u8]>,
    arguments_bytes: usize,
    has_pointers: bool,
    is_host: bool,
}

impl NativeFilter {
    /// Compiles a predicate for argument structures of a layout.
    ///
    /// # Errors
    ///
    /// The part of it that machine code does not cover, or a layout that is not one for its inputs.
    pub fn new(target: &NativeTarget, predicate: &Predicate, layout: &ArgumentLayout) -> Result<Self, Refusal> {
        let question = NativeQuestion { predicate, layout };
        question.check()?;
        let code =
            compile(target, 1, |builder, parameters| write(builder, parameters[0], question)).ok_or(too_much())?;
        Ok(Self {
            code,
            arguments_bytes: layout.size as usize,
            has_pointers: layout.places.iter().any(|place| matches!(place, InputPlace::Pointer { .. })),
            is_host: target.is_host,
        })
    }

    /// The code: it may be copied anywhere, and begins with its first instruction.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        &self.code
    }

    /// Puts the code into this program's memory; `None` if it is another machine's, or executable memory is not allowed.
    #[must_use]
    pub fn load(&self) -> Option<LoadedFilter> {
        if !self.is_host {
            return None;
        }
        let code = LoadedCode::new(&self.code)?;
        let &Self { arguments_bytes, has_pointers, .. } = self;
        Some(LoadedFilter { code, arguments_bytes, has_pointers })
    }
}

/// Code in executable memory of this process.
pub struct LoadedCode {
    memory: SystemMemoryProvider,
    address: usize,
}

impl std::fmt::Debug for LoadedCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoadedCode(at {:#x})", self.address)
    }
}

impl LoadedCode {
    /// Puts code there that may be copied anywhere; `None`: executable memory is not allowed.
    #[must_use]
    pub fn new(code: &[u8]) -> Option<Self> {
        let mut memory = SystemMemoryProvider::new();
        let address = memory.allocate(code.len(), CODE_ALIGNMENT, JITMemoryKind::Executable).ok()?;
        // SAFETY: `address` begins as many bytes as were asked for, which no other code has.
        #[allow(unsafe_code)]
        unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), address, code.len());
        }
        let mut loaded = Self { memory, address: address as usize };
        loaded.memory.finalize(BranchProtection::None).ok()?;
        Some(loaded)
    }
}

impl LoadedCode {
    /// Where it begins.
    #[must_use]
    pub fn address(&self) -> usize {
        self.address
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        // SAFETY: the code is only run through a borrow of this.
        #[allow(unsafe_code)]
        unsafe {
            self.memory.free_memory();
        }
    }
}

/// A predicate about argument structures.
#[derive(Clone, Copy, Debug)]
pub struct NativeQuestion<'p> {
    /// The predicate.
    pub predicate: &'p Predicate,
    /// Where its inputs are.
    pub layout: &'p ArgumentLayout,
}

impl NativeQuestion<'_> {
    fn check(&self) -> Result<(), Refusal> {
        predicate::refuse(self.predicate)?;
        self.layout.check(self.predicate)?;
        if self.layout.size > LAYOUT_BYTES_MAX {
            let why = "the structure is too long for offsets in machine code";
            return Err(Refusal { part: "all inputs".to_owned(), why });
        }
        Ok(())
    }
}

fn too_much() -> Refusal {
    Refusal { part: "all of it".to_owned(), why: "the compiler takes no more" }
}

/// Several questions about the same arguments in one function: rare ones, which lead to a call, and those that
/// decide whether the event is kept.
///
/// ```text
/// extern "C" fn(arguments: *const u8, more: u64) -> u64
///     a rare question is true ──> otherwise(arguments, more)
///     a group records, and its question is true ──> 1
///     else ──> 0
/// ```
#[derive(Clone, Debug)]
pub struct NativeJudgement<'p> {
    /// Rare questions.
    pub rare: Vec<NativeQuestion<'p>>,
    /// Groups: their bits, which are 0 in the byte `stopped` while one of them records, `None`: one always does; and
    /// their question, `None`: the answer is always yes.
    pub groups: Vec<(Option<u8>, Option<NativeQuestion<'p>>)>,
    /// Address of the function that is called.
    pub otherwise: u64,
    /// Address of the byte with the groups that do not record.
    pub stopped: u64,
}

impl NativeJudgement<'_> {
    /// Compiles it. The code may be copied anywhere in the program that has these addresses.
    ///
    /// # Errors
    ///
    /// The part of it that machine code does not cover, or a layout that is not one for its inputs.
    pub fn compile(&self, target: &NativeTarget) -> Result<Box<[u8]>, Refusal> {
        let of_groups = self.groups.iter().filter_map(|(_, question)| question.as_ref());
        self.rare.iter().chain(of_groups).try_for_each(NativeQuestion::check)?;
        compile(target, 2, |builder, parameters| self.write(builder, parameters)).ok_or(too_much())
    }

    fn write(&self, builder: &mut FunctionBuilder<'_>, parameters: &[Value]) {
        let &[arguments, more] = parameters else { unreachable!("there are two") };
        let (kept, otherwise) = (builder.create_block(), builder.create_block());
        builder.set_cold_block(otherwise);
        for question in &self.rare {
            let next = builder.create_block();
            question.branch(builder, arguments, Ways { kept: otherwise, dropped: next, undecided: None });
            builder.switch_to_block(next);
        }
        for (bits, question) in &self.groups {
            let next = builder.create_block();
            if let Some(bits) = bits {
                let records = builder.create_block();
                let stopped = builder.ins().iconst(types::I64, self.stopped.cast_signed());
                let stopped = builder.ins().load(types::I8, little(), stopped, 0);
                let recording = builder.ins().bnot(stopped);
                let recording = builder.ins().band_imm_u(recording, i64::from(*bits));
                builder.ins().brif(recording, records, &[], next, &[]);
                builder.switch_to_block(records);
            }
            match question {
                None => _ = builder.ins().jump(kept, &[]),
                Some(question) => {
                    question.branch(builder, arguments, Ways { kept, dropped: next, undecided: None });
                }
            }
            builder.switch_to_block(next);
        }
        answer(builder, 0);
        builder.switch_to_block(kept);
        answer(builder, 1);
        builder.switch_to_block(otherwise);
        let signature = builder.func.signature.clone();
        let signature = builder.import_signature(signature);
        let function = builder.ins().iconst(types::I64, self.otherwise.cast_signed());
        let call = builder.ins().call_indirect(signature, function, &[arguments, more]);
        let said = builder.inst_results(call)[0];
        builder.ins().return_(&[said]);
    }
}

/// A filter in executable memory. May be used by several threads at once.
pub struct LoadedFilter {
    code: LoadedCode,
    arguments_bytes: usize,
    has_pointers: bool,
}

// SAFETY: the provider's raw pointers lead to memory that it alone owns; after loading it is only looked at, by code that
// writes to its own stack alone.
#[allow(unsafe_code)]
unsafe impl Send for LoadedFilter {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for LoadedFilter {}

impl std::fmt::Debug for LoadedFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoadedFilter(at {:#x})", self.code.address)
    }
}

impl LoadedFilter {
    /// Whether the event with these arguments is kept.
    ///
    /// # Panics
    ///
    /// If the arguments are fewer bytes than the layout demands, or have text behind pointers: for
    /// those see [`Self::run_raw`].
    #[must_use]
    pub fn run(&self, arguments: &[u8]) -> bool {
        assert!(arguments.len() >= self.arguments_bytes, "the arguments are shorter than their layout");
        assert!(!self.has_pointers, "nobody made sure of the texts behind pointers");
        // SAFETY: the bytes that the code reads are there; it follows no pointers.
        #[allow(unsafe_code)]
        unsafe {
            self.run_raw(arguments.as_ptr())
        }
    }

    /// Whether the event with these arguments is kept.
    ///
    /// # Safety
    ///
    /// At `arguments` there must be as many bytes as the layout's size, and at each
    /// [`InputPlace::Pointer`] an address and a length of bytes that can be read. The writer of the
    /// structure makes that true.
    #[must_use]
    #[allow(unsafe_code)]
    pub unsafe fn run_raw(&self, arguments: *const u8) -> bool {
        // SAFETY: at `address` is a function of this type, which `compile` wrote for this machine;
        // it reads the bytes that the caller made sure of.
        let function: extern "C" fn(*const u8) -> u64 = unsafe { std::mem::transmute(self.code.address) };
        function(arguments) != 0
    }
}

/// A function with so many parameters, and one result; all of them are words.
pub(crate) fn compile(
    target: &NativeTarget,
    parameters: usize,
    write: impl FnOnce(&mut FunctionBuilder<'_>, &[Value]),
) -> Option<Box<[u8]>> {
    let signature = of_words(target.convention(), parameters);
    let mut context = Context::for_function(Function::with_name_signature(UserFuncName::user(0, 0), signature));
    let mut function_context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut function_context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let parameters = builder.block_params(entry).to_vec();
    write(&mut builder, &parameters);
    builder.seal_all_blocks();
    builder.finalize(target.isa.frontend_config());
    let compiled = context.compile(&*target.isa, &mut ControlPlane::default()).ok()?;
    // Code that refers to something outside could not be copied anywhere.
    let is_whole = compiled.buffer.relocs().is_empty();
    is_whole.then(|| compiled.code_buffer().into())
}

fn write(builder: &mut FunctionBuilder<'_>, arguments: Value, question: NativeQuestion<'_>) {
    let (kept, dropped) = (builder.create_block(), builder.create_block());
    question.branch(builder, arguments, Ways { kept, dropped, undecided: None });
    for (block, said) in [(kept, 1), (dropped, 0)] {
        builder.switch_to_block(block);
        answer(builder, said);
    }
}

fn answer(builder: &mut FunctionBuilder<'_>, said: i64) {
    let said = builder.ins().iconst(types::I64, said);
    builder.ins().return_(&[said]);
}

impl NativeQuestion<'_> {
    /// Goes one of the ways; afterwards there is no current block.
    fn branch(&self, builder: &mut FunctionBuilder<'_>, arguments: Value, ways: Ways) {
        let Self { predicate, layout } = *self;
        predicate::branch(builder, predicate, &mut ArgumentStructure { arguments, predicate, layout }, ways);
    }
}

/// Inputs in a structure of arguments.
struct ArgumentStructure<'p> {
    arguments: Value,
    predicate: &'p Predicate,
    layout: &'p ArgumentLayout,
}

impl ArgumentStructure<'_> {
    fn place(&self, input: Input) -> InputPlace {
        self.layout.places[usize::from(input.0)]
    }
}

impl Operands for ArgumentStructure<'_> {
    fn facts(&self) -> Vec<Fact> {
        self.layout.facts()
    }

    fn presence(&mut self, _: &mut FunctionBuilder<'_>, _: Input) -> Option<Value> {
        None
    }

    fn number(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> Value {
        match self.place(input) {
            InputPlace::Integer { offset, bytes, order } => {
                let is_signed = matches!(self.predicate.kind(input), InputKind::Integer { signed: true, .. });
                let value =
                    builder.ins().load(predicate::integer(usize::from(bytes)), little(), self.arguments, offset as i32);
                let swaps = order == ByteOrder::Big && bytes > 1;
                let value = if swaps { builder.ins().bswap(value) } else { value };
                match (bytes, is_signed) {
                    (8, _) => value,
                    (_, true) => builder.ins().sextend(types::I64, value),
                    (_, false) => builder.ins().uextend(types::I64, value),
                }
            }
            InputPlace::Real { offset, bytes: 4 } => {
                let single = builder.ins().load(types::F32, little(), self.arguments, offset as i32);
                let double = builder.ins().fpromote(types::F64, single);
                builder.ins().bitcast(types::I64, MemFlagsData::new(), double)
            }
            InputPlace::Real { offset, .. } => builder.ins().load(types::I64, little(), self.arguments, offset as i32),
            InputPlace::Missing | InputPlace::Inline { .. } | InputPlace::Pointer { .. } => {
                builder.ins().iconst(types::I64, 0)
            }
        }
    }

    fn text(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> ByteSpan {
        match self.place(input) {
            InputPlace::Inline { offset, capacity } => {
                let address = builder.ins().iadd_imm_s(self.arguments, i64::from(offset));
                ByteSpan::Ended { address, capacity }
            }
            InputPlace::Pointer { offset } => {
                let [address, length] = [offset, offset + 8]
                    .map(|offset| builder.ins().load(types::I64, little(), self.arguments, offset as i32));
                ByteSpan::Sized { address, length }
            }
            InputPlace::Missing | InputPlace::Integer { .. } | InputPlace::Real { .. } => {
                let zero = builder.ins().iconst(types::I64, 0);
                ByteSpan::Sized { address: zero, length: zero }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kymo_ir::predicate::{InputClass, Number, Relation, Test};

    use super::*;

    /// The consequence of a rare question: returns the second argument plus the number of the first.
    extern "C" fn otherwise(arguments: *const u8, more: u64) -> u64 {
        // SAFETY: the test gives the address of a number.
        #[allow(unsafe_code)]
        let value = unsafe { arguments.cast::<u64>().read() };
        more + value
    }

    fn compares(relation: Relation, value: u64) -> (Predicate, ArgumentLayout) {
        let kind = InputKind::Integer { bits: 64, signed: false };
        let inputs = vec![InputClass { name: "value".into(), kind, optional: false }];
        let [left, right] = [Number::Input(Input(0)), Number::Integer(value.into())];
        let place = InputPlace::Integer { offset: 0, bytes: 8, order: ByteOrder::Little };
        let root = Test::Compare { relation, left, right };
        (Predicate { inputs, root }, ArgumentLayout { size: 8, places: vec![place] })
    }

    #[test]
    fn a_judgement_calls_only_where_a_rare_question_is_true() {
        let Some(target) = NativeTarget::host() else {
            return eprintln!("NO MACHINE CODE HERE: not run");
        };
        let all = [
            compares(Relation::Equal, 7),
            compares(Relation::Equal, 70),
            compares(Relation::Less, 10),
            compares(Relation::Greater, 100),
        ];
        let [seven, seventy, low, high] =
            all.each_ref().map(|(predicate, layout)| NativeQuestion { predicate, layout });
        let mut stopped = 0_u8;
        let ask = |groups: Vec<_>, stopped: &u8, value: u64| {
            let stopped = std::ptr::from_ref(stopped) as u64;
            let otherwise = otherwise as *const () as u64;
            let judgement = NativeJudgement { rare: vec![seven, seventy], groups, otherwise, stopped };
            let code =
                LoadedCode::new(&judgement.compile(&target).expect("it is compiled")).expect("it may be executed");
            // SAFETY: at the address is a function of this type, for the address of a number.
            #[allow(unsafe_code)]
            unsafe {
                let function: extern "C" fn(*const u64, u64) -> u64 = std::mem::transmute(code.address);
                function(&raw const value, 1000)
            }
        };
        for (bits, low_kept) in [(0, 1), (0b10, 1), (0b01, 0)] {
            stopped = bits;
            let groups = || vec![(Some(0b01), Some(low)), (None, Some(high))];
            assert_eq!([7, 70].map(|value| ask(groups(), &stopped, value)), [1007, 1070]);
            assert_eq!([3, 50, 500].map(|value| ask(groups(), &stopped, value)), [low_kept, 0, 1], "{bits}");
        }
        let all_of = |bits| vec![(bits, None)];
        assert_eq!([7, 8].map(|value| ask(all_of(None), &stopped, value)), [1007, 1]);
        assert_eq!([7, 8].map(|value| ask(all_of(Some(1)), &stopped, value)), [1007, 0]);
        assert_eq!([7, 8].map(|value| ask(all_of(Some(3)), &stopped, value)), [1007, 1]);
        assert_eq!([7, 8].map(|value| ask(Vec::new(), &stopped, value)), [1007, 0]);
    }
}
