//! What crosses between two ranks: one type from the plan to the vendor's call.

/// Which way something crosses, seen from this rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From this rank to its peer.
    Send,
    /// From the peer to this rank.
    Receive,
}

/// One send or one receive.
///
/// A plan has transfers of ranges, a stage transfers of places in buffers, and [`ascend`](crate::ascend) takes transfers of
/// [`Span`](crate::ascend::Span)s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer<T> {
    /// Which way it goes.
    pub direction: Direction,
    /// The rank on the other side.
    pub peer: u32,
    /// What crosses.
    pub part: T,
}

impl<T> Transfer<T> {
    /// Sends `part` to rank `peer`.
    pub fn send(peer: u32, part: T) -> Self {
        let direction = Direction::Send;
        Transfer {
            direction,
            peer,
            part,
        }
    }

    /// Receives `part` from rank `peer`.
    pub fn receive(peer: u32, part: T) -> Self {
        let direction = Direction::Receive;
        Transfer {
            direction,
            peer,
            part,
        }
    }

    /// Whether it goes from this rank to its peer.
    pub fn is_send(&self) -> bool {
        self.direction == Direction::Send
    }

    /// A transfer in the same direction, with another part, for which the peer is rank `peer`.
    pub fn with<U>(&self, peer: u32, part: U) -> Transfer<U> {
        Transfer {
            direction: self.direction,
            peer,
            part,
        }
    }
}
