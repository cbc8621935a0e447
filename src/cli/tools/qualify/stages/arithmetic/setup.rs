//! What kernels run with.

use crate::ascend::{Device, Stream};
use crate::kernel::Kernels;

pub(crate) struct Setup {
    pub(crate) device: Device,
    pub(crate) stream: Stream,
    pub(crate) kernels: Kernels,
}
