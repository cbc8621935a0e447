//! Vendor handles that may go from thread to thread.

/// An opaque pointer of the vendor's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handle<T>(pub(super) T);

// SAFETY: the pointer is never followed here, only handed to the library that made it, and ACL lets any thread use a
// handle while the context it was made in is current there ("aclrtSetCurrentContext": one context, several threads).
// Every call of this module makes that context current first.
unsafe impl<T> Send for Handle<T> {}

// SAFETY: as above; the runtime guards streams, events and binaries itself, and a call that uses a communicator holds
// the lock of that communicator, because HCCL wants such calls one at a time.
unsafe impl<T> Sync for Handle<T> {}
