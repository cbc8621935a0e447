//! Kernel binaries and their launches.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use super::buffer::Span;
use super::check::check;
use super::device::Device;
use super::handle::Handle;
use super::stream::{Keep, Stream, keep};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::sys::Backend;
use crate::sys::acl::{
    aclrtArgsHandle, aclrtBinHandle, aclrtFuncHandle, aclrtParamHandle, aclrtStream,
};

/// A loaded kernel binary. Wraps `aclrtBinaryLoadFromFile` and, when nothing uses it any more, `aclrtBinaryUnLoad`.
#[derive(Debug, Clone)]
pub struct Module(Arc<Inner>);

/// What modules, functions and streams share.
#[derive(Debug)]
struct Inner {
    device: Device,
    binary: Handle<aclrtBinHandle>,
}

impl Module {
    /// Loads the binary of file `path` on `device`.
    ///
    /// # Errors
    /// If the file is missing or not a binary for this device.
    pub fn load(device: &Device, path: &Path) -> Result<Module> {
        let absolute = path
            .canonicalize()
            .map_err(|error| Error::new(ErrorKind::Io, format!("{}: {error}", path.display())))?;
        let name = CString::new(absolute.as_os_str().as_bytes())
            .map_err(|_| Error::invalid(format!("{} has a zero byte", path.display())))?;
        let backend = device.ready()?;
        let mut binary = aclrtBinHandle(null_mut());
        let (name, options) = (name.as_ptr(), null_mut());
        // SAFETY: a C string that outlives the call, no options, and a live local to write one handle to.
        unsafe {
            check!(
                backend
                    .acl
                    .aclrtBinaryLoadFromFile(name, options, &mut binary)
            )
        }
        .context(|| path.display())?;
        Ok(Module(Arc::new(Inner {
            device: device.clone(),
            binary: Handle(binary),
        })))
    }

    /// The kernel `name` of this binary. Wraps `aclrtBinaryGetFunction`.
    ///
    /// # Errors
    /// If there is none.
    pub fn function(&self, name: &str) -> Result<Function> {
        let text = CString::new(name)
            .map_err(|_| Error::invalid(format!("kernel name {name:?} has a zero byte")))?;
        let backend = self.0.device.ready()?;
        let mut function = aclrtFuncHandle(null_mut());
        let (binary, text) = (self.0.binary.0, text.as_ptr());
        // SAFETY: a loaded binary, a C string that outlives the call, and a live local to write one handle to.
        unsafe {
            check!(
                backend
                    .acl
                    .aclrtBinaryGetFunction(binary, text, &mut function)
            )
        }
        .context(|| format!("kernel {name}"))?;
        Ok(Function {
            module: Arc::clone(&self.0),
            function: Handle(function),
            name: name.into(),
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let unloaded = self.device.ready().and_then(|backend| {
            // SAFETY: loaded by this object; streams keep it while queued launches use it.
            unsafe { check!(backend.acl.aclrtBinaryUnLoad(self.binary.0)) }
        });
        if let Err(error) = unloaded {
            log::warn!("kernel binary on {:?}: {error}", self.device);
        }
    }
}

/// One kernel of a [`Module`], which it keeps loaded.
#[derive(Debug, Clone)]
pub struct Function {
    module: Arc<Inner>,
    function: Handle<aclrtFuncHandle>,
    name: Arc<str>,
}

impl Function {
    /// Name of the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// One argument of a kernel: eight bytes.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// Device memory: its address.
    Span(&'a Span),
    /// Device memory with addresses in it, and what they point to: the kernel reaches both.
    Table {
        /// The argument.
        table: &'a Span,
        /// The memory behind the addresses.
        behind: &'a [Span],
    },
    /// A number.
    Value(u64),
}

impl<'a> Argument<'a> {
    /// All device memory that the kernel reaches through it.
    fn spans(self) -> impl Iterator<Item = &'a Span> {
        let (own, behind) = match self {
            Argument::Span(span) => (Some(span), [].as_slice()),
            Argument::Table { table, behind } => (Some(table), behind),
            Argument::Value(_) => (None, [].as_slice()),
        };
        own.into_iter().chain(behind)
    }
}

impl Stream {
    /// Runs `function` on `blocks` cores with `arguments`. Wraps `aclrtKernelArgsInit`, `aclrtKernelArgsAppend`,
    /// `aclrtKernelArgsFinalize` and `aclrtLaunchKernelWithConfig`.
    ///
    /// Number and meaning of the arguments, and the memory that numbers among them point to, are an agreement with
    /// the kernel that this call cannot check.
    ///
    /// # Errors
    /// If `blocks` is 0, something is another device's, or a call fails.
    pub fn launch(
        &self,
        function: &Function,
        blocks: u32,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        if blocks == 0 {
            let message = format!(
                "kernel {}: a launch needs at least one block",
                function.name
            );
            return Err(Error::invalid(message));
        }
        let device = &function.module.device;
        self.device().require_same(device, "the kernel")?;
        let spans = || arguments.iter().flat_map(|argument| argument.spans());
        self.require_spans(spans())?;
        let module: Arc<dyn Keep> = function.module.clone();
        let used = spans().filter_map(keep).chain([module]);
        self.enqueue(used, |backend, stream| {
            launch(backend, stream, function, blocks, arguments)
        })
        .context(|| format!("kernel {}", function.name))
    }
}

/// The argument list belongs to the thread until the launch, so nothing else may come in between.
fn launch(
    backend: &Backend,
    stream: aclrtStream,
    function: &Function,
    blocks: u32,
    arguments: &[Argument<'_>],
) -> Result<()> {
    let kernel = function.function.0;
    let mut list = aclrtArgsHandle(null_mut());
    // SAFETY: a loaded kernel and a live local to write one handle to.
    unsafe { check!(backend.acl.aclrtKernelArgsInit(kernel, &mut list)) }?;
    for argument in arguments {
        let mut value = match argument {
            Argument::Span(span) | Argument::Table { table: span, .. } => span.address(),
            Argument::Value(value) => *value,
        };
        let value: *mut c_void = (&raw mut value).cast();
        let mut slot = aclrtParamHandle(null_mut());
        // SAFETY: eight bytes are copied from a live local during the call.
        unsafe {
            check!(
                backend
                    .acl
                    .aclrtKernelArgsAppend(list, value, size_of::<u64>(), &mut slot)
            )
        }?;
    }
    // SAFETY: the list was made above on this thread.
    unsafe { check!(backend.acl.aclrtKernelArgsFinalize(list)) }?;
    let (options, reserved) = (null_mut(), null_mut());
    // SAFETY: live handles, no options; the stream keeps the binary and all spans until it is synchronised.
    unsafe {
        check!(
            backend
                .acl
                .aclrtLaunchKernelWithConfig(kernel, blocks, stream, options, list, reserved)
        )
    }
}
