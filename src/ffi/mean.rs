//! Mean and sparse reducers.

use std::ffi::{c_char, c_void};

use super::arguments::{
    adasum_tensor, aligned, choice, dtype, flag, invalid, not_null, span, tensors, text,
};
use super::catch::catch;
use super::handle::Inner;
use super::options::adasum_options;
use super::reducer::{AnyReducer, adasum_reducer, create};
use super::status::{CallError, adasum_status};
use super::world::adasum_world;
use crate::plan::TensorSpec;
use crate::reduce::{IndexType, MeanReducer, Rows, SparseReducer, SparseSpec, World};

/// Plans the mean (with reduction = sum: the sum) of the gradients of `count` tensors over the ranks of the option group:
/// MindSpore's DistributedGradReducer. fp32 between ranks, multiplied by 1 / degree, rounded once. Tensors with
/// ADASUM_TENSOR_LAYERWISE are left as they are. Reduce with adasum_reducer_reduce. Of the options reduction, degree, fusion,
/// group, create_timeout_ms and stall_timeout_ms count.
///
/// Collective among the ranks of the group, which call it with the same tensors and options (NULL: the defaults); others must
/// not call. Waits for them, at most the creation timeout. End it with adasum_reducer_destroy.
/// Errors: ADASUM_MISMATCH on all ranks of the group if they do not agree; ADASUM_INVALID_ARGUMENT for a group that this
/// rank is not in and a degree below 1.
///
/// # Safety
/// `world` and `options` are live or NULL; `tensors` points to `count` tensors with valid names; `out` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adasum_reducer_create_mean(
    world: *const adasum_world,
    tensors: *const adasum_tensor,
    count: usize,
    options: *const adasum_options,
    out: *mut *mut adasum_reducer,
) -> adasum_status {
    catch("adasum_reducer_create_mean", || {
        // SAFETY: as promised by the caller.
        let settings = unsafe { adasum_options::get(options) };
        // SAFETY: as promised by the caller.
        let tensors = unsafe { self::tensors(tensors, count) }?;
        let (list, specs) = tensors.for_mean();
        let make = |world: &World, _: &[TensorSpec]| {
            let reducer = MeanReducer::new(world, &list, &settings.mean_options())?;
            Ok(AnyReducer::Mean(reducer))
        };
        // SAFETY: as promised by the caller.
        unsafe { create(world, specs, out, make) }
    })
}

/// Row numbers of 32 bits.
pub const ADASUM_INDEX_I32: i32 = 0;
/// Row numbers of 64 bits.
pub const ADASUM_INDEX_I64: i32 = 1;

/// Prepares the gathering of a sparse gradient over the ranks of the option group: rows of `width` elements of type `dtype`
/// with numbers of type `index` (ADASUM_INDEX_I32 or ADASUM_INDEX_I64). With `exact` 1 every rank brings `rows` rows in
/// every call; with 0 any number up to that. Values are multiplied by 1 / degree unless reduction is sum.
///
/// Collective among the ranks of the group, as adasum_reducer_create_mean. Device memory: room for the rows of all ranks.
///
/// # Safety
/// `world` and `options` are live or NULL; `name` is a C string; `out` may be written to.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "only scalars cross")]
pub unsafe extern "C" fn adasum_reducer_create_sparse(
    world: *const adasum_world,
    name: *const c_char,
    width: u64,
    dtype: i32,
    index: i32,
    rows: u64,
    exact: i32,
    options: *const adasum_options,
    out: *mut *mut adasum_reducer,
) -> adasum_status {
    catch("adasum_reducer_create_sparse", || {
        // SAFETY: as promised by the caller.
        let settings = unsafe { adasum_options::get(options) };
        // SAFETY: as promised by the caller.
        let name = unsafe { text(name, "name") }?;
        let known = [
            ("ADASUM_INDEX_I32", ADASUM_INDEX_I32, IndexType::I32),
            ("ADASUM_INDEX_I64", ADASUM_INDEX_I64, IndexType::I64),
        ];
        let spec = SparseSpec {
            name: name.to_owned(),
            width,
            dtype: self::dtype(dtype, "dtype")?,
            index: choice(index, "index", &known)?,
            rows: match flag(exact, "exact")? {
                true => Rows::Exactly(rows),
                false => Rows::UpTo(rows),
            },
        };
        let make = |world: &World, _: &[TensorSpec]| {
            let reducer = SparseReducer::new(world, &spec, &settings.mean_options())?;
            Ok(AnyReducer::Sparse(reducer, spec))
        };
        // SAFETY: as promised by the caller.
        unsafe { create(world, Vec::new(), out, make) }
    })
}

/// Gathers the rows of all ranks of the group, in the order of the ranks: `rows` numbers from `indices` on, and as many rows
/// of elements from `values` on (either may be NULL for no rows). The results lie in memory of the reducer until its
/// next call: `out_rows` rows, their numbers at `out_indices`, their elements at `out_values`. A number that several
/// ranks have occurs several times. Sparse reducers.
///
/// Collective among the group. With `exact` stream-ordered: what `stream` is given next sees the rows. Without, it waits once
/// until all ranks have told how many rows they bring.
/// Ownership: what is given must not be freed or changed before the work is done.
/// Errors: wrong arguments are refused before anything is enqueued.
///
/// # Safety
/// `reducer` is NULL or live; `indices` and `values` are device memory as described; `stream` as for adasum_reducer_reduce; the
/// rest may be written to.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "only scalars cross")]
pub unsafe extern "C" fn adasum_reducer_gather(
    reducer: *mut adasum_reducer,
    indices: *mut c_void,
    values: *mut c_void,
    rows: u64,
    stream: *mut c_void,
    out_rows: *mut u64,
    out_indices: *mut *mut c_void,
    out_values: *mut *mut c_void,
) -> adasum_status {
    catch("adasum_reducer_gather", || {
        // SAFETY: as promised by the caller.
        let mut inner = unsafe { adasum_reducer::enter(reducer) }?;
        let Inner {
            object, streams, ..
        } = &mut *inner;
        let AnyReducer::Sparse(reducer, spec) = object else {
            return Err(object.wrong());
        };
        let bytes = |row: u64| {
            let too_many = || invalid(format!("rows: {rows} are more than memory can hold"));
            rows.checked_mul(row).ok_or_else(too_many)
        };
        let number = match spec.index {
            IndexType::I32 => 4,
            IndexType::I64 => 8,
        };
        let row = spec.width.saturating_mul(spec.dtype.size());
        let device = &streams.device;
        // SAFETY: as promised by the caller.
        let indices = unsafe { span(device, indices, bytes(number)?, "indices") }?;
        let indices = aligned(indices, number, "indices")?;
        // SAFETY: as promised by the caller.
        let values = unsafe { span(device, values, bytes(row)?, "values") }?;
        let values = aligned(values, spec.dtype.size(), "values")?;
        // SAFETY: as promised by the caller.
        let stream = unsafe { streams.get(stream) }?;
        let out_rows = not_null(out_rows, "out_rows")?;
        let out_indices = not_null(out_indices, "out_indices")?;
        let out_values = not_null(out_values, "out_values")?;
        let gathered = reducer.reduce(&indices, &values, stream)?;
        let address = |address: u64| -> Result<*mut c_void, CallError> {
            let address = usize::try_from(address)
                .map_err(|_| invalid("an address of more than 64 bits".to_owned()))?;
            Ok(std::ptr::without_provenance_mut(address))
        };
        let indices = address(gathered.indices.address())?;
        let values = address(gathered.values.address())?;
        // SAFETY: not null, and the caller lets us write there.
        unsafe { out_rows.write(gathered.rows) };
        // SAFETY: as above.
        unsafe { out_indices.write(indices) };
        // SAFETY: as above.
        unsafe { out_values.write(values) };
        Ok(())
    })
}
