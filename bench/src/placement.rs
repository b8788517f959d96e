//! Placements: which cores the processes of a measurement may use.

use anyhow::Context as _;
use rustix::thread::CpuSet;

/// Which cores the subject and the load generator use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Nothing is pinned. Each program chooses its runtime for all cores, as for its users.
    AllCores,
    /// The subject is pinned to one core and the load generator to another, so that the work of one
    /// core is compared.
    OneCore,
}

impl Placement {
    pub(crate) const ALL: [Self; 2] = [Self::AllCores, Self::OneCore];

    /// What follows the other parameters in the name of a point.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::AllCores => "",
            Self::OneCore => ", one core",
        }
    }
}

/// The role of a process in a measurement, which decides its core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seat {
    /// The measured process.
    Subject,
    /// A server behind a measured gateway.
    Upstream,
}

/// The cores of this machine that the benchmark may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cores {
    /// The number of cores.
    pub(crate) count: usize,
    all: CpuSet,
    subject: usize,
    upstream: usize,
    generator: usize,
}

/// The cores of one process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Affinity {
    All(CpuSet),
    One(usize),
}

impl Cores {
    /// The cores that this process may use.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let all = rustix::thread::sched_getaffinity(None)?;
        let cores = (0..CpuSet::MAX_CPU).filter(|&core| all.is_set(core));
        let cores: Vec<_> = cores.collect();
        let count = cores.len();
        let mut cores = cores.into_iter();
        let subject = cores.next().context("no core to run on")?;
        let generator = cores.next().unwrap_or(subject);
        let upstream = cores.next().unwrap_or(generator);
        Ok(Self {
            count,
            all,
            subject,
            upstream,
            generator,
        })
    }

    pub(crate) fn of(&self, seat: Seat, placement: Placement) -> Affinity {
        match (placement, seat) {
            (Placement::AllCores, _) => Affinity::All(self.all),
            (Placement::OneCore, Seat::Subject) => Affinity::One(self.subject),
            (Placement::OneCore, Seat::Upstream) => Affinity::One(self.upstream),
        }
    }

    /// Moves the load generator, which is the calling thread, to its cores.
    pub(crate) fn place_generator(&self, placement: Placement) -> anyhow::Result<()> {
        let affinity = match placement {
            Placement::AllCores => Affinity::All(self.all),
            Placement::OneCore => Affinity::One(self.generator),
        };
        affinity.take()
    }
}

impl Affinity {
    /// Moves the calling thread to these cores. Processes that it starts inherit them.
    pub(crate) fn take(self) -> anyhow::Result<()> {
        let set = match self {
            Self::All(set) => set,
            Self::One(core) => {
                let mut set = CpuSet::new();
                set.set(core);
                set
            }
        };
        rustix::thread::sched_setaffinity(None, &set).context("cannot choose a core")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_core_pins_processes() {
        let cores = Cores::find().unwrap();
        for seat in [Seat::Subject, Seat::Upstream] {
            let everywhere = cores.of(seat, Placement::AllCores);
            assert!(matches!(everywhere, Affinity::All(_)));
            let pinned = cores.of(seat, Placement::OneCore);
            assert!(matches!(pinned, Affinity::One(_)));
        }
    }

    #[test]
    fn the_generator_gets_all_cores_back() {
        let cores = Cores::find().unwrap();
        cores.place_generator(Placement::OneCore).unwrap();
        assert_eq!(Cores::find().unwrap().count, 1);
        cores.place_generator(Placement::AllCores).unwrap();
        assert_eq!(Cores::find().unwrap().count, cores.count);
    }
}
