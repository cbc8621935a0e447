//! One device of this process.

use std::cell::Cell;
use std::ffi::c_void;
use std::fmt;
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};

use super::check::{self, check};
use super::handle::Handle;
use crate::error::{Context as _, Error, ErrorKind, Result};
use crate::sys::acl::{
    ACL_ERROR_REPEAT_INITIALIZE, aclDeviceInfo, aclError, aclrtContext, aclrtMemAttr,
};
use crate::sys::{self, Backend};

/// An open device. Wraps `aclrtSetDevice` and, when the last clone is dropped, `aclrtResetDevice`.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    id: i32,
    backend: &'static Backend,
    context: Handle<aclrtContext>,
}

thread_local! {
    /// The context that this module last made current on this thread.
    static CURRENT: Cell<*mut c_void> = const { Cell::new(null_mut()) };
}

impl Device {
    /// Loads the libraries, initialises ACL (once per process) and opens device `id`.
    ///
    /// # Errors
    /// If the libraries cannot be loaded or there is no such device.
    pub fn open(id: i32) -> Result<Device> {
        let backend = initialised()?;
        // SAFETY: takes a number by value.
        unsafe { check!(backend.acl.aclrtSetDevice(id)) }?;
        let mut context = aclrtContext(null_mut());
        // SAFETY: writes one handle to a live local.
        let found = unsafe { check!(backend.acl.aclrtGetCurrentContext(&mut context)) };
        let device = Device(Arc::new(Inner {
            id,
            backend,
            context: Handle(context),
        }));
        // Only now: dropping the device gives it back.
        found?;
        CURRENT.set(context.0);
        Ok(device)
    }

    /// The device that is current on the calling thread, as another library may have set it. Wraps `aclrtGetDevice`.
    ///
    /// # Errors
    /// If the thread has none.
    pub fn current() -> Result<Device> {
        let backend = initialised()?;
        let mut id = 0;
        // SAFETY: writes one number to a live local.
        unsafe { check!(backend.acl.aclrtGetDevice(&mut id)) }
            .context(|| "this thread has no current device (aclrtSetDevice)")?;
        Device::open(id)
    }

    /// Number of devices that this process sees. Wraps `aclrtGetDeviceCount`.
    ///
    /// # Errors
    /// If the libraries cannot be loaded or the call fails.
    pub fn count() -> Result<u32> {
        let backend = initialised()?;
        let mut count = 0;
        // SAFETY: writes one number to a live local.
        unsafe { check!(backend.acl.aclrtGetDeviceCount(&mut count)) }?;
        Ok(count)
    }

    /// The number it was opened with.
    pub fn id(&self) -> i32 {
        self.0.id
    }

    /// Makes this device the current one of the calling thread, whatever was current before. All calls of this
    /// module do so themselves. Wraps `aclrtSetCurrentContext`.
    ///
    /// # Errors
    /// If the call fails.
    pub fn make_current(&self) -> Result<()> {
        let backend = self.0.backend;
        let context = self.0.context.0;
        // Somebody else in this process may have changed it meanwhile, so having set it once is not enough.
        if CURRENT.get() == context.0 {
            let mut current = aclrtContext(null_mut());
            // SAFETY: writes one handle to a live local.
            let code = unsafe { backend.acl.aclrtGetCurrentContext(&mut current) };
            if code == aclError(0) && current == context {
                return Ok(());
            }
        }
        // SAFETY: the context lives as long as its device, which `self` keeps open.
        unsafe { check!(backend.acl.aclrtSetCurrentContext(context)) }?;
        CURRENT.set(context.0);
        Ok(())
    }

    /// Number of cores that run vector kernels. Wraps `aclGetDeviceCapability`: where a device has no separate vector
    /// cores, its AI cores.
    ///
    /// # Errors
    /// If the call fails or the device has neither.
    pub fn vector_cores(&self) -> Result<u32> {
        use aclDeviceInfo as Info;
        for info in [
            Info::ACL_DEVICE_INFO_VECTOR_CORE_NUM,
            Info::ACL_DEVICE_INFO_AI_CORE_NUM,
        ] {
            let cores = self.capability(info)?;
            if cores > 0 {
                return u32::try_from(cores).map_err(|_| self.no_cores());
            }
        }
        Err(self.no_cores())
    }

    fn capability(&self, info: aclDeviceInfo) -> Result<i64> {
        let backend = self.ready()?;
        let id = u32::try_from(self.0.id)
            .map_err(|_| Error::invalid(format!("device {} is negative", self.0.id)))?;
        let mut value = 0;
        // SAFETY: writes one number to a live local.
        unsafe { check!(backend.acl.aclGetDeviceCapability(id, info, &mut value)) }?;
        Ok(value)
    }

    fn no_cores(&self) -> Error {
        let message = format!("device {} reports no usable number of cores", self.0.id);
        Error::new(ErrorKind::Acl, message)
    }

    /// Name of the chip, for example `Ascend910B1`. Wraps `aclrtGetSocName`.
    ///
    /// # Errors
    /// If the library gives none.
    pub fn soc_name(&self) -> Result<String> {
        let backend = self.ready()?;
        // SAFETY: takes nothing and returns null or a static string.
        let name = check::text(unsafe { backend.acl.aclrtGetSocName() });
        if name.is_empty() {
            return Err(Error::new(
                ErrorKind::Acl,
                "aclrtGetSocName returned no name",
            ));
        }
        Ok(name)
    }

    /// Bytes of device memory, (free, all of it); `None` where the library cannot say. Wraps `aclrtGetMemInfo`.
    ///
    /// # Errors
    /// If the call fails.
    pub fn memory(&self) -> Result<Option<(usize, usize)>> {
        let backend = self.ready()?;
        let Ok(get) = backend.acl.aclrtGetMemInfo else {
            return Ok(None);
        };
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers to live locals.
        let code = unsafe { get(aclrtMemAttr::ACL_HBM_MEM, &mut free, &mut total) };
        check::acl(backend, "aclrtGetMemInfo", code)?;
        Ok(Some((free, total)))
    }

    /// Waits for all work on the device. Wraps `aclrtSynchronizeDevice`.
    ///
    /// # Errors
    /// If a task failed.
    pub fn synchronize(&self) -> Result<()> {
        let backend = self.ready()?;
        // SAFETY: takes nothing.
        unsafe { check!(backend.acl.aclrtSynchronizeDevice()) }
    }

    /// Makes the device current and returns the functions to use on it.
    pub(super) fn ready(&self) -> Result<&'static Backend> {
        self.make_current()?;
        Ok(self.0.backend)
    }

    /// An error unless `other` is the same device.
    pub(super) fn require_same(&self, other: &Device, what: &str) -> Result<()> {
        if self.0.id == other.0.id {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{what} belongs to device {}, not to device {}",
            other.0.id, self.0.id
        )))
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.0.id)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let backend = self.backend;
        if CURRENT.get() == self.context.0.0 {
            CURRENT.set(null_mut());
        }
        // SAFETY: takes a number by value; this device was set once for this object.
        if let Err(error) = unsafe { check!(backend.acl.aclrtResetDevice(self.id)) } {
            log::warn!("device {}: {error}", self.id);
        }
    }
}

/// The libraries, with ACL initialised. ACL is never finalised: that would end it for the whole process, and somebody
/// else may use it.
fn initialised() -> Result<&'static Backend> {
    static DONE: OnceLock<Result<()>> = OnceLock::new();
    let backend = sys::backend()?;
    DONE.get_or_init(|| {
        // SAFETY: null means no configuration file.
        let code = unsafe { backend.acl.aclInit(std::ptr::null()) };
        if code.0 == ACL_ERROR_REPEAT_INITIALIZE {
            return Ok(());
        }
        check::acl(backend, "aclInit", code)
    })
    .clone()?;
    Ok(backend)
}
