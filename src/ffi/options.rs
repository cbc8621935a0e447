//! Options: set one by one and by name, so that a new one changes no struct and no function.

use std::ffi::c_char;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::arguments::{not_null, required, text};
use super::catch::catch;
use super::handle::{destroy, give};
use super::status::{CallError, adasum_status};
use crate::plan::mindspore::BoostLevel;
use crate::reduce::Settings;

/// Choices of worlds and reducers; made by adasum_options_create with the defaults. They must be the same on all ranks,
/// except for scale, padded, create_timeout_ms and stall_timeout_ms. May be used from any thread, by several at once.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_options(Mutex<Settings>);

impl adasum_options {
    /// The settings of `options`; the defaults for NULL.
    ///
    /// # Safety
    /// `options` is NULL or live.
    pub(super) unsafe fn get(options: *const adasum_options) -> Settings {
        // SAFETY: as promised by the caller.
        let options = unsafe { options.as_ref() };
        options
            .map(|options| options.lock().clone())
            .unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Settings> {
        // Each setter writes one field or replaces all, so a panic leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives options with the defaults, whatever the environment says; end them with adasum_options_destroy.
///
/// # Safety
/// `out` points to a pointer that may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_create(out: *mut *mut adasum_options) -> adasum_status {
    catch("adasum_options_create", || {
        let out = not_null(out, "out")?;
        let options = adasum_options(Mutex::new(Settings::default()));
        // SAFETY: not null, and the caller lets us write there.
        unsafe { give(options, out) };
        Ok(())
    })
}

/// Ends options. Worlds and reducers that were made with them keep what they need. NULL does nothing.
///
/// # Safety
/// `options` is NULL or came from adasum_options_create, was not destroyed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_destroy(options: *mut adasum_options) {
    // SAFETY: as promised by the caller.
    unsafe { destroy("adasum_options_destroy", options) };
}

/// Sets the option `name` to what `value` says. Numbers are written with a point and without spaces, lists with commas.
/// Those with a star can be set by the environment: see adasum_options_load_environment.
///
/// OPTIONS
///
/// Errors: ADASUM_INVALID_ARGUMENT names the option and what it may be, or the options there are; nothing is changed then.
///
/// # Safety
/// `options` is NULL or live; `name` and `value` are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_set(
    options: *mut adasum_options,
    name: *const c_char,
    value: *const c_char,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        // SAFETY: as promised by the caller.
        let name = unsafe { text(name, "name") }?;
        // SAFETY: as promised by the caller.
        let value = unsafe { text(value, "value") }?;
        Ok(settings.set(name, value)?)
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_set", options, change) }
}

/// Takes over what the environment says: the variable ADASUM_NAME sets the option `name`, for those that
/// adasum_options_set marks with a star. ADASUM_BOOST_CONFIG names a file as for adasum_options_load_boost at level O2, which is
/// read last. What is set later wins. A variable that is not set or empty changes nothing.
///
/// Errors: ADASUM_INVALID_ARGUMENT names the variable and what it may be; the options are as before then.
///
/// # Safety
/// `options` is NULL or live; no other thread changes the environment meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_load_environment(
    options: *mut adasum_options,
) -> adasum_status {
    let change = |settings: &mut Settings| Ok(settings.load_environment()?);
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_load_environment", options, change) }
}

/// Takes over a boost configuration: the JSON file `path` with MindSpore's boost_config_dict, at `level` ("O0", "O1" or
/// "O2"; another name counts as "O0", as there). AdaSum on or off becomes the reduction (off: the mean),
/// common.device_number the ranks of a server, common.gradient_split_groups the fusion of mean reducers. What is
/// set later wins. Reducers then check the world as boost does.
///
/// Errors: ADASUM_IO if the file cannot be read, ADASUM_INVALID_ARGUMENT for what is wrong in it, ADASUM_UNSUPPORTED if
/// another algorithm of boost is on; the options are as before then.
///
/// # Safety
/// `options` is NULL or live; `path` and `level` are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_load_boost(
    options: *mut adasum_options,
    path: *const c_char,
    level: *const c_char,
) -> adasum_status {
    let change = |settings: &mut Settings| {
        // SAFETY: as promised by the caller.
        let path = unsafe { text(path, "path") }?;
        // SAFETY: as promised by the caller.
        let level = unsafe { text(level, "level") }?;
        Ok(settings.load_boost(Path::new(path), BoostLevel::named(level))?)
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_load_boost", options, change) }
}

/// Changes options, for the export `function`.
///
/// # Safety
/// `options` is NULL or live.
unsafe fn set(
    function: &'static str,
    options: *mut adasum_options,
    change: impl FnOnce(&mut Settings) -> Result<(), CallError>,
) -> adasum_status {
    catch(function, || {
        // SAFETY: as promised by the caller.
        let options = unsafe { required(options, "options") }?;
        change(&mut options.lock())
    })
}
