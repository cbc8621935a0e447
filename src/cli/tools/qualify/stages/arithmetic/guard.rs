//! A guard behind work that is complete, and behind work for which something never came.

use crate::ascend::{DataType, Span, Stream};
use crate::cli::lab::reference::download;
use crate::cli::tools::qualify::findings::{Findings, Seen, require, wrong};
use crate::cli::tools::qualify::stages::arithmetic::problem::{PATIENCE, Problem};
use crate::cli::tools::qualify::stages::arithmetic::setup::Setup;
use crate::error::Result;
use crate::kernel::{Culprit, Guard, OnMissing, Reason, Receipt, Tensors};

const TYPE: DataType = DataType::F32;

pub(crate) fn run(setup: &Setup, findings: &mut Findings) {
    findings.check("guard lets complete work pass", || {
        let guarded = Guarded::new(setup, false)?;
        guarded.synchronised?;
        require(guarded.first.is_finite(), || {
            "it spoilt a result".to_owned()
        })?;
        require(guarded.culprit.is_none(), || {
            "it gives a reason to fail".to_owned()
        })?;
        Ok(Seen::default())
    });
    findings.check("guard stops incomplete work", || {
        let guarded = Guarded::new(setup, true)?;
        require(guarded.first.is_nan(), || {
            "a result was not spoilt".to_owned()
        })?;
        require(guarded.culprit == Some(Culprit::Others), || {
            format!("its reason is {:?}, not what others owe", guarded.culprit)
        })?;
        if setup.kernels.chip().arch() == 1001 {
            return Ok(Seen::note("Ascend 910A cannot fail a stream"));
        }
        match guarded.synchronised {
            Ok(()) => Err(wrong("the synchronisation of its stream tells no failure")),
            Err(error) => Ok(Seen::note(error.to_string())),
        }
    });
}

/// The state after a guard.
struct Guarded {
    /// Result of the synchronisation of its stream.
    synchronised: Result<()>,
    /// The first element of a result.
    first: f64,
    culprit: Option<Culprit>,
}

impl Guarded {
    /// Weighted sums, and a guard on another stream behind them.
    fn new(setup: &Setup, incomplete: bool) -> Result<Guarded> {
        let problem = Problem::new(setup, TYPE, 2)?;
        problem.products(setup)?;
        problem.weights(setup)?;
        if incomplete {
            problem.lose_weights(setup)?;
        }
        let receipt = Receipt::new(&setup.device)?;
        problem.launch_sum(setup, receipt.on(&setup.stream))?;
        setup.stream.synchronize_timeout(PATIENCE)?;
        let (stream, reason) = (Stream::new(&setup.device)?, Reason::new(&setup.device)?);
        let place: Span = problem.last()?;
        let places = Tensors::new(&setup.device, std::slice::from_ref(&place))?;
        let guard = Guard {
            receipt: &receipt,
            places: &places,
            dtype: TYPE,
            reason: &reason,
            on_missing: OnMissing::Fail,
        };
        setup.kernels.guard(&stream, &guard)?;
        Ok(Guarded {
            synchronised: stream.synchronize_timeout(PATIENCE),
            first: download(TYPE, &place)?[0],
            culprit: reason.read()?,
        })
    }
}
