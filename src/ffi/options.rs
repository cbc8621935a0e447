//! The object that choices are set in, one by one, so that new ones never change a struct.

use std::ffi::c_char;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::arguments::{not_null, required, text};
use super::guard::{destroy, guard};
use super::status::{Fault, adasum_status};
use crate::plan::mindspore::Level;
use crate::reduce::Settings;

/// Choices of worlds and reducers; made by adasum_options_create with the defaults. They must be the same on all ranks,
/// except for scale, create_timeout and stall_timeout. May be used from any thread, by several at once.
#[allow(non_camel_case_types, reason = "the name that C sees")]
pub struct adasum_options(Mutex<Settings>);

impl adasum_options {
    /// What `options` says, the defaults for NULL.
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
    guard("adasum_options_create", || {
        let out = not_null(out, "out")?;
        let options = Box::new(adasum_options(Mutex::new(Settings::default())));
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out.write(Box::into_raw(options)) };
        Ok(())
    })
}

/// Ends options. Worlds and reducers that were made with them keep what they need. NULL does nothing.
///
/// # Safety
/// `options` is NULL or came from adasum_options_create, was not destroyed, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_options_destroy(options: *mut adasum_options) {
    destroy("adasum_options_destroy", || {
        if !options.is_null() {
            // SAFETY: made by adasum_options_create and given back once, as promised.
            drop(unsafe { Box::from_raw(options) });
        }
    });
}

/// Takes over what the environment says; what is set later with a setter wins. A variable that is not set or empty
/// changes nothing.
///
///   ADASUM_PROFILE             paper, mindspore
///   ADASUM_REDUCTION           adasum, mean, sum
///   ADASUM_IN_SERVER           mean, sum, reduced, shards
///   ADASUM_DEVICES_PER_SERVER  ranks of a server
///   ADASUM_RADIX               auto, 2 to 8
///   ADASUM_PLACEMENT           hierarchical, columns
///   ADASUM_EXCHANGE            auto, batch, pairwise
///   ADASUM_SCALARS             auto, gathered, owned
///   ADASUM_MACHINE             910A, 910B, A3, mock
///   ADASUM_WIRE                native, f32
///   ADASUM_BUCKET_BYTES        bytes
///   ADASUM_PIPELINE_DEPTH      1 to 64
///   ADASUM_ZERO_TOL            at least 0, below 1
///   ADASUM_OVERFLOW            report, vote
///   ADASUM_BARRIER             0, 1
///   ADASUM_CHECKSUM            0, 1
///   ADASUM_ALLOW_PLAIN_MEAN    0, 1
///   ADASUM_CREATE_TIMEOUT_MS   milliseconds
///   ADASUM_STALL_TIMEOUT_MS    milliseconds
///   ADASUM_BOOST_CONFIG        a file as for adasum_options_load_boost at level O2; read last
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
        Ok(settings.load_boost(Path::new(path), Level::named(level))?)
    };
    // SAFETY: as promised by the caller.
    unsafe { set("adasum_options_load_boost", options, change) }
}

/// Runs a setter.
///
/// # Safety
/// `options` is NULL or live.
pub(super) unsafe fn set(
    function: &'static str,
    options: *mut adasum_options,
    change: impl FnOnce(&mut Settings) -> Result<(), Fault>,
) -> adasum_status {
    guard(function, || {
        // SAFETY: as promised by the caller.
        let options = unsafe { required(options, "options") }?;
        change(&mut options.lock())
    })
}
