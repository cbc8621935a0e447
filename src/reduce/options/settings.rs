//! All that a program may choose about reducers and worlds, by name, from a boost file or from the environment.

use std::path::Path;

use crate::error::{Context as _, Error, ErrorKind, Result};
use crate::plan::mindspore::{Boost, BoostConfig, BoostLevel, ParallelContext};
use crate::reduce::options::fusion::Fusion;
use crate::reduce::options::{DeltaForm, MeanOptions, Options, Reduction};
use crate::topo;

/// Options that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// The paper's algorithm, without MindSpore's restrictions.
    #[default]
    Paper,
    /// The surroundings that MindSpore's cells ask for: see [`Options::mindspore`].
    MindSpore,
}

/// All choices, before a world settles what is left open.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// What reducers are made with.
    pub options: Options,
    /// Options that go together; applied over `options`.
    pub profile: Profile,
    /// What MindSpore's checks are to see; `None` for what follows from the world.
    pub context: Option<ParallelContext>,
    /// A boost configuration that was read.
    pub boost: Option<Boost>,
    /// Ranks a server, in worlds that leave it open; `None` for what the rank table or the ranks' hosts say.
    pub devices_per_server: Option<u32>,
    /// What ranks step on between the two halves of a delta step.
    pub delta_form: DeltaForm,
    /// The degree of a mean.
    pub degree: Option<i64>,
    /// Which gradients of a mean travel together.
    pub fusion: Fusion,
    /// The ranks of a mean.
    pub group: Option<Vec<u32>>,
}

impl Settings {
    /// The options of mean and sparse reducers.
    pub fn mean_options(&self) -> MeanOptions {
        MeanOptions {
            mean: self.options.reduction != Reduction::Sum,
            degree: self.degree,
            fusion: self.fusion.clone(),
            group: self.group.clone(),
            create_timeout: self.options.create_timeout,
            stall_timeout: self.options.stall_timeout,
        }
    }

    /// Takes over what the boost file `path` says at `level`: whether AdaSum is on (else the mean is taken), the ranks of a
    /// server, and where the mean's list of gradients is cut.
    ///
    /// # Errors
    /// If the file cannot be read, and as [`BoostConfig::resolve`].
    pub fn load_boost(&mut self, path: &Path, level: BoostLevel) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| Error::new(ErrorKind::Io, error.to_string());
        let bytes = topo::read_file(path).map_err(|error| failed(&error))?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|error| failed(&format!("{}: {error}", path.display())))?;
        let boost = BoostConfig::parse(text)
            .and_then(|config| config.resolve(level))
            .context(|| path.display().to_string())?;
        self.options.reduction = match boost.adasum {
            true => Reduction::Adasum,
            false => Reduction::Mean,
        };
        self.devices_per_server = Some(boost.device_number);
        let cuts = boost.gradient_split_groups.iter();
        self.fusion = Fusion::Split(cuts.map(|&cut| cut as usize).collect());
        self.boost = Some(boost);
        Ok(())
    }
}
