//! Which libraries to load, decided from what the environment and the machine say. Pure: no loading, no probing.

use std::path::PathBuf;

use crate::error::{Error, ErrorKind, Result};

/// Whose libraries fill the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The vendor's CANN, on real devices.
    Cann,
    /// The mock of ACL and HCCL that this crate brings, on the processor.
    Mock,
}

impl Kind {
    /// The name that `ADASUM_BACKEND` uses.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cann => "cann",
            Kind::Mock => "mock",
        }
    }
}

/// The facts that the choice depends on.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// `ADASUM_BACKEND`.
    pub(super) wish: Option<String>,
    /// The library that is in the process already, and its file.
    pub(super) loaded: Option<(Kind, PathBuf)>,
    /// `ADASUM_CANN_HOME`.
    pub(super) cann_home: Option<PathBuf>,
    /// `ASCEND_HOME_PATH` and `ASCEND_TOOLKIT_HOME`, those that are set.
    pub(super) toolkits: Vec<PathBuf>,
    /// Whether the machine has a davinci device.
    pub(super) has_device: bool,
}

/// A place that libraries can come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// The process, which has them already.
    Loaded,
    /// The `lib64` folder of a toolkit, or a folder that holds them.
    Home(PathBuf),
    /// The search path of the loader.
    LoaderPath,
    /// The mock that is embedded in this crate.
    EmbeddedMock,
}

/// The sources to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// Sources in their order; the first that is there is taken.
    pub(super) sources: Vec<Source>,
    /// The kind that the user insists on.
    pub(super) only: Option<Kind>,
}

/// Chooses the sources, by the rules of the module `load`.
pub(super) fn choose(facts: &Facts) -> Result<Choice> {
    let only = wish(facts.wish.as_deref())?;
    if let (Some(only), Some((kind, path))) = (only, &facts.loaded)
        && only != *kind
    {
        return Err(Error::new(
            ErrorKind::InvalidState,
            format!(
                "ADASUM_BACKEND={} was asked for, but {} is already in this process ({})",
                only.name(),
                kind.name(),
                path.display()
            ),
        ));
    }
    Ok(Choice {
        sources: sources(facts, only),
        only,
    })
}

fn wish(variable: Option<&str>) -> Result<Option<Kind>> {
    match variable.unwrap_or_default() {
        "" | "auto" => Ok(None),
        "cann" => Ok(Some(Kind::Cann)),
        "mock" => Ok(Some(Kind::Mock)),
        other => Err(Error::invalid(format!(
            "ADASUM_BACKEND={other:?} is not one of auto, cann, mock"
        ))),
    }
}

fn sources(facts: &Facts, only: Option<Kind>) -> Vec<Source> {
    if facts.loaded.is_some() {
        return vec![Source::Loaded];
    }
    if only == Some(Kind::Mock) {
        return vec![Source::EmbeddedMock];
    }
    if let Some(home) = &facts.cann_home {
        return vec![Source::Home(home.clone())];
    }
    let mut sources: Vec<Source> = facts.toolkits.iter().cloned().map(Source::Home).collect();
    sources.push(Source::LoaderPath);
    // Training on a processor by mistake is worse than an error: the mock is no choice where there may be a device.
    let mock = cfg!(feature = "mock");
    if mock && only.is_none() && facts.toolkits.is_empty() && !facts.has_device {
        sources.push(Source::EmbeddedMock);
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(change: impl FnOnce(&mut Facts)) -> Vec<Source> {
        let mut facts = Facts::default();
        change(&mut facts);
        choose(&facts).unwrap().sources
    }

    fn home(path: &str) -> Source {
        Source::Home(path.into())
    }

    #[test]
    fn a_machine_without_anything_runs_the_mock() {
        assert_eq!(chosen(|_| ()), [Source::LoaderPath, Source::EmbeddedMock]);
        let auto = chosen(|facts| facts.wish = Some("auto".to_owned()));
        assert_eq!(auto, [Source::LoaderPath, Source::EmbeddedMock]);
    }

    #[test]
    fn a_device_or_a_toolkit_excludes_the_mock() {
        assert_eq!(
            chosen(|facts| facts.has_device = true),
            [Source::LoaderPath]
        );
        let toolkits = chosen(|facts| facts.toolkits = vec!["/a".into(), "/b".into()]);
        assert_eq!(toolkits, [home("/a"), home("/b"), Source::LoaderPath]);
    }

    #[test]
    fn the_home_that_is_named_is_the_only_place() {
        let sources = chosen(|facts| {
            facts.cann_home = Some("/cann".into());
            facts.toolkits = vec!["/a".into()];
        });
        assert_eq!(sources, [home("/cann")]);
    }

    #[test]
    fn what_is_loaded_comes_first() {
        for kind in [Kind::Cann, Kind::Mock] {
            let sources = chosen(|facts| {
                facts.loaded = Some((kind, "/lib/libascendcl.so".into()));
                facts.cann_home = Some("/cann".into());
                facts.has_device = true;
            });
            assert_eq!(sources, [Source::Loaded]);
        }
    }

    #[test]
    fn a_wish_decides_and_meets_what_is_loaded() {
        let mut facts = Facts {
            wish: Some("mock".to_owned()),
            has_device: true,
            ..Facts::default()
        };
        let choice = choose(&facts).unwrap();
        assert_eq!(choice.sources, [Source::EmbeddedMock]);
        assert_eq!(choice.only, Some(Kind::Mock));

        facts.loaded = Some((Kind::Cann, "/usr/libascendcl.so".into()));
        let error = choose(&facts).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
        assert!(error.to_string().contains("/usr/libascendcl.so"), "{error}");

        facts.wish = Some("cann".to_owned());
        assert_eq!(choose(&facts).unwrap().sources, [Source::Loaded]);
        facts.loaded = None;
        assert_eq!(choose(&facts).unwrap().sources, [Source::LoaderPath]);
    }

    #[test]
    fn an_unknown_wish_lists_the_known_ones() {
        let facts = Facts {
            wish: Some("gpu".to_owned()),
            ..Facts::default()
        };
        let error = choose(&facts).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(
            error.to_string(),
            "ADASUM_BACKEND=\"gpu\" is not one of auto, cann, mock"
        );
    }
}
