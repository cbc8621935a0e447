//! Compiles the kernels for an NPU with the CANN toolkit of this machine.

use std::path::PathBuf;

use super::arch::Chip;
use super::binary::{checked, file_name, source_folder};
use super::toolkit::{Compilation, Toolkit, Way};
use crate::cache::TemporaryFolder;
use crate::error::{Error, ErrorKind, Result};

/// A build of the kernels, as `adasum-run build-kernels` makes it.
#[derive(Debug, Clone)]
pub struct Build {
    /// The chip.
    pub chip: Chip,
    /// The folder for the binary; by default the folder in the cache where it is looked for.
    pub folder: Option<PathBuf>,
    /// The way of the toolkit: `bisheng` or `cmake`; by default cmake where the toolkit has the functions.
    pub way: Option<String>,
}

impl Build {
    /// Compiles the kernels with the CANN toolkit that the environment names; `tell` gets each command line.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is no toolkit or it lacks a program, [`ErrorKind::Io`] with all that a
    /// command printed if it failed.
    pub fn run(&self, tell: impl Fn(&str)) -> Result<PathBuf> {
        let toolkit = Toolkit::find(|name| std::env::var_os(name)).map_err(Error::unsupported)?;
        let way = way_of(&toolkit, self.way.as_deref())?;
        let sources = source_folder()?;
        let name = file_name(self.chip.arch());
        let output = self.folder.as_ref().unwrap_or(&sources).join(&name);
        let absolute = std::path::absolute(&output)
            .map_err(|error| Error::new(ErrorKind::Io, format!("{}: {error}", output.display())))?;
        let work = TemporaryFolder::new(&name)?;
        let compilation = Compilation {
            arch: self.chip.arch(),
            soc: self.chip.name().to_owned(),
            sources,
            work: work.path().to_owned(),
            output: absolute.clone(),
        };
        let steps = |step: &super::toolkit::CommandLine| tell(&step.to_string());
        toolkit
            .build(way, &compilation, steps)
            .map_err(|text| Error::new(ErrorKind::Io, text))?;
        checked(absolute, &self.chip)
    }
}

fn way_of(toolkit: &Toolkit, name: Option<&str>) -> Result<Way> {
    match name {
        None => Ok(toolkit.way()),
        Some("bisheng") => Ok(Way::Bisheng),
        Some("cmake") => Ok(Way::Cmake),
        Some(other) => Err(Error::invalid(format!(
            "no way {other} to compile kernels: bisheng or cmake"
        ))),
    }
}

/// The chips to compile for where none is named, by a way as in [`Build`]: one for Atlas A2 and A3 and one of Ascend 950, if
/// the CANN toolkit that the environment names knows them; `tell` gets a sentence for each that it does not know.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if there is no toolkit, or it knows none of them.
pub fn usual_chips(way: Option<&str>, tell: impl Fn(&str)) -> Result<Vec<Chip>> {
    let toolkit = Toolkit::find(|name| std::env::var_os(name)).map_err(Error::unsupported)?;
    let way = way_of(&toolkit, way)?;
    let mut chips = Vec::new();
    for arch in [2201, 3510] {
        let chip = Chip::of_arch(arch)?;
        if toolkit.knows(way, arch, chip.name()) {
            chips.push(chip);
        } else {
            tell(&format!(
                "no kernels for architecture {arch} ({}): the CANN toolkit in {} does not know it; with `--arch {arch}` \
                 it is tried all the same",
                chip.name(),
                toolkit.home().display()
            ));
        }
    }
    if chips.is_empty() {
        return Err(Error::unsupported(format!(
            "the CANN toolkit in {} knows neither Atlas A2 and A3 nor Ascend 950; name an architecture with `--arch`",
            toolkit.home().display()
        )));
    }
    Ok(chips)
}
