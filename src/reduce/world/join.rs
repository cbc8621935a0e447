//! How ranks without a rank table come together: where the environment says, or over a communicator that is there.

use crate::ascend::{Buffer, Comm, DataType, Device, ROOT_INFO_BYTES, RootInfo, Stream};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::kernel::Chip;
use crate::plan::Shape;
use crate::reduce::options::settings::Settings;
use crate::reduce::world::hosts::HOST_BYTES;
use crate::reduce::world::{Work, World, agreement, comm_at, hosts, report, servers_of};
use crate::topo::{Launch, Meeting, Participant, Process, RankTable, Version, host_key};

/// Bytes of what a rank tells: its number in its server and the ranks there, as it was started, and its host.
const TOLD: usize = 8 + HOST_BYTES;
/// Nothing was said about it.
const UNKNOWN: u32 = u32::MAX;

/// What a rank tells the others, or rank 0.
#[derive(Clone, Copy)]
struct RankPlace {
    local_rank: Option<u32>,
    locals: Option<u32>,
    host: [u8; HOST_BYTES],
}

/// Whether the world of a rank table has to be made by root info: HCCL for Ascend 950 reads only tables of version 2.0, with
/// a file that describes the server beside it (hcomm, rank_table_info.cc:26), and that for other chips reads none of these.
pub(super) fn needs_root_info(table: &RankTable, device: &Device) -> Result<bool> {
    const ASCEND_950: u32 = 3510;
    Ok(table.version() == Version::V2_0 || Chip::named(&device.soc_name()?)?.arch() == ASCEND_950)
}

/// Joins the world of `shape` as `rank` with this device, where the environment says that ranks meet.
pub(super) fn by_root_info(
    device: i32,
    shape: Shape,
    rank: u32,
    settings: &Settings,
) -> Result<World> {
    let meeting = Meeting::from_env()
        .context(|| "with this rank table or chip the ranks meet by root info")?;
    let process = Process {
        rank,
        size: shape.size(),
        device,
        local_rank: Some(shape.local(rank)),
        locals: Some(shape.locals),
        meeting,
    };
    World::at_meeting(&process, settings)
}

impl World {
    /// Joins the world that the environment describes: see [`Launch::from_env`].
    ///
    /// Collective: every rank of the job calls it. Servers are those of `settings`, else of the rank table, else of
    /// `LOCAL_WORLD_SIZE`, else of the ranks' hosts. Waits for the others at most the creation timeout of `settings`;
    /// with a rank table as long as HCCL does.
    ///
    /// # Errors
    /// Names the variable that is missing or wrong, or the ranks that did not come.
    pub fn from_environment(settings: &Settings) -> Result<World> {
        match Launch::from_env()? {
            Launch::Table(cluster) => World::of_cluster(&cluster, settings),
            Launch::Process(process) => World::from_process(&process, settings),
        }
    }

    /// Joins the world of the ranks that come to the meeting of `process`, as [`World::from_environment`] does.
    ///
    /// # Errors
    /// As [`World::from_environment`].
    pub fn from_process(process: &Process, settings: &Settings) -> Result<World> {
        report::joining(process.rank, process.size, || {
            World::at_meeting(process, settings)
        })
    }

    fn at_meeting(process: &Process, settings: &Settings) -> Result<World> {
        let Process { rank, size, .. } = *process;
        let device = Device::open(process.device)?;
        let work = Work::new(&device, rank, size)?;
        let place = RankPlace {
            local_rank: process.local_rank,
            locals: process.locals,
            host: hosts::encode(&host_key()),
        };
        let participant = Participant {
            rank,
            size,
            limit: settings.options.create_timeout,
        };
        let answer = process.meeting.meet(participant, &place.bytes(), |all| {
            let shape = agreed_shape(all, settings.devices_per_server)?;
            let root = RootInfo::new(&device)?;
            Ok([&shape.locals.to_le_bytes()[..], root.as_bytes()].concat())
        });
        let answer = answer.context(|| format!("rank {rank} of {size}"))?;
        let (locals, root) = answer
            .split_first_chunk()
            .ok_or_else(|| Error::new(ErrorKind::Io, "rank 0: a short answer"))?;
        let root = RootInfo::from_bytes(root)?;
        let shape = servers_of(size, u32::from_le_bytes(*locals))?;
        World::new(comm_at(&device, &root, size, rank)?, shape, work)
    }

    /// Joins a new world of the ranks of `comm`, which carries what is needed for that and nothing afterwards.
    ///
    /// Collective among the ranks of `comm`. First waits for all work on the device, as operations of a communicator need
    /// an order; nothing may be enqueued on `comm` meanwhile. Servers are those of `settings`, else of the ranks' hosts.
    /// The wait for that work, where the library has one with a limit, and that for each of the two operations last at most the
    /// creation timeout.
    ///
    /// # Errors
    /// As [`World::from_root_info_by_host`]; if rank 0 cannot make root info, on all ranks.
    pub fn from_comm(comm: &Comm, settings: &Settings) -> Result<World> {
        report::joining(comm.rank(), comm.size(), || World::over(comm, settings))
    }

    fn over(comm: &Comm, settings: &Settings) -> Result<World> {
        let (rank, size, limit) = (comm.rank(), comm.size(), settings.options.create_timeout);
        let device = comm.device();
        device
            .synchronize(limit)
            .context(|| format!("rank {rank}: waiting for earlier work on the device"))?;
        let work = Work::new(device, rank, size)?;
        let place = RankPlace {
            local_rank: None,
            locals: None,
            host: hosts::encode(&host_key()),
        };
        let all = agreement::gather_by(comm, &place.bytes(), limit).context(|| {
            format!(
                "rank {rank}: waiting for the hosts of all ranks of {}",
                comm.name()
            )
        })?;
        let all: Vec<Vec<u8>> = all.chunks_exact(TOLD).map(<[u8]>::to_vec).collect();
        let shape = agreed_shape(&all, settings.devices_per_server)?;

        // The first byte says whether there is one: others must not wait for a rank that has failed.
        let mut sealed = [0_u8; 1 + ROOT_INFO_BYTES];
        let made = if rank == 0 {
            RootInfo::new(device).map(Some)
        } else {
            Ok(None)
        };
        if let Ok(Some(root)) = &made {
            sealed[0] = 1;
            sealed[1..].copy_from_slice(root.as_bytes());
        }
        let span = Buffer::from_slice(device, &sealed)?.span();
        let stream = Stream::new(device)?;
        comm.broadcast(&span, DataType::U8, 0, &stream)?;
        stream.synchronize_timeout(limit).context(|| {
            format!(
                "rank {rank}: waiting for root info from rank 0 of {}",
                comm.name()
            )
        })?;
        made?;
        span.read(&mut sealed)?;
        if sealed[0] != 1 {
            return Err(Error::new(
                ErrorKind::Hccl,
                format!(
                    "rank {rank}: rank 0 of {} could not make root info",
                    comm.name()
                ),
            ));
        }
        let root = RootInfo::from_bytes(&sealed[1..])?;
        World::new(comm_at(device, &root, size, rank)?, shape, work)
    }
}

impl RankPlace {
    fn bytes(&self) -> Vec<u8> {
        let number = |value: Option<u32>| value.unwrap_or(UNKNOWN).to_le_bytes();
        [
            &number(self.local_rank)[..],
            &number(self.locals),
            &self.host,
        ]
        .concat()
    }

    fn parse(bytes: &[u8]) -> Option<RankPlace> {
        let (local_rank, rest) = bytes.split_first_chunk()?;
        let (locals, rest) = rest.split_first_chunk()?;
        let number = |bytes| Some(u32::from_le_bytes(bytes)).filter(|&value| value != UNKNOWN);
        Some(RankPlace {
            local_rank: number(*local_rank),
            locals: number(*locals),
            host: rest.try_into().ok()?,
        })
    }
}

/// Servers and ranks of each, from what all ranks told.
fn agreed_shape(all: &[Vec<u8>], wanted: Option<u32>) -> Result<Shape> {
    let places: Option<Vec<RankPlace>> = all.iter().map(|bytes| RankPlace::parse(bytes)).collect();
    let places = places.ok_or_else(|| {
        Error::new(
            ErrorKind::Mismatch,
            "ranks run different versions of this library",
        )
    })?;
    let size = u32::try_from(places.len()).map_err(|_| Error::invalid("too many ranks"))?;
    if let Some(locals) = wanted {
        return servers_of(size, locals);
    }
    if places.iter().all(|rank| rank.locals.is_none()) {
        let hosts: Vec<_> = places.iter().map(|rank| rank.host).collect();
        return hosts::shape(&hosts);
    }
    let first = places[0].locals;
    if let Some((rank, other)) = (0..size)
        .zip(&places)
        .find(|(_, rank)| rank.locals != first)
    {
        let show = |locals: Option<u32>| locals.map_or("not set".to_owned(), |n| n.to_string());
        return Err(Error::unsupported(format!(
            "servers have different numbers of ranks: LOCAL_WORLD_SIZE is {} on rank 0 and {} on rank {rank}",
            show(first),
            show(other.locals)
        )));
    }
    let shape = servers_of(size, first.unwrap_or(1))?;
    let expected = |rank: u32| rank % shape.locals;
    let misplaced = (0..size).zip(&places).find(|(rank, place)| {
        place
            .local_rank
            .is_some_and(|local| local != expected(*rank))
    });
    match misplaced {
        None => Ok(shape),
        Some((rank, place)) => Err(Error::unsupported(format!(
            "the ranks of a server are not consecutive: LOCAL_RANK of rank {rank} is {}, with {} ranks a server it would be {}",
            place.local_rank.unwrap_or_default(),
            shape.locals,
            expected(rank)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(local_rank: Option<u32>, locals: Option<u32>, host: &str) -> Vec<u8> {
        let host = hosts::encode(host);
        RankPlace {
            local_rank,
            locals,
            host,
        }
        .bytes()
    }

    #[test]
    fn servers_are_those_that_are_asked_for_told_or_found() {
        let shape = |servers, locals| Shape::new(servers, locals).unwrap();
        let places: Vec<_> = (0..4)
            .map(|n| rank(Some(n % 2), Some(2), "one host"))
            .collect();
        assert_eq!(agreed_shape(&places, Some(4)).unwrap(), shape(1, 4));
        assert_eq!(agreed_shape(&places, None).unwrap(), shape(2, 2));
        let untold: Vec<_> = ["a", "a", "b", "b"]
            .map(|host| rank(None, None, host))
            .into();
        assert_eq!(agreed_shape(&untold, None).unwrap(), shape(2, 2));
    }

    #[test]
    fn what_ranks_disagree_on_is_named() {
        let says = |all: &[Vec<u8>], wanted: Option<u32>, what: &str| {
            let error = agreed_shape(all, wanted).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        let uneven = [
            rank(Some(0), Some(2), "a"),
            rank(Some(1), Some(2), "a"),
            rank(Some(0), Some(1), "b"),
        ];
        says(
            &uneven,
            None,
            "LOCAL_WORLD_SIZE is 2 on rank 0 and 1 on rank 2",
        );
        says(
            &uneven,
            Some(2),
            "3 ranks are not a whole number of servers of 2",
        );
        let half = [rank(None, Some(1), "a"), rank(None, None, "a")];
        says(&half, None, "1 on rank 0 and not set on rank 1");
        let mixed: Vec<_> = [0, 0, 1, 1]
            .map(|local| rank(Some(local), Some(2), "a"))
            .into();
        says(
            &mixed,
            None,
            "LOCAL_RANK of rank 1 is 0, with 2 ranks a server it would be 1",
        );
        says(&[vec![1, 2, 3]], None, "different versions");
    }
}
