//! What a machine can do, for the cost model.

use serde::{Deserialize, Serialize};

use super::cost::{Links, Traffic};
use super::{Form, Forms, Shape};

/// One kind of link of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Seconds from starting a step to its first byte.
    pub latency: f64,
    /// Bytes per second one way.
    pub bandwidth: f64,
    /// Whether every peer has a link of its own with this bandwidth; otherwise all peers share it.
    pub mesh: bool,
}

/// Whose memory the kernels of a rank can read by its address ([`Form::Shared`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// Nobody's.
    #[default]
    None,
    /// That of the ranks of the same server.
    Server,
    /// That of all ranks.
    All,
}

/// A machine: its links, memory and arithmetic, per rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name for reports.
    pub name: String,
    /// To ranks of the same server.
    pub local: Link,
    /// To ranks of other servers.
    pub remote: Link,
    /// Seconds for each further message of one step.
    pub message: f64,
    /// Bytes per second that kernels read and write in device memory.
    pub memory: f64,
    /// Seconds for an operation of the vector unit on one fp32 element, all cores together (`plan::gram_operations`).
    pub operation: f64,
    /// Seconds that `HcclAlltoAllV` in a server takes before data moves: 0 but on 910A, where it gathers all counts first, for
    /// which the host waits, with all that the stream holds (hcomm, alltoall_operator.cc:438). A2 does so too where the devices of a
    /// server do not form one mesh, which no cluster here has. `None` where it cannot be used.
    pub all_to_all: Option<f64>,
    /// Whether group calls run: A2, A3 and 950 from CANN 9.0.
    pub groups: bool,
    /// Whose memory a rank can read by its address.
    #[serde(default)]
    pub reach: Reach,
    /// Whether HCCL's executors move the data: sends and receives are copied through the communicator's buffers on both
    /// sides, and a batch sends to one peer after another. The mock does neither.
    pub staged: bool,
}

impl Machine {
    /// The machine of a name that [`Machine::NAMES`] lists.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "910A" => Some(Machine::ascend_910a()),
            "910B" => Some(Machine::ascend_910b()),
            "A3" => Some(Machine::ascend_a3()),
            "mock" => Some(Machine::mock()),
            _ => None,
        }
    }

    /// The names of [`Machine::named`].
    pub const NAMES: [&str; 4] = ["910A", "910B", "A3", "mock"];

    /// Atlas 800-9000: two meshes of four 910A a server with PCIe between them, 100 Gb/s per NPU outside.
    ///
    /// The bandwidth in the server is the effective one of a step with all eight; latencies are assumed.
    pub fn ascend_910a() -> Self {
        Machine {
            name: "910A".to_owned(),
            local: Link {
                latency: 15e-6,
                bandwidth: 10e9,
                mesh: true,
            },
            remote: Link {
                latency: 20e-6,
                bandwidth: 12.5e9,
                mesh: false,
            },
            message: 2e-6,
            memory: 1.2e12,
            operation: 0.49e-12,
            all_to_all: Some(100e-6),
            groups: false,
            reach: Reach::None,
            staged: true,
        }
    }

    /// Atlas 800T A2: a full mesh of eight 910B a server, 200 Gb/s per NPU outside. Latencies are assumed.
    pub fn ascend_910b() -> Self {
        Machine {
            name: "910B".to_owned(),
            local: Link {
                latency: 10e-6,
                bandwidth: 28e9,
                mesh: true,
            },
            remote: Link {
                latency: 20e-6,
                bandwidth: 25e9,
                mesh: false,
            },
            message: 2e-6,
            memory: 1.6e12,
            operation: 0.18e-12,
            all_to_all: Some(0.0),
            groups: true,
            reach: Reach::Server,
            staged: true,
        }
    }

    /// Dies of an A3 in one supernode: the same fabric in and between servers. Latencies are assumed.
    pub fn ascend_a3() -> Self {
        let fabric = |latency| Link {
            latency,
            bandwidth: 196e9,
            mesh: false,
        };
        Machine {
            name: "A3".to_owned(),
            local: fabric(8e-6),
            remote: fabric(10e-6),
            message: 2e-6,
            memory: 1.6e12,
            operation: 0.18e-12,
            all_to_all: Some(0.0),
            groups: true,
            reach: Reach::All,
            staged: true,
        }
    }

    /// Ranks on the cores of one machine over the mock: one memory for all.
    pub fn mock() -> Self {
        let memory = |latency| Link {
            latency,
            bandwidth: 5e9,
            mesh: false,
        };
        Machine {
            name: "mock".to_owned(),
            local: memory(30e-6),
            remote: memory(30e-6),
            message: 10e-6,
            // As for messages: what ranks share is the memory, and buckets of many do not stay in the caches.
            memory: 5e9,
            // A core does 16 elements at a time at 5 GHz; eight ranks share one.
            operation: 0.1e-9,
            all_to_all: Some(0.0),
            groups: true,
            reach: Reach::All,
            staged: false,
        }
    }

    /// The forms of a plan that `asked` leaves open: with these no exchange is slower than with others that run here, but for
    /// small ones in a server where an all-to-all takes time before data moves ([`choose`](super::choose) weighs that).
    ///
    /// Where a rank meets one peer in a step, as between a power of two of servers at radix 2, a batch is as good as a group.
    pub fn forms(&self, asked: Option<Form>, shape: Shape, radix: u32) -> Forms {
        let best = |several_peers: bool| match self.groups && several_peers {
            true => Form::Group,
            false => Form::Batch,
        };
        let pairs = radix == 2 && shape.servers.is_power_of_two();
        let in_server = match asked {
            Some(form @ (Form::AllToAll | Form::Shared)) => form,
            Some(form) => return Forms::of(form),
            None if self.all_to_all.is_some() => Form::AllToAll,
            None => best(shape.locals > 2),
        };
        Forms {
            in_server,
            across: match (asked, self.reach) {
                (Some(Form::Shared), Reach::All) => Form::Shared,
                _ => best(shape.servers > 2 && !pairs),
            },
            records: best(shape.size() > 2),
        }
    }

    /// Seconds of an exchange of vectors.
    pub(super) fn exchange(&self, links: &Links, forms: Forms) -> f64 {
        self.transfers(&links.local, &self.local, forms.in_server)
            + self.transfers(&links.remote, &self.remote, forms.across)
    }

    fn transfers(&self, traffic: &Traffic, link: &Link, form: Form) -> f64 {
        if traffic.peers == 0 {
            return 0.0;
        }
        let peers = traffic.peers as f64;
        let busier = traffic.sent.max(traffic.received) as f64;
        // Into a buffer and out of one, each a read and a write. An all-to-all copies one part while it moves another.
        let copies = match self.staged {
            true => 4.0 / self.memory,
            false => 0.0,
        };
        let at_once = || {
            let bytes = match link.mesh {
                true => traffic.largest as f64,
                false => busier,
            };
            link.latency + (peers - 1.0) * self.message + bytes / link.bandwidth
        };
        match form {
            Form::AllToAll => self.all_to_all.unwrap_or(0.0) + at_once(),
            Form::Batch if self.staged => {
                peers * link.latency + busier * (1.0 / link.bandwidth + copies)
            }
            Form::Batch | Form::Group => at_once() + busier * copies,
            // What is read is as long on its way as what is sent; nothing is copied on it.
            Form::Shared => at_once(),
            // One direction at a time, one peer at a time.
            Form::Pairwise => {
                let both = (traffic.sent + traffic.received) as f64;
                2.0 * peers * link.latency + both * (1.0 / link.bandwidth + copies)
            }
        }
    }

    /// Seconds of an all-gather: across servers by doubling, then in the server; there at once where everyone has a link to
    /// everyone, else by doubling, too.
    pub(super) fn gather(&self, links: &Links) -> f64 {
        let doubling = |traffic: &Traffic, link: &Link| {
            traffic.messages as f64 * link.latency + traffic.sent as f64 / link.bandwidth
        };
        let local = match &links.local {
            traffic if self.local.mesh && traffic.largest > 0 && traffic.sent > 0 => {
                let peers = traffic.sent / traffic.largest;
                let further = (peers - 1) as f64 * self.message;
                let at_once =
                    self.local.latency + further + traffic.largest as f64 / self.local.bandwidth;
                at_once.min(doubling(traffic, &self.local))
            }
            traffic => doubling(traffic, &self.local),
        };
        local + doubling(&links.remote, &self.remote)
    }

    /// Bytes of gathered scalars from which owners pay off: where moving them takes as long as the further
    /// exchange with its messages.
    pub fn owned_above(&self, shape: Shape) -> u64 {
        let (link, peers) = if shape.servers > 1 {
            (&self.remote, shape.size())
        } else {
            (&self.local, shape.locals)
        };
        let locals = f64::from(shape.locals);
        // Seconds for each byte that a rank gathers in all.
        let in_server = match self.local.mesh {
            _ if shape.locals == 1 => 0.0,
            true => 1.0 / locals / self.local.bandwidth,
            false => (1.0 - 1.0 / locals) / self.local.bandwidth,
        };
        let across = match shape.servers {
            1 => 0.0,
            _ => 1.0 / locals / self.remote.bandwidth,
        };
        let further = match self.staged && !self.groups {
            true => f64::from(peers) * link.latency,
            false => link.latency + f64::from(peers) * self.message,
        };
        let bytes = further / (in_server + across);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, and a machine's figures are positive"
        )]
        let bytes = bytes as u64;
        bytes
    }
}
