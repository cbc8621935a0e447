//! What options mean in a world: the radix, the forms of exchanges and the shape that its reducers plan with.

use crate::ascend::{Device, GROUPS_RUN, backend, groups_run};
use crate::error::{Error, Result};
use crate::kernel::Chip;
use crate::plan::{
    Choices, DType, Form, Layout, Machine, Reach, Request, Shape, TensorSpec, choose,
};
use crate::reduce::options::{InServer, Options, Reduction, ScalarExchange};
use crate::reduce::world::World;

impl Options {
    /// Settles what is left open, for tensors of these types and sizes, where ranks read each other's memory as far as `reach`.
    pub(in crate::reduce) fn choose(
        &self,
        world: &World,
        tensors: &[TensorSpec],
        reach: Reach,
    ) -> Result<Choices> {
        let mut layouts = Vec::new();
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let of_type = tensors.iter().filter(|t| self.wire.of(t) == dtype);
            let counts: Vec<u64> = of_type.map(|tensor| tensor.count).collect();
            if !counts.is_empty() {
                layouts.push(Layout::new(dtype, &counts)?);
            }
        }
        let machine = self.machine(world, reach)?;
        let request = Request {
            radix: Some(self.radix).filter(|&radix| radix != Options::AUTO_RADIX),
            placement: self.placement,
            exchange: self.exchange,
            owned_above: match self.scalars {
                // The parts of a tensor have no owner in common.
                _ if self.in_server == InServer::Shards => Some(u64::MAX),
                ScalarExchange::Auto => None,
                ScalarExchange::Gathered => Some(u64::MAX),
                ScalarExchange::Owned => Some(0),
            },
        };
        choose(self.shape(world), &layouts, &machine, &request)
    }

    /// What the cost model knows, within what this processor and its library can do.
    fn machine(&self, world: &World, reach: Reach) -> Result<Machine> {
        let device = world.device();
        let machine = self.known_machine(device)?;
        let groups = groups_run(device)?;
        if self.exchange == Some(Form::Group) && !groups {
            return Err(Error::unsupported(format!(
                "exchange is group: {GROUPS_RUN}, and not here, on {}",
                device.soc_name()?
            )));
        }
        let reach = self.used(reach.min(machine.reach), world);
        if self.exchange == Some(Form::Shared) && reach == Reach::None {
            if let Some(why) = world.why_less().filter(|_| machine.reach != Reach::None) {
                return Err(Error::unsupported(format!("exchange is shared: {why}")));
            }
            return Err(Error::unsupported(format!(
                "exchange is shared: on {} no rank of {} servers of {} can read the memory of another one",
                device.soc_name()?,
                world.servers(),
                world.locals()
            )));
        }
        // On a 910A HcclAlltoAllV takes whole clusters of four devices only, and two of them are a server (its interface reference).
        let parts_of_clusters =
            Chip::named(&device.soc_name()?)?.arch() == FIRST_ARCH && world.locals() != 8;
        Ok(Machine {
            groups: machine.groups && groups,
            reach,
            all_to_all: machine.all_to_all.filter(|_| !parts_of_clusters),
            ..machine
        })
    }

    fn known_machine(&self, device: &Device) -> Result<Machine> {
        match &self.machine {
            Some(machine) => Ok(machine.clone()),
            None => machine_of(device),
        }
    }

    /// Whose memory ranks can read by its address ([`Form::Shared`]).
    ///
    /// Collective.
    pub(crate) fn reach(&self, world: &World) -> Result<Reach> {
        let known = self.known_machine(world.device())?.reach;
        let reach = world.reach(self.create_timeout)?;
        Ok(self.used(reach.min(known), world))
    }

    /// What of it is of use.
    fn used(&self, reach: Reach, world: &World) -> Reach {
        match reach {
            Reach::Server if self.shape(world).locals == 1 => Reach::None,
            reach => reach,
        }
    }

    /// How many parts of a tensor the ranks of a server hold.
    pub(in crate::reduce) fn shards(&self, world: &World) -> u32 {
        match self.in_server {
            InServer::Shards => world.locals(),
            InServer::Mean | InServer::Sum | InServer::Reduced => 1,
        }
    }

    /// Whether rounds of AdaSum merge servers.
    pub(in crate::reduce) fn merges_servers(&self, world: &World) -> bool {
        self.reduction == Reduction::Adasum && world.servers() > 1
    }

    /// Servers and ranks as the plan sees them: each part of a tensor for itself.
    pub(in crate::reduce) fn shape(&self, world: &World) -> Shape {
        Shape {
            locals: world.locals() / self.shards(world),
            ..world.shape()
        }
    }
}

/// The architecture of 910A.
const FIRST_ARCH: u32 = 1001;

/// The preset for a device: the mock's, or by the name of the chip; that of the 910B for chips without one.
fn machine_of(device: &Device) -> Result<Machine> {
    if backend()?.name == "mock" {
        return Ok(Machine::mock());
    }
    let name = device.soc_name()?;
    Ok(if name.starts_with("Ascend910_93") {
        Machine::ascend_a3()
    } else if Chip::named(&name)?.arch() == FIRST_ARCH {
        Machine::ascend_910a()
    } else {
        Machine::ascend_910b()
    })
}
