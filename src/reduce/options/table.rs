//! The options by name: what C, C++, Python and the environment set, each with its text.
//!
//! A new option is a field of [`Options`] or [`Settings`], a row here and a line in the test below. Header, page of the
//! environment, errors and the keywords of other languages follow.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Context as _, Error, Result, quote};
use crate::plan::mindspore::{BoostLevel, ParallelContext, ParallelMode};
use crate::plan::{Form, MAX_RADIX, Machine, Placement};
use crate::reduce::options::fusion::Fusion;
use crate::reduce::options::settings::{Profile, Settings};
use crate::reduce::options::{
    DeltaForm, InServer, Options, Overflow, Reduction, ScalarExchange, Wire,
};

/// An option, and how it is written.
pub struct OptionInfo {
    /// The name in all languages.
    pub name: &'static str,
    /// The variable that sets it; none for what only the program can know.
    pub variable: Option<&'static str>,
    /// The values it may have.
    pub values: &'static str,
    /// What holds where it is not set.
    pub default: &'static str,
    /// One sentence for users.
    pub help: &'static str,
    /// Sets it; `None` if the text is none of `values`.
    set: fn(&mut Settings, &str) -> Option<()>,
}

/// Names a boost file, which is read at level O2 after all other variables.
pub const BOOST_FILE: &str = "ADASUM_BOOST_CONFIG";

/// All options.
#[rustfmt::skip]
pub const OPTIONS: [OptionInfo; 30] = [
    OptionInfo { name: "profile", variable: Some("ADASUM_PROFILE"), values: "paper or mindspore", default: "paper",
        help: "options that go together; mindspore checks the world as MindSpore's cells do, with their words, and overrides radix, placement, exchange and barrier",
        set: |s, v| named(v, &[("paper", Profile::Paper), ("mindspore", Profile::MindSpore)], &mut s.profile) },
    OptionInfo { name: "reduction", variable: Some("ADASUM_REDUCTION"), values: "adasum, mean or sum", default: "adasum",
        help: "how servers are combined: AdaSum of the servers' means, or the mean or sum over all ranks",
        set: |s, v| named(v, &[("adasum", Reduction::Adasum), ("mean", Reduction::Mean), ("sum", Reduction::Sum)], &mut s.options.reduction) },
    OptionInfo { name: "in_server", variable: Some("ADASUM_IN_SERVER"), values: "mean, sum, reduced or shards", default: "mean",
        help: "how the ranks of a server are combined before that; reduced: they hold the same gradients, bit for bit; shards: different parts of the same tensors, all of one size. Delta reducers take only mean",
        set: |s, v| named(v, &[("mean", InServer::Mean), ("sum", InServer::Sum), ("reduced", InServer::Reduced), ("shards", InServer::Shards)], &mut s.options.in_server) },
    OptionInfo { name: "devices_per_server", variable: Some("ADASUM_DEVICES_PER_SERVER"), values: "auto or a whole number above 0", default: "auto",
        help: "ranks of a server, in worlds made with these options; auto: what the rank table or the hosts say; 1 makes each rank a server",
        set: |s, v| auto_or(v, |v| within(v, 1, u32::MAX), &mut s.devices_per_server) },
    OptionInfo { name: "radix", variable: Some("ADASUM_RADIX"), values: "auto or 2 to 8", default: "2",
        help: "the most subtrees that a round merges; auto: the fastest by the cost model. Part of the result's last bits",
        set: |s, v| { s.options.radix = if v == "auto" { Options::AUTO_RADIX } else { within(v, 2, MAX_RADIX)? }; Some(()) } },
    OptionInfo { name: "placement", variable: Some("ADASUM_PLACEMENT"), values: "hierarchical or columns", default: "hierarchical",
        help: "where vectors lie while servers are merged: one chunk on each rank of a server, or, as MindSpore does, the whole on each",
        set: |s, v| named(v, &[("hierarchical", Placement::Hierarchical), ("columns", Placement::Columns)], &mut s.options.placement) },
    OptionInfo { name: "exchange", variable: Some("ADASUM_EXCHANGE"), values: "auto, alltoall, batch, group, pairwise or shared", default: "auto",
        help: "how exchanges are made: HcclAlltoAllV in servers, HcclBatchSendRecv, a group of sends and receives (CANN 9.0; A2, A3, 950), one after the other, or shared: ranks of one machine or A3 supernode read each other's memory (A2, A3, 950; not over PCIe). Results do not depend on it",
        set: |s, v| auto_or(v, Form::named, &mut s.options.exchange) },
    OptionInfo { name: "scalars", variable: Some("ADASUM_SCALARS"), values: "auto, gathered or owned", default: "auto",
        help: "how the scalars of a round are summed: by every rank, or by an owner of each tensor. Results do not depend on it",
        set: |s, v| named(v, &[("auto", ScalarExchange::Auto), ("gathered", ScalarExchange::Gathered), ("owned", ScalarExchange::Owned)], &mut s.options.scalars) },
    OptionInfo { name: "machine", variable: Some("ADASUM_MACHINE"), values: "auto, 910A, 910B, A3 or mock", default: "auto",
        help: "what the cost model assumes; auto: by the name of the chip",
        set: |s, v| auto_or(v, Machine::named, &mut s.options.machine) },
    OptionInfo { name: "wire", variable: Some("ADASUM_WIRE"), values: "native or f32", default: "native",
        help: "element type between ranks: that of the tensor, but fp32 for fewer than 64 elements, or always fp32, rounded once at the end",
        set: |s, v| named(v, &[("native", Wire::Native), ("f32", Wire::F32)], &mut s.options.wire) },
    OptionInfo { name: "scale", variable: None, values: "a finite number", default: "1",
        help: "what this rank's gradients are multiplied by, in fp32, before anything else. May differ between ranks",
        set: |s, v| { s.options.scale = finite(v)?; Some(()) } },
    OptionInfo { name: "result_scale", variable: None, values: "a finite number", default: "1",
        help: "what results are multiplied by, in fp32, on their way back to the tensors",
        set: |s, v| { s.options.result_scale = finite(v)?; Some(()) } },
    OptionInfo { name: "zero_tol", variable: Some("ADASUM_ZERO_TOL"), values: "a number of at least 0 and below 1", default: "0",
        help: "relative squared norm up to which a vector counts as zero",
        set: |s, v| { s.options.zero_tol = finite(v).filter(|v| (0.0..1.0).contains(v))?; Some(()) } },
    OptionInfo { name: "overflow", variable: Some("ADASUM_OVERFLOW"), values: "report or vote", default: "report",
        help: "what becomes of NaN and infinity; vote: the ranks can also vote before they reduce, and all skip the step",
        set: |s, v| named(v, &[("report", Overflow::Report), ("vote", Overflow::Vote)], &mut s.options.overflow) },
    OptionInfo { name: "bucket_bytes", variable: Some("ADASUM_BUCKET_BYTES"), values: "a whole number above 0", default: "26214400",
        help: "bytes of tensors that share a fused buffer; a larger tensor has one of its own",
        set: |s, v| { s.options.bucket_bytes = within(v, 1, u64::MAX)?; Some(()) } },
    OptionInfo { name: "pipeline_depth", variable: Some("ADASUM_PIPELINE_DEPTH"), values: "1 to 64", default: "4",
        help: "fused buffers under way at a time: device memory grows with it, results do not depend on it",
        set: |s, v| { s.options.pipeline_depth = within(v, 1, 64)?; Some(()) } },
    OptionInfo { name: "subset_plans", variable: None, values: "a whole number above 0", default: "256",
        help: "plans of subsets that are kept; one more takes the place of the one that was used longest ago",
        set: |s, v| { s.options.subset_plans = within(v, 1, u32::MAX as usize)?; Some(()) } },
    OptionInfo { name: "padded", variable: None, values: "0 or 1", default: "0",
        help: "whether what lies between a tensor's end and the next multiple of 64 bytes from its start may be overwritten, so that such tensors are reduced in place. May differ between ranks",
        set: |s, v| switch(v, &mut s.options.padded) },
    OptionInfo { name: "gradient_buffers", variable: None, values: "0 or 1", default: "0",
        help: "whether the reducer keeps a buffer for each bucket, in which callers may put gradients, so that they are reduced in place; with exchange shared there is no other way",
        set: |s, v| switch(v, &mut s.options.gradient_buffers) },
    OptionInfo { name: "scattered", variable: None, values: "0 or 1", default: "0",
        help: "whether each result stays on the rank that computed it, for sharded optimizers",
        set: |s, v| switch(v, &mut s.options.scattered) },
    OptionInfo { name: "barrier", variable: Some("ADASUM_BARRIER"), values: "0 or 1", default: "0",
        help: "whether a reduction ends with a barrier of all ranks",
        set: |s, v| switch(v, &mut s.options.barrier) },
    OptionInfo { name: "checksum", variable: Some("ADASUM_CHECKSUM"), values: "0 or 1", default: "0",
        help: "whether synchronising compares messages and results between ranks; the host then waits for each message",
        set: |s, v| switch(v, &mut s.options.checksum) },
    OptionInfo { name: "allow_plain_mean", variable: Some("ADASUM_ALLOW_PLAIN_MEAN"), values: "0 or 1", default: "0",
        help: "whether a single server of several ranks may give a plain mean",
        set: |s, v| switch(v, &mut s.options.allow_plain_mean) },
    OptionInfo { name: "create_timeout_ms", variable: Some("ADASUM_CREATE_TIMEOUT_MS"), values: "whole milliseconds above 0", default: "300000",
        help: "limit of joining a world and of the warm-up of a reducer. May differ between ranks",
        set: |s, v| { s.options.create_timeout = milliseconds(v)?; Some(()) } },
    OptionInfo { name: "stall_timeout_ms", variable: Some("ADASUM_STALL_TIMEOUT_MS"), values: "whole milliseconds above 0", default: "1800000",
        help: "time without movement after which a reduction has failed, and the error says what this rank waits for. May differ between ranks",
        set: |s, v| { s.options.stall_timeout = milliseconds(v)?; Some(()) } },
    OptionInfo { name: "delta_form", variable: None, values: "server_mean or local", default: "server_mean",
        help: "what the optimizer steps on in a delta reducer: the mean of its server's gradients, or the rank's own as in Horovod",
        set: |s, v| named(v, &[("server_mean", DeltaForm::ServerMean), ("local", DeltaForm::Local)], &mut s.delta_form) },
    OptionInfo { name: "degree", variable: None, values: "auto or a whole number", default: "auto",
        help: "what a mean reducer divides sums by; auto: the number of ranks. Numbers below 1 are refused by the reducer, with MindSpore's words",
        set: |s, v| auto_or(v, |v| v.parse().ok(), &mut s.degree) },
    OptionInfo { name: "fusion", variable: None, values: "all, none or ascending positions as 3,7", default: "all",
        help: "which gradients of a mean reducer travel together: positions cut their list behind them. Results do not depend on it",
        set: |s, v| {
            s.fusion = match v {
                "all" => Fusion::All,
                "none" => Fusion::None,
                _ => Fusion::Split(list(v)?),
            };
            Some(())
        } },
    OptionInfo { name: "group", variable: None, values: "all or ascending ranks as 0,4", default: "all",
        help: "the ranks that a mean or sparse reducer goes over, the caller's among them; only they create and use it",
        set: |s, v| { s.group = if v == "all" { None } else { Some(list(v)?) }; Some(()) } },
    OptionInfo { name: "mindspore_context", variable: None,
        values: "auto, or mode, enable_parallel_optimizer, pipeline_stages and device_num as data_parallel,0,1,16", default: "auto",
        help: "what the checks of the profile mindspore and of boost see; auto: what follows from the world",
        set: |s, v| auto_or(v, context, &mut s.context) },
];

impl Settings {
    /// Sets the option `name` to what `value` says: see [`OPTIONS`].
    ///
    /// # Errors
    /// Names the option and what it may be, or the options there are; nothing is changed then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match OPTIONS.iter().find(|option| option.name == name) {
            Some(option) => self.apply(option, option.name, value),
            None => {
                let names = OPTIONS.map(|option| option.name).join(", ");
                Err(Error::invalid(format!(
                    "{} is no option; there are {names}",
                    quote(name)
                )))
            }
        }
    }

    /// Takes over what the variables of [`OPTIONS`] say that are set and not empty.
    ///
    /// # Errors
    /// Names the variable and what it may be; nothing is taken over then.
    pub fn load_environment(&mut self) -> Result<()> {
        self.load(|name| std::env::var_os(name))
    }

    fn load(&mut self, lookup: impl Fn(&str) -> Option<OsString>) -> Result<()> {
        let mut settings = self.clone();
        let lookup = |name| lookup(name).filter(|value| !value.is_empty());
        for option in &OPTIONS {
            let Some(variable) = option.variable else {
                continue;
            };
            if let Some(value) = lookup(variable) {
                settings.apply(option, variable, &value.to_string_lossy())?;
            }
        }
        if let Some(path) = lookup(BOOST_FILE) {
            settings
                .load_boost(&PathBuf::from(path), BoostLevel::O2)
                .context(|| BOOST_FILE)?;
        }
        *self = settings;
        Ok(())
    }

    fn apply(&mut self, option: &OptionInfo, called: &str, value: &str) -> Result<()> {
        (option.set)(self, value).ok_or_else(|| {
            Error::invalid(format!(
                "{called} is {}, must be {}",
                quote(value),
                option.values
            ))
        })
    }
}

fn named<T: Clone>(value: &str, names: &[(&str, T)], place: &mut T) -> Option<()> {
    let (_, meant) = names.iter().find(|(name, _)| *name == value)?;
    place.clone_from(meant);
    Some(())
}

fn auto_or<T>(
    value: &str,
    read: impl FnOnce(&str) -> Option<T>,
    place: &mut Option<T>,
) -> Option<()> {
    *place = match value {
        "auto" => None,
        _ => Some(read(value)?),
    };
    Some(())
}

fn within<T: FromStr + PartialOrd>(value: &str, least: T, most: T) -> Option<T> {
    let number = value.parse().ok()?;
    (least..=most).contains(&number).then_some(number)
}

fn finite(value: &str) -> Option<f32> {
    value.parse().ok().filter(|number: &f32| number.is_finite())
}

fn milliseconds(value: &str) -> Option<Duration> {
    within(value, 1, u64::MAX).map(Duration::from_millis)
}

fn switch(value: &str, place: &mut bool) -> Option<()> {
    named(value, &[("0", false), ("1", true)], place)
}

fn list<T: FromStr>(value: &str) -> Option<Vec<T>> {
    value
        .split(',')
        .map(|part| part.trim().parse().ok())
        .collect()
}

fn context(value: &str) -> Option<ParallelContext> {
    let parts: Vec<&str> = value.split(',').map(str::trim).collect();
    let [mode, optimizer, stages, devices] = parts[..] else {
        return None;
    };
    let mut enable_parallel_optimizer = false;
    switch(optimizer, &mut enable_parallel_optimizer)?;
    Some(ParallelContext {
        mode: ParallelMode::named(mode)?,
        enable_parallel_optimizer,
        pipeline_stages: within(stages, 1, u32::MAX)?,
        device_num: devices.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every option: a text for it, and whether settings hold it then.
    type Case = (&'static str, &'static str, fn(&Settings) -> bool);

    #[rustfmt::skip]
    const CASES: [Case; 30] = [
        ("profile", "mindspore", |s| s.profile == Profile::MindSpore),
        ("reduction", "sum", |s| s.options.reduction == Reduction::Sum),
        ("in_server", "reduced", |s| s.options.in_server == InServer::Reduced),
        ("devices_per_server", "4", |s| s.devices_per_server == Some(4)),
        ("radix", "auto", |s| s.options.radix == Options::AUTO_RADIX),
        ("placement", "columns", |s| s.options.placement == Placement::Columns),
        ("exchange", "pairwise", |s| s.options.exchange == Some(Form::Pairwise)),
        ("scalars", "owned", |s| s.options.scalars == ScalarExchange::Owned),
        ("machine", "A3", |s| s.options.machine.as_ref().is_some_and(|machine| machine.name == "A3")),
        ("wire", "f32", |s| s.options.wire == Wire::F32),
        ("scale", "0.5", |s| s.options.scale == 0.5),
        ("result_scale", "-2e3", |s| s.options.result_scale == -2000.0),
        ("zero_tol", "1e-6", |s| s.options.zero_tol == 1e-6),
        ("overflow", "vote", |s| s.options.overflow == Overflow::Vote),
        ("bucket_bytes", "77", |s| s.options.bucket_bytes == 77),
        ("pipeline_depth", "3", |s| s.options.pipeline_depth == 3),
        ("subset_plans", "5", |s| s.options.subset_plans == 5),
        ("padded", "1", |s| s.options.padded),
        ("gradient_buffers", "1", |s| s.options.gradient_buffers),
        ("scattered", "1", |s| s.options.scattered),
        ("barrier", "1", |s| s.options.barrier),
        ("checksum", "1", |s| s.options.checksum),
        ("allow_plain_mean", "1", |s| s.options.allow_plain_mean),
        ("create_timeout_ms", "1500", |s| s.options.create_timeout == Duration::from_millis(1500)),
        ("stall_timeout_ms", "2500", |s| s.options.stall_timeout == Duration::from_millis(2500)),
        ("delta_form", "local", |s| s.delta_form == DeltaForm::Local),
        ("degree", "-1", |s| s.degree == Some(-1)),
        ("fusion", "3, 7", |s| s.fusion == Fusion::Split(vec![3, 7])),
        ("group", "0,4", |s| s.group == Some(vec![0, 4])),
        ("mindspore_context", "semi_auto_parallel,1,2,16", |s| s.context == Some(ParallelContext {
            mode: ParallelMode::SemiAutoParallel, enable_parallel_optimizer: true, pipeline_stages: 2, device_num: 16,
        })),
    ];

    fn loaded(variables: &[(&str, &str)]) -> Result<Settings> {
        let mut settings = Settings::default();
        settings.load(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })?;
        Ok(settings)
    }

    #[test]
    fn every_option_is_set_by_its_name_and_its_variable() {
        assert_eq!(CASES.map(|case| case.0), OPTIONS.map(|option| option.name));
        for ((name, text, holds), option) in CASES.iter().zip(&OPTIONS) {
            let mut settings = Settings::default();
            assert!(!holds(&settings), "{name}: the case is the default");
            settings.set(name, text).unwrap();
            assert!(holds(&settings), "{name}");
            if let Some(variable) = option.variable {
                assert_eq!(variable, format!("ADASUM_{}", name.to_uppercase()));
                assert!(holds(&loaded(&[(variable, text)]).unwrap()), "{name}");
            }
        }
    }

    #[test]
    fn a_value_that_is_none_is_named_with_those_that_are() {
        for option in &OPTIONS {
            let OptionInfo { name, values, .. } = option;
            let mut settings = Settings::default();
            for wrong in ["some other", "", "0,x", "\u{e9}"] {
                let error = settings.set(name, wrong).unwrap_err().to_string();
                assert_eq!(error, format!("{name} is {wrong:?}, must be {values}"));
            }
            if let Some(variable) = option.variable {
                let error = loaded(&[(variable, "some other")]).unwrap_err();
                let wanted = format!("{variable} is \"some other\", must be {values}");
                assert_eq!(error.to_string(), wanted);
                // Empty is not set.
                loaded(&[(variable, "")]).unwrap();
            }
            assert_eq!(
                format!("{settings:?}"),
                format!("{:?}", Settings::default())
            );
        }
        for (name, wrong) in [
            ("radix", "1"),
            ("radix", "9"),
            ("zero_tol", "1"),
            ("zero_tol", "NaN"),
            ("scale", "inf"),
            ("result_scale", "nan"),
            ("bucket_bytes", "0"),
            ("pipeline_depth", "65"),
            ("subset_plans", "0"),
            ("padded", "2"),
            ("create_timeout_ms", "0"),
            ("devices_per_server", "0"),
            ("mindspore_context", "data_parallel,0,0,16"),
            ("mindspore_context", "data_parallel,2,1,16"),
            ("mindspore_context", "data_parallel,0,1"),
        ] {
            let error = Settings::default().set(name, wrong).unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("{name} is {wrong:?}"))
            );
        }
        let long = "x".repeat(1000);
        for error in [
            Settings::default().set(&long, "1"),
            Settings::default().set("radix", &long),
        ] {
            assert!(error.unwrap_err().to_string().len() < 800);
        }
        let error = Settings::default()
            .set("Radix", "2")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("\"Radix\" is no option; there are profile, reduction, "),
            "{error}"
        );
    }

    #[test]
    fn defaults_are_those_that_the_table_tells() {
        for option in &OPTIONS {
            let mut settings = Settings::default();
            settings.set(option.name, option.default).unwrap();
            let defaults = format!("{:?}", Settings::default());
            assert_eq!(format!("{settings:?}"), defaults, "{}", option.name);
        }
    }
}
