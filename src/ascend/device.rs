//! One device of this process, and the context that calls on it are made in.
//!
//! The current context is the thread's, and other libraries set it, too: frameworks work in contexts of their own
//! (`aclrtCreateContext`). Streams and events belong to the context that they were made in, and most calls refuse those of
//! another one. So every call here is made in the device's context, and the thread has its own again afterwards.

use std::fmt;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::check::{self, check};
use super::handle::Handle;
use super::link_type::LinkType;
use super::shared::found;
use super::stream::milliseconds;
use crate::error::{Context as _, Error, ErrorKind, Result};
use crate::sys::acl::{
    ACL_ERROR_REPEAT_INITIALIZE, aclDeviceInfo, aclrtContext, aclrtDevAttr, aclrtFloatOverflowMode,
    aclrtMemAttr,
};
use crate::sys::{self, Backend};

/// A device and one context of it. Clones share it.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    id: i32,
    backend: &'static Backend,
    context: Handle<aclrtContext>,
    /// Whether this object has set the device, and gives it back.
    opened: bool,
}

impl Device {
    /// Loads the libraries, initialises ACL (once per process) and opens device `id`, with its primary context. Wraps
    /// `aclrtSetDevice` and, when the last clone is dropped, `aclrtResetDevice`.
    ///
    /// A context that was current on this thread before is so again afterwards.
    ///
    /// # Errors
    /// If the libraries cannot be loaded or there is no such device.
    pub fn open(id: i32) -> Result<Device> {
        let backend = initialised()?;
        let before = Before::now(backend);
        // SAFETY: takes a number by value.
        unsafe { check!(backend.acl.aclrtSetDevice(id)) }.context(|| format!("device {id}"))?;
        let context = current_context(backend);
        let device = Device(Arc::new(Inner {
            id,
            backend,
            context: Handle(*context.as_ref().unwrap_or(&aclrtContext(null_mut()))),
            opened: true,
        }));
        // Only now: dropping the device gives it back.
        context?;
        before.restore();
        Ok(device)
    }

    /// The device and the context that are current on the calling thread, as another library has set them: that library
    /// keeps the context alive as long as the result is used. Wraps `aclrtGetDevice` and `aclrtGetCurrentContext`.
    ///
    /// # Errors
    /// If the thread has none.
    pub fn current() -> Result<Device> {
        let backend = initialised()?;
        let mut id = 0;
        // SAFETY: writes one number to a live local.
        unsafe { check!(backend.acl.aclrtGetDevice(&mut id)) }
            .context(|| "this thread has no current device (aclrtSetDevice)")?;
        Ok(Device(Arc::new(Inner {
            id,
            backend,
            context: Handle(current_context(backend)?),
            opened: false,
        })))
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

    /// The number by which [`Device::open`] of this process knows the device that has the number `physical` on its server, as
    /// rank tables have it: in a container, and with `ASCEND_RT_VISIBLE_DEVICES`, another one. `None` where the library cannot
    /// say. Wraps `aclrtGetLogicDevIdByPhyDevId`, which gives the number of `aclrtSetDevice`, whatever its name says (the
    /// runtime's page of it).
    ///
    /// # Errors
    /// If the libraries cannot be loaded or this process does not see the device.
    pub fn id_of_physical(physical: i32) -> Result<Option<i32>> {
        let backend = initialised()?;
        let Ok(get) = &backend.acl.aclrtGetLogicDevIdByPhyDevId else {
            return Ok(None);
        };
        let mut id = 0;
        // SAFETY: writes one number to a live local.
        let code = unsafe { get(physical, &mut id) };
        check::acl(backend, "aclrtGetLogicDevIdByPhyDevId", code)
            .context(|| format!("this process does not see physical device {physical}"))?;
        Ok(Some(id))
    }

    /// The number it was opened with.
    pub fn id(&self) -> i32 {
        self.0.id
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

    /// The A3 supernode that the device is in; `None` on other chips, outside of one, and where the library cannot say.
    /// Wraps `aclrtGetDeviceInfo`.
    ///
    /// # Errors
    /// If the chip has no name.
    pub fn supernode(&self) -> Result<Option<u32>> {
        /// What the driver says of a device that is in none.
        const NONE: u32 = u32::MAX;
        let is_a3 = self.soc_name()?.starts_with("Ascend910_93");
        let backend = self.ready()?;
        let (Ok(get), true, Ok(id)) = (
            &backend.acl.aclrtGetDeviceInfo,
            is_a3,
            u32::try_from(self.0.id),
        ) else {
            return Ok(None);
        };
        let mut value = 0;
        // SAFETY: writes one number to a live local.
        let code = unsafe { get(id, aclrtDevAttr::ACL_DEV_ATTR_SUPER_POD_ID, &mut value) };
        let told = check::acl(&backend, "aclrtGetDeviceInfo", code);
        let supernode = told.ok().and_then(|()| u32::try_from(value).ok());
        Ok(supernode.filter(|&supernode| supernode != NONE))
    }

    /// Whether arithmetic gives the largest number in the place of infinity, and 0 in that of NaN; not where the library cannot
    /// say. Wraps `aclrtGetDeviceSatMode`.
    ///
    /// # Errors
    /// If the call fails.
    pub fn saturates(&self) -> Result<bool> {
        let backend = self.ready()?;
        let Ok(get) = &backend.acl.aclrtGetDeviceSatMode else {
            return Ok(false);
        };
        let mut mode = aclrtFloatOverflowMode::ACL_RT_OVERFLOW_MODE_UNDEF;
        // SAFETY: writes one number to a live local.
        let code = unsafe { get(&mut mode) };
        check::acl(&backend, "aclrtGetDeviceSatMode", code)?;
        Ok(mode == aclrtFloatOverflowMode::ACL_RT_OVERFLOW_MODE_SATURATION)
    }

    /// Lets this device reach memory of device `peer` of this machine. Wraps `aclrtDeviceEnablePeerAccess`.
    ///
    /// # Errors
    /// If the library refuses it.
    pub fn enable_access(&self, peer: i32) -> Result<()> {
        if self.id() == peer {
            return Ok(());
        }
        let backend = self.ready()?;
        let enable = found!(backend, aclrtDeviceEnablePeerAccess)?;
        // SAFETY: takes numbers by value.
        let code = unsafe { enable(peer, 0) };
        check::acl(&backend, "aclrtDeviceEnablePeerAccess", code)
    }

    /// What joins this device and device `peer` of this machine; `None` where the library cannot say. Wraps
    /// `aclrtGetDevicesTopo`.
    ///
    /// # Errors
    /// If this process does not see the peer, or the driver cannot say.
    pub fn link_type(&self, peer: i32) -> Result<Option<LinkType>> {
        let backend = self.ready()?;
        let (Ok(get), Ok(own), Ok(peer)) = (
            &backend.acl.aclrtGetDevicesTopo,
            u32::try_from(self.0.id),
            u32::try_from(peer),
        ) else {
            return Ok(None);
        };
        let mut value = 0;
        // SAFETY: writes one number to a live local.
        let code = unsafe { get(own, peer, &mut value) };
        check::acl(&backend, "aclrtGetDevicesTopo", code)?;
        Ok(Some(LinkType(value)))
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
        check::acl(&backend, "aclrtGetMemInfo", code)?;
        Ok(Some((free, total)))
    }

    /// Waits for all work on the device, at most `timeout` where the library knows a limit. Wraps
    /// `aclrtSynchronizeDeviceWithTimeout`, else `aclrtSynchronizeDevice`.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] if work is left then; if a task failed.
    pub fn synchronize(&self, timeout: Duration) -> Result<()> {
        let backend = self.ready()?;
        match &backend.acl.aclrtSynchronizeDeviceWithTimeout {
            Ok(synchronize) => {
                // SAFETY: takes a number by value.
                let code = unsafe { synchronize(milliseconds(timeout)) };
                check::acl(&backend, "aclrtSynchronizeDeviceWithTimeout", code)
            }
            // SAFETY: takes nothing.
            Err(_) => unsafe { check!(backend.acl.aclrtSynchronizeDevice()) },
        }
    }

    /// The functions to use on the device. Its context is current on this thread as long as the result lives.
    pub(super) fn ready(&self) -> Result<Ready> {
        let backend = self.0.backend;
        let before = Before::now(backend);
        let context = self.0.context.0;
        if before.context != Some(context) {
            // SAFETY: the context lives as long as its device: `self` keeps that open, or the caller of `current` does.
            unsafe { check!(backend.acl.aclrtSetCurrentContext(context)) }
                .context(|| format!("the context of device {}", self.0.id))?;
        }
        Ok(Ready {
            backend,
            changed: (before.context != Some(context)).then_some(before),
        })
    }

    /// An error unless `other` is the same device.
    pub(crate) fn require_same(&self, other: &Device, what: &str) -> Result<()> {
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
        if !self.opened {
            return;
        }
        let backend = self.backend;
        let before = Before::now(backend);
        // SAFETY: takes a number by value; this device was set once for this object.
        if let Err(error) = unsafe { check!(backend.acl.aclrtResetDevice(self.id)) } {
            log::warn!("device {}: {error}", self.id);
        }
        // The device may have been this thread's last hold on the context, or another call's.
        if before.context != Some(self.context.0) {
            before.restore();
        }
    }
}

/// The functions of the libraries, in the context of a device.
pub(super) struct Ready {
    backend: &'static Backend,
    /// The thread's own context, if that is another one.
    changed: Option<Before>,
}

impl Deref for Ready {
    type Target = Backend;

    fn deref(&self) -> &Backend {
        self.backend
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        if let Some(before) = self.changed.take() {
            before.restore();
        }
    }
}

/// The context that is current on this thread before a call changes it.
struct Before {
    backend: &'static Backend,
    context: Option<aclrtContext>,
}

impl Before {
    fn now(backend: &'static Backend) -> Self {
        Before {
            backend,
            context: current_context(backend).ok(),
        }
    }

    /// Makes it current again; a thread that had none keeps the new one, as ACL cannot take it away.
    fn restore(self) {
        let (backend, Some(context)) = (self.backend, self.context) else {
            return;
        };
        // SAFETY: it was current on this thread a moment ago, and ACL refuses one that has ended meanwhile.
        let restored = unsafe { check!(backend.acl.aclrtSetCurrentContext(context)) };
        if let Err(error) = restored {
            log::warn!("the context that was current before: {error}");
        }
    }
}

fn current_context(backend: &Backend) -> Result<aclrtContext> {
    let mut context = aclrtContext(null_mut());
    // SAFETY: writes one handle to a live local.
    unsafe { check!(backend.acl.aclrtGetCurrentContext(&mut context)) }?;
    Ok(context)
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
