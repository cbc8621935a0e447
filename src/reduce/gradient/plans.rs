//! The plans of a reducer: that of all tensors, and those of subsets that were used last.

use std::collections::HashMap;
use std::iter;

use crate::reduce::engine::program::Program;

/// Tells the plans of a reducer apart.
pub(super) type PlanNumber = u64;

/// The number of the plan of all tensors.
pub(super) const WHOLE: PlanNumber = 0;

/// The plan of all tensors, and the plans of the subsets that were used last.
pub(super) struct Plans {
    whole: Program,
    numbers: HashMap<Box<[usize]>, PlanNumber>,
    subsets: HashMap<PlanNumber, Kept>,
    /// The most subsets.
    most: usize,
    /// The number of the newest plan.
    newest: PlanNumber,
    uses: u64,
}

struct Kept {
    plan: Program,
    /// Number of its last use.
    used: u64,
}

impl Plans {
    /// The plan of all tensors, with room for those of `most` subsets.
    pub(super) fn new(whole: Program, most: usize) -> Self {
        Plans {
            whole,
            numbers: HashMap::new(),
            subsets: HashMap::new(),
            most,
            newest: WHOLE,
            uses: 0,
        }
    }

    /// The plan of all tensors.
    pub(super) fn whole(&self) -> &Program {
        &self.whole
    }

    /// The plan with this number, if it is still there.
    pub(super) fn get(&self, number: PlanNumber) -> Option<&Program> {
        match number {
            WHOLE => Some(&self.whole),
            number => self.subsets.get(&number).map(|kept| &kept.plan),
        }
    }

    /// The plan with this number, if it is still there.
    pub(super) fn get_mut(&mut self, number: PlanNumber) -> Option<&mut Program> {
        match number {
            WHOLE => Some(&mut self.whole),
            number => self.subsets.get_mut(&number).map(|kept| &mut kept.plan),
        }
    }

    /// All plans with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (PlanNumber, &Program)> {
        let subsets = self.subsets.iter();
        iter::once((WHOLE, &self.whole)).chain(subsets.map(|(&number, kept)| (number, &kept.plan)))
    }

    /// All plans.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Program> {
        let subsets = self.subsets.values_mut();
        iter::once(&mut self.whole).chain(subsets.map(|kept| &mut kept.plan))
    }

    /// The number of the plan of `tensors`, which counts as used now.
    pub(super) fn find(&mut self, tensors: &[usize]) -> Option<PlanNumber> {
        if tensors == self.whole.tensors {
            return Some(WHOLE);
        }
        let number = *self.numbers.get(tensors)?;
        self.uses += 1;
        self.subsets.get_mut(&number)?.used = self.uses;
        Some(number)
    }

    /// Keeps the new plan of a subset.
    pub(super) fn insert(&mut self, plan: Program) -> PlanNumber {
        self.newest += 1;
        self.uses += 1;
        self.numbers
            .insert(plan.tensors.clone().into(), self.newest);
        let used = self.uses;
        self.subsets.insert(self.newest, Kept { plan, used });
        self.newest
    }

    /// Makes room for one more: the same choice on all ranks, which use the same subsets in the same order.
    pub(super) fn make_room(&mut self) {
        while self.subsets.len() >= self.most {
            let oldest = self.subsets.iter().min_by_key(|(_, kept)| kept.used);
            let Some((&number, _)) = oldest else {
                return;
            };
            self.subsets.remove(&number);
            self.numbers.retain(|_, other| *other != number);
        }
    }
}
