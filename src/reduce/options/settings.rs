//! All that a program may choose about reducers and worlds, from setters, a boost file or the environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Context as _, Error, ErrorKind, Result};
use crate::plan::mindspore::{Boost, BoostConfig, Context, Level};
use crate::plan::{Form, MAX_RADIX, Machine, Placement};
use crate::reduce::options::fusion::Fusion;
use crate::reduce::options::{
    DeltaForm, InServer, MeanOptions, Options, Reduction, ScalarExchange, Wire,
};

/// Options that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// The paper's algorithm in the fastest arrangement.
    #[default]
    Paper,
    /// The surroundings that MindSpore's cells ask for: see [`Options::mindspore`].
    MindSpore,
}

/// What becomes of NaN and infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The tensors that have one are non-finite on all ranks afterwards and can be asked for.
    #[default]
    Report,
    /// Beside that, the ranks can vote before they reduce: see [`OverflowVote`](crate::reduce::helpers::overflow::OverflowVote).
    Vote,
}

/// All choices, before a world settles what is left open.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// What reducers are made with.
    pub options: Options,
    /// Options that go together; applied over `options`.
    pub profile: Profile,
    /// What MindSpore's checks are to see; `None` for what follows from the world.
    pub context: Option<Context>,
    /// A boost configuration that was read.
    pub boost: Option<Boost>,
    /// Ranks a server, in worlds that leave it open; `None` for what the rank table or the ranks' hosts say.
    pub devices_per_server: Option<u32>,
    /// What ranks step on between the two halves of a delta step.
    pub delta_form: DeltaForm,
    /// What becomes of NaN and infinity.
    pub overflow: Overflow,
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
        }
    }

    /// Takes over what the boost file `path` says at `level`: whether AdaSum is on (else the mean is taken), the ranks of a
    /// server, and where the mean's list of gradients is cut.
    ///
    /// # Errors
    /// If the file cannot be read, and as [`BoostConfig::resolve`].
    pub fn load_boost(&mut self, path: &Path, level: Level) -> Result<()> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::new(ErrorKind::Io, format!("{}: {error}", path.display())))?;
        let boost = BoostConfig::parse(&text)
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

    /// Takes over what the variables of [`VARIABLES`] say that are set and not empty.
    ///
    /// # Errors
    /// Names the variable and what it may be; nothing is taken over then.
    pub fn load_environment(&mut self) -> Result<()> {
        self.load(|name| std::env::var_os(name))
    }

    fn load(&mut self, lookup: impl Fn(&str) -> Option<OsString>) -> Result<()> {
        let mut settings = self.clone();
        for variable in &VARIABLES {
            let Some(value) = lookup(variable.name).filter(|value| !value.is_empty()) else {
                continue;
            };
            let applied = match value.to_str() {
                Some(text) => (variable.apply)(&mut settings, text),
                None => Ok(false),
            };
            if !applied.context(|| variable.name)? {
                return Err(Error::invalid(format!(
                    "{} is {value:?}, must be {}",
                    variable.name, variable.values
                )));
            }
        }
        if let Some(path) = lookup(BOOST_FILE).filter(|value| !value.is_empty()) {
            settings
                .load_boost(&PathBuf::from(path), Level::O2)
                .context(|| BOOST_FILE)?;
        }
        *self = settings;
        Ok(())
    }
}

/// Names a boost file, which is read at level O2 after all other variables.
pub const BOOST_FILE: &str = "ADASUM_BOOST_CONFIG";

/// A variable that sets something.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub values: &'static str,
    /// What holds where it is not set.
    pub default: &'static str,
    /// What it decides.
    pub help: &'static str,
    /// Sets it; `false` if the value is none of `values`.
    apply: fn(&mut Settings, &str) -> Result<bool>,
}

/// The variables that [`Settings::load_environment`] reads.
#[rustfmt::skip]
pub const VARIABLES: [Variable; 19] = [
    Variable { name: "ADASUM_PROFILE", values: "paper or mindspore", default: "paper",
        help: "options that go together", apply: |s, v| named(v, &[("paper", Profile::Paper), ("mindspore", Profile::MindSpore)], &mut s.profile) },
    Variable { name: "ADASUM_REDUCTION", values: "adasum, mean or sum", default: "adasum",
        help: "how servers are combined", apply: |s, v| named(v, &[("adasum", Reduction::Adasum), ("mean", Reduction::Mean), ("sum", Reduction::Sum)], &mut s.options.reduction) },
    Variable { name: "ADASUM_IN_SERVER", values: "mean, sum, reduced or shards", default: "mean",
        help: "how the ranks of a server are combined before that",
        apply: |s, v| named(v, &[("mean", InServer::Mean), ("sum", InServer::Sum), ("reduced", InServer::Reduced), ("shards", InServer::Shards)], &mut s.options.in_server) },
    Variable { name: "ADASUM_DEVICES_PER_SERVER", values: "a number above 0", default: "what the rank table or the hosts say",
        help: "ranks of a server", apply: |s, v| number(v, 1, u32::MAX, |n| s.devices_per_server = Some(n)) },
    Variable { name: "ADASUM_RADIX", values: "auto or 2 to 8", default: "2",
        help: "the most subtrees that a round merges",
        apply: |s, v| match v {
            "auto" => { s.options.radix = Options::AUTO_RADIX; Ok(true) }
            _ => number(v, 2, MAX_RADIX, |n| s.options.radix = n),
        } },
    Variable { name: "ADASUM_PLACEMENT", values: "hierarchical or columns", default: "hierarchical",
        help: "where vectors lie while servers are merged", apply: |s, v| named(v, &[("hierarchical", Placement::Hierarchical), ("columns", Placement::Columns)], &mut s.options.placement) },
    Variable { name: "ADASUM_EXCHANGE", values: "auto, alltoall, batch, group or pairwise", default: "auto",
        help: "how exchanges are given to HCCL",
        apply: |s, v| { s.options.exchange = Form::named(v); Ok(v == "auto" || s.options.exchange.is_some()) } },
    Variable { name: "ADASUM_SCALARS", values: "auto, gathered or owned", default: "auto",
        help: "how the scalars of a round are summed",
        apply: |s, v| named(v, &[("auto", ScalarExchange::Auto), ("gathered", ScalarExchange::Gathered), ("owned", ScalarExchange::Owned)], &mut s.options.scalars) },
    Variable { name: "ADASUM_MACHINE", values: "910A, 910B, A3 or mock", default: "by the name of the chip",
        help: "what the cost model assumes", apply: |s, v| { s.options.machine = Machine::named(v); Ok(s.options.machine.is_some()) } },
    Variable { name: "ADASUM_WIRE", values: "native or f32", default: "native",
        help: "element type between ranks", apply: |s, v| named(v, &[("native", Wire::Native), ("f32", Wire::F32)], &mut s.options.wire) },
    Variable { name: "ADASUM_BUCKET_BYTES", values: "a number above 0", default: "26214400",
        help: "bytes of tensors that share a fused buffer", apply: |s, v| number(v, 1, u64::MAX, |n| s.options.bucket_bytes = n) },
    Variable { name: "ADASUM_PIPELINE_DEPTH", values: "1 to 64", default: "4",
        help: "fused buffers under way at a time", apply: |s, v| number(v, 1, 64, |n| s.options.pipeline_depth = n) },
    Variable { name: "ADASUM_ZERO_TOL", values: "a number of at least 0 and below 1", default: "0",
        help: "relative squared norm up to which a vector counts as zero",
        apply: |s, v| match v.parse() {
            Ok(tolerance) if (0.0..1.0).contains(&tolerance) => { s.options.zero_tol = tolerance; Ok(true) }
            _ => Ok(false),
        } },
    Variable { name: "ADASUM_OVERFLOW", values: "report or vote", default: "report",
        help: "what becomes of NaN and infinity", apply: |s, v| named(v, &[("report", Overflow::Report), ("vote", Overflow::Vote)], &mut s.overflow) },
    Variable { name: "ADASUM_BARRIER", values: "0 or 1", default: "0",
        help: "whether a reduction ends with a barrier", apply: |s, v| switch(v, &mut s.options.barrier) },
    Variable { name: "ADASUM_CHECKSUM", values: "0 or 1", default: "0",
        help: "whether messages and results are compared between ranks", apply: |s, v| switch(v, &mut s.options.checksum) },
    Variable { name: "ADASUM_ALLOW_PLAIN_MEAN", values: "0 or 1", default: "0",
        help: "whether a single server of several ranks may give a plain mean", apply: |s, v| switch(v, &mut s.options.allow_plain_mean) },
    Variable { name: "ADASUM_CREATE_TIMEOUT_MS", values: "milliseconds above 0", default: "300000",
        help: "limit of joining a world and of the warm-up of a reducer",
        apply: |s, v| number(v, 1, u64::MAX, |n| s.options.create_timeout = Duration::from_millis(n)) },
    Variable { name: "ADASUM_STALL_TIMEOUT_MS", values: "milliseconds above 0", default: "1800000",
        help: "time without movement after which a reduction has failed",
        apply: |s, v| number(v, 1, u64::MAX, |n| s.options.stall_timeout = Duration::from_millis(n)) },
];

fn named<T: Clone>(value: &str, names: &[(&str, T)], place: &mut T) -> Result<bool> {
    let found = names.iter().find(|(name, _)| *name == value);
    if let Some((_, meant)) = found {
        place.clone_from(meant);
    }
    Ok(found.is_some())
}

fn number<T: std::str::FromStr + PartialOrd>(
    value: &str,
    least: T,
    most: T,
    set: impl FnOnce(T),
) -> Result<bool> {
    match value.parse::<T>() {
        Ok(number) if (least..=most).contains(&number) => {
            set(number);
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn switch(value: &str, place: &mut bool) -> Result<bool> {
    named(value, &[("0", false), ("1", true)], place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(variables: &[(&str, &str)]) -> Result<Settings> {
        let mut settings = Settings::default();
        settings.load(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })?;
        Ok(settings)
    }

    #[test]
    fn every_variable_sets_its_option() {
        let settings = loaded(&[
            ("ADASUM_PROFILE", "mindspore"),
            ("ADASUM_REDUCTION", "sum"),
            ("ADASUM_IN_SERVER", "reduced"),
            ("ADASUM_DEVICES_PER_SERVER", "4"),
            ("ADASUM_RADIX", "auto"),
            ("ADASUM_PLACEMENT", "columns"),
            ("ADASUM_EXCHANGE", "pairwise"),
            ("ADASUM_SCALARS", "owned"),
            ("ADASUM_MACHINE", "A3"),
            ("ADASUM_WIRE", "f32"),
            ("ADASUM_BUCKET_BYTES", "77"),
            ("ADASUM_PIPELINE_DEPTH", "3"),
            ("ADASUM_ZERO_TOL", "1e-6"),
            ("ADASUM_OVERFLOW", "vote"),
            ("ADASUM_BARRIER", "1"),
            ("ADASUM_CHECKSUM", "1"),
            ("ADASUM_ALLOW_PLAIN_MEAN", "1"),
            ("ADASUM_CREATE_TIMEOUT_MS", "1500"),
            ("ADASUM_STALL_TIMEOUT_MS", "2500"),
        ])
        .unwrap();
        let options = &settings.options;
        assert_eq!(settings.profile, Profile::MindSpore);
        assert_eq!(options.reduction, Reduction::Sum);
        assert_eq!(options.in_server, InServer::Reduced);
        assert_eq!(settings.devices_per_server, Some(4));
        assert_eq!(options.radix, Options::AUTO_RADIX);
        assert_eq!(options.placement, Placement::Columns);
        assert_eq!(options.exchange, Some(Form::Pairwise));
        assert_eq!(options.scalars, ScalarExchange::Owned);
        assert_eq!(
            options.machine.as_ref().map(|m| m.name.as_str()),
            Some("A3")
        );
        assert_eq!(options.wire, Wire::F32);
        assert_eq!((options.bucket_bytes, options.pipeline_depth), (77, 3));
        assert_eq!(options.zero_tol, 1e-6);
        assert_eq!(settings.overflow, Overflow::Vote);
        assert!(options.barrier && options.checksum && options.allow_plain_mean);
        assert_eq!(options.create_timeout, Duration::from_millis(1500));
        assert_eq!(options.stall_timeout, Duration::from_millis(2500));
    }

    #[test]
    fn a_value_that_is_none_is_named_with_those_that_are() {
        for variable in &VARIABLES {
            let error = loaded(&[(variable.name, "some other")]).unwrap_err();
            let wanted = format!(
                "{} is \"some other\", must be {}",
                variable.name, variable.values
            );
            assert_eq!(error.to_string(), wanted);
            // Empty is not set.
            assert!(loaded(&[(variable.name, "")]).is_ok());
        }
        let error = loaded(&[("ADASUM_RADIX", "9")]).unwrap_err().to_string();
        assert!(error.contains("auto or 2 to 8"), "{error}");
        let error = loaded(&[(BOOST_FILE, "/nowhere.json")]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("ADASUM_BOOST_CONFIG: /nowhere.json: "),
            "{error}"
        );
    }

    #[test]
    fn defaults_are_those_that_the_table_tells() {
        let default = Settings::default();
        for variable in &VARIABLES {
            let mut settings = Settings::default();
            if (variable.apply)(&mut settings, variable.default).unwrap() {
                assert_eq!(format!("{settings:?}"), format!("{default:?}"));
            } else {
                // Sentences, where the default is no value.
                assert!(variable.default.contains(' '), "{}", variable.name);
            }
        }
    }
}
