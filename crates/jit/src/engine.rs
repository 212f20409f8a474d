//! Owns the memory of machine code.

use std::sync::{Arc, Mutex};

use cranelift_codegen::ir::{AbiParam, Function, Signature, UserFuncName, types};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, default_libcall_names};

/// Compiles programs. Cheap to clone; its code lives as long as any clone.
#[derive(Clone)]
pub struct JitEngine {
    shared: Arc<SharedEngine>,
}

struct SharedEngine {
    module: Mutex<OwnedModule>,
    isa: Arc<dyn TargetIsa>,
}

struct OwnedModule(Option<JITModule>);

// SAFETY: the module's raw pointers lead to memory that it alone owns and that no thread-local state refers to; it is
// only reached through the mutex in `SharedEngine`.
#[allow(unsafe_code)]
unsafe impl Send for OwnedModule {}

impl Drop for OwnedModule {
    fn drop(&mut self) {
        if let Some(module) = self.0.take() {
            // SAFETY: functions of this module are only called by `Scan` and its like, which hold a `JitEngine`.
            #[allow(unsafe_code)]
            unsafe {
                module.free_memory();
            }
        }
    }
}

impl std::fmt::Debug for JitEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

/// A function with so many parameters and a result, all integers of 64 bits.
pub(crate) fn of_words(convention: CallConv, parameters: usize) -> Signature {
    let mut signature = Signature::new(convention);
    signature.params = vec![AbiParam::new(types::I64); parameters];
    signature.returns.push(AbiParam::new(types::I64));
    signature
}

/// Bytes of machine code for one program; longer ones are left to the evaluator.
const CODE_BYTES_MAX: usize = 1 << 20;

impl JitEngine {
    /// A compiler for this machine; `None` where there is none, or executable memory is not allowed.
    #[must_use]
    pub fn new() -> Option<Self> {
        if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            return None;
        }
        let mut flags = settings::builder();
        for (name, value) in [
            ("use_colocated_libcalls", "false"),
            ("is_pic", "false"),
            ("opt_level", "speed"),
            // Every program was verified, and Cranelift's own check of its input costs time for
            // each function. Tests compare with the evaluator instead.
            ("enable_verifier", "false"),
        ] {
            flags.set(name, value).ok()?;
        }
        let isa = cranelift_native::builder().ok()?.finish(settings::Flags::new(flags)).ok()?;
        let module = JITModule::new(JITBuilder::with_isa(Arc::clone(&isa), default_libcall_names()));
        Some(Self { shared: Arc::new(SharedEngine { module: Mutex::new(OwnedModule(Some(module))), isa }) })
    }

    /// A function of 64-bit integers.
    pub(crate) fn signature(&self, parameters: usize) -> Signature {
        of_words(self.convention(), parameters)
    }

    /// How its functions are called.
    pub(crate) fn convention(&self) -> CallConv {
        CallConv::triple_default(self.shared.isa.triple())
    }

    /// Compiles a function with the body that `write` builds; its address, or `None` if it cannot
    /// be compiled.
    pub(crate) fn compile(
        &self,
        parameters: usize,
        write: impl FnOnce(&mut FunctionBuilder<'_>) -> Option<()>,
    ) -> Option<usize> {
        let mut owned = self.shared.module.lock().ok()?;
        let module = owned.0.as_mut()?;
        let signature = self.signature(parameters);
        let id = module.declare_anonymous_function(&signature).ok()?;
        let mut context = module.make_context();
        context.func = Function::with_name_signature(UserFuncName::user(0, id.as_u32()), signature);
        let mut function_context = FunctionBuilderContext::new();
        let mut builder = FunctionBuilder::new(&mut context.func, &mut function_context);
        write(&mut builder)?;
        builder.seal_all_blocks();
        builder.finalize(module.target_config());
        module.define_function(id, &mut context).ok()?;
        let bytes = context.compiled_code().map_or(0, |code| code.code_buffer().len());
        if bytes > CODE_BYTES_MAX {
            return None;
        }
        module.finalize_definitions().ok()?;
        Some(module.get_finalized_function(id) as usize)
    }
}
