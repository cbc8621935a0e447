//! The committed inputs of the fuzz target `c_abi`, as lists of calls. What a byte means is in `fuzz/bodies/c_abi.rs`; when that
//! or the table of options changes, `ADASUM_BLESS=1 cargo test --test it -- fuzz` writes the files again.

use adasum::reduce::OPTIONS;

/// A file: its name, its bytes, and how many of its calls are refused (nobody knows it of noise).
pub(super) struct Input {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) refused: Option<usize>,
}

/// An input under way.
#[derive(Default)]
struct Calls(Vec<u8>);

/// Options lie in this slot, or there are none.
const OPTIONS_SLOT: u8 = 0;
const NO_OPTIONS: u8 = 3;

#[derive(Clone, Copy)]
enum Reducer {
    Delta = 0,
    Mean = 1,
    Gradient = 3,
}

#[derive(Clone, Copy)]
enum Reduction {
    Flat = 0,
    ReduceSome = 1,
    PrepareSome = 2,
    SomeFlat = 3,
    Overflow = 4,
    Collect = 5,
    DeltaBegin = 6,
    DeltaEnd = 7,
    Reduce = 9,
}

#[derive(Clone, Copy)]
enum Question {
    Rank = 0,
    Size = 1,
    Servers = 2,
    DevicesPerServer = 3,
    Device = 4,
    VendorCode = 5,
    Barrier = 6,
    Finish = 9,
    Nonfinite = 10,
    Plan = 12,
    OwnedCount = 13,
    DeltaReset = 15,
    Synchronize = 16,
    ForgetStream = 17,
    Destroy = 19,
}

impl Calls {
    fn options(mut self) -> Self {
        self.0.extend([0, OPTIONS_SLOT]);
        self
    }

    /// Sets the option of this name; `kind` and `number` make its value.
    fn set(mut self, name: &str, kind: u8, number: u8) -> Self {
        let index = OPTIONS.iter().position(|option| option.name == name);
        let index = u8::try_from(index.expect(name)).unwrap();
        self.0.extend([1, OPTIONS_SLOT, 0, 3, index, kind, number]);
        self
    }

    /// Sets an option to a word of its list.
    fn set_word(self, name: &str, word: &str) -> Self {
        let option = OPTIONS.iter().find(|option| option.name == name);
        let mut words = option.expect(name).values.split([' ', ',']);
        let number = words.position(|one| one == word).expect(word);
        self.set(name, 0, u8::try_from(number).unwrap())
    }

    /// A world of this rank alone, with a root info.
    fn world(mut self, options: u8) -> Self {
        self.0.extend([3, options, 1, 4]);
        self
    }

    /// In place of a world that is there.
    fn another_world(mut self, options: u8) -> Self {
        self.0.extend([3, 0, options, 1, 4]);
        self
    }

    /// A reducer of two fp32 tensors, `w` and `A3`, of 17 and 30 elements.
    fn reducer(self, kind: Reducer, options: u8) -> Self {
        self.reducer_of(kind, options, 0)
    }

    fn reducer_of(mut self, kind: Reducer, options: u8, length: u8) -> Self {
        self.0.extend([4, options, kind as u8]);
        self = self.tensors();
        self.0.push(length);
        self
    }

    /// A sparse reducer of rows of 17 elements, at most 5 rows.
    fn sparse_reducer(mut self) -> Self {
        self.0.extend([4, NO_OPTIONS, 2, 0, 0, 17, 5, 0, 0, 0, 1]);
        self
    }

    /// A call about the tensors of a reducer of two, all in place.
    fn reduce(mut self, kind: Reduction, reducer: u8) -> Self {
        self.0.extend([6, reducer]);
        self.0.extend([1, 21, 0]);
        self.0.extend([41, 61, 0]);
        self.0.extend([0, 1]);
        self.0.extend([0, 1]);
        self.0.extend([0, 81]);
        self.0.extend([1, 21]);
        self.0.push(kind as u8);
        self
    }

    fn reduce_without_reducer(mut self) -> Self {
        self.0
            .extend([6, 0, 0, 0, 0, 1, 0, 81, Reduction::Reduce as u8]);
        self
    }

    /// As `reduce`, with one address too few, or flat memory longer than any.
    fn reduce_wrongly(mut self, kind: Reduction) -> Self {
        self.0.extend([6, 0]);
        self.0.extend([1, 21, 7]);
        self.0.extend([41, 61, 0]);
        self.0.extend([0, 1]);
        self.0.push(0);
        self.0.extend([9, 250, 81]);
        self.0.push(1);
        self.0.push(kind as u8);
        self
    }

    /// A row of a sparse reducer.
    fn gather(mut self, reducer: u8) -> Self {
        self.0.extend([6, reducer]);
        self.0.extend([1, 0]);
        self.0.extend([41, 0]);
        self.0.extend([0, 1]);
        self.0.push(0);
        self.0.extend([0, 81]);
        self.0.push(1);
        self.0.extend([8, 1, 1]);
        self
    }

    fn ask(mut self, question: Question, reducer: u8) -> Self {
        self.0.extend([5, 1, reducer, 0, 64, 1, question as u8]);
        self
    }

    /// The parts that this rank owns, which are two.
    fn owned(mut self, reducer: u8) -> Self {
        self.0.extend([5, 1, reducer, 0, 64, 1, 14, 2]);
        self
    }

    /// Two fp32 tensors, as a reducer has.
    fn tensors(mut self) -> Self {
        self.0.extend([2]);
        self.0.extend([1, 17, 0, 0, 0]);
        self.0.extend([2, 30, 0, 0, 0]);
        self
    }

    /// A norm clip (0), one of parts of both tensors (1) or an accumulator (2), of the world.
    fn helper(mut self, kind: u8) -> Self {
        self.0.extend([7, 0, 2]);
        self = self.tensors();
        // A limit of 2, and two parts.
        self.0.extend([0x40, 2]);
        self.0.extend([0, 1, 16]);
        self.0.extend([1, 0, 30]);
        self.0.push(kind);
        self
    }

    /// A call about the tensors of a norm clip: its norm (0), a stream that it forgets (1), or the clipping (2).
    fn clip(mut self, kind: u8) -> Self {
        self.0.extend([7, 2, 1, 21, 0, 1, kind]);
        self
    }

    /// Steps (0), a stream to forget (1), the taking of the sum (2), or an addition (3).
    fn accumulate(mut self, kind: u8) -> Self {
        self.0.extend([7, 3, 1, 21, 0, 1, 0x3f, kind]);
        self
    }

    /// The part of this rank alone, and a sum over it.
    fn part_and_sum(mut self) -> Self {
        self.0.extend([7, 4, 2, 1, 1]);
        self.0.extend([7, 5, 0, 3, 1, 1]);
        self
    }

    /// A journal, and a record of two figures and a tensor.
    fn journal(mut self) -> Self {
        self.0.extend([7, 6, 2]);
        self.0.extend([7, 7, 1, 5, 0, 2, 1, 2, 1, 1, 1, 0x40, 0]);
        self
    }

    fn abort_world(mut self) -> Self {
        self.0.extend([5, 1, 0, 0, 64, 1, 8, 0]);
        self
    }

    fn abort_reducer(mut self, reducer: u8) -> Self {
        self.0.extend([5, 1, reducer, 0, 64, 1, 18, 0]);
        self
    }

    fn done(self, name: &str, refused: usize) -> Input {
        Input {
            name: name.to_owned(),
            bytes: self.0,
            refused: Some(refused),
        }
    }
}

/// Bytes without a plan; small numbers mean something more often.
pub(super) fn noise(seed: u64, length: u64) -> Vec<u8> {
    let unit = |i: u64| crate::support::noise(&[91, seed, i]).abs();
    let byte = |i| {
        let most = if unit(2 * i) < 0.7 { 14.0 } else { 256.0 };
        (unit(2 * i + 1) * most) as u8
    };
    (0..length).map(byte).collect()
}

pub(super) fn inputs() -> Vec<Input> {
    use Question::*;
    use Reducer::*;
    use Reduction::*;

    let calls = Calls::default;
    let gradient = || calls().world(NO_OPTIONS).reducer(Gradient, NO_OPTIONS);
    let every_default = OPTIONS.iter().fold(calls().options(), |calls, option| {
        let mut words = option.values.split([' ', ',']);
        match words.any(|word| word == option.default) {
            true => calls.set_word(option.name, option.default),
            false => {
                let number: u64 = option.default.parse().expect(option.name);
                calls.set(option.name, 4, number.min(200) as u8)
            }
        }
    });
    // A word and three numbers are no value of any option.
    let none_right = OPTIONS.iter().fold(calls().options(), |calls, option| {
        calls.set(option.name, 7, 1)
    });
    let mut inputs = vec![
        calls().done("nothing", 0),
        every_default.done("options", 0),
        none_right.done("options_refused", OPTIONS.len()),
        calls()
            .reducer(Gradient, NO_OPTIONS)
            .reduce_without_reducer()
            .ask(Rank, 0)
            .done("no_world", 3),
        [
            Rank,
            Size,
            Servers,
            DevicesPerServer,
            Device,
            VendorCode,
            Barrier,
            Finish,
        ]
        .into_iter()
        .fold(calls().world(NO_OPTIONS), |calls, question| {
            calls.ask(question, 0)
        })
        .done("world_and_finish", 0),
        gradient()
            .reduce(Reduce, 0)
            .reduce(Flat, 0)
            .ask(Nonfinite, 0)
            .ask(Plan, 0)
            .ask(Synchronize, 0)
            .ask(ForgetStream, 0)
            .ask(Destroy, 0)
            .done("reduce", 0),
        gradient()
            .reduce(PrepareSome, 0)
            .reduce(ReduceSome, 0)
            .reduce(SomeFlat, 0)
            .done("reduce_some", 0),
        calls()
            .world(NO_OPTIONS)
            .reducer(Delta, NO_OPTIONS)
            .reduce(DeltaBegin, 0)
            .reduce(DeltaEnd, 0)
            .ask(DeltaReset, 0)
            .done("delta", 0),
        calls()
            .world(NO_OPTIONS)
            .reducer(Mean, NO_OPTIONS)
            .reduce(Reduce, 0)
            .sparse_reducer()
            .gather(1)
            .done("mean_and_sparse", 0),
        calls()
            .options()
            .set_word("overflow", "vote")
            .world(OPTIONS_SLOT)
            .reducer(Gradient, OPTIONS_SLOT)
            .reduce(Overflow, 0)
            .done("overflow_vote", 0),
        calls()
            .options()
            .set_word("scattered", "1")
            .world(OPTIONS_SLOT)
            .reducer(Gradient, OPTIONS_SLOT)
            .reduce(Reduce, 0)
            .ask(OwnedCount, 0)
            .owned(0)
            .reduce(Collect, 0)
            .done("scattered", 0),
        (0..4)
            .fold(calls().world(NO_OPTIONS).helper(1), |calls, kind| {
                calls.clip(2 - kind % 3)
            })
            .helper(0)
            .clip(2)
            .helper(2)
            .accumulate(3)
            .accumulate(0)
            .accumulate(2)
            .accumulate(1)
            .part_and_sum()
            .journal()
            .done("helpers", 0),
        calls()
            .helper(0)
            .world(NO_OPTIONS)
            .helper(2)
            .accumulate(2)
            .ask(Finish, 0)
            .done("helpers_refused", 3),
        gradient()
            .reduce_wrongly(Reduce)
            .reduce_wrongly(Flat)
            .reducer_of(Gradient, NO_OPTIONS, 9)
            .done("lengths", 3),
        gradient()
            .reduce(Reduce, 0)
            .abort_reducer(0)
            .reduce(Reduce, 0)
            .world(NO_OPTIONS)
            .reducer(Gradient, NO_OPTIONS)
            .abort_world()
            .another_world(NO_OPTIONS)
            .reducer(Gradient, NO_OPTIONS)
            .reduce(Reduce, 0)
            .done("abort", 1),
    ];
    inputs.extend((0..6).map(|seed| Input {
        name: format!("noise{seed}"),
        bytes: noise(seed, 400),
        refused: None,
    }));
    inputs
}
