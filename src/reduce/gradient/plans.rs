//! The plans of a reducer: that of all tensors, and those of subsets that were used last.

use std::collections::HashMap;

use crate::reduce::engine::program::Program;

/// Tells the plans of a reducer apart.
pub(super) type PlanNumber = u64;

/// The number of the plan of all tensors.
pub(super) const WHOLE: PlanNumber = 0;

/// The plans of subsets, those that were used last.
pub(in crate::reduce) struct Plans {
    numbers: HashMap<Box<[usize]>, PlanNumber>,
    plans: HashMap<PlanNumber, Kept>,
    most: usize,
    /// Of the newest plan.
    newest: PlanNumber,
    uses: u64,
}

struct Kept {
    plan: Program,
    /// Number of its last use.
    used: u64,
}

impl Plans {
    pub(in crate::reduce) fn new(most: usize) -> Self {
        Plans {
            numbers: HashMap::new(),
            plans: HashMap::new(),
            most,
            newest: WHOLE,
            uses: 0,
        }
    }

    pub(in crate::reduce) fn get(&self, number: PlanNumber) -> Option<&Program> {
        self.plans.get(&number).map(|kept| &kept.plan)
    }

    /// All that are kept.
    pub(super) fn plans(&self) -> impl Iterator<Item = &Program> {
        self.plans.values().map(|kept| &kept.plan)
    }

    pub(in crate::reduce) fn get_mut(&mut self, number: PlanNumber) -> Option<&mut Program> {
        self.plans.get_mut(&number).map(|kept| &mut kept.plan)
    }

    pub(in crate::reduce) fn all(&self) -> impl Iterator<Item = (PlanNumber, &Program)> {
        let plans = self.plans.iter();
        plans.map(|(&number, kept)| (number, &kept.plan))
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Program> {
        self.plans.values_mut().map(|kept| &mut kept.plan)
    }

    /// The number of the plan of `tensors`, which counts as used now.
    pub(super) fn find(&mut self, tensors: &[usize]) -> Option<PlanNumber> {
        let number = *self.numbers.get(tensors)?;
        self.uses += 1;
        self.plans.get_mut(&number)?.used = self.uses;
        Some(number)
    }

    /// Keeps a new plan.
    pub(super) fn insert(&mut self, plan: Program) -> PlanNumber {
        self.newest += 1;
        self.uses += 1;
        self.numbers
            .insert(plan.tensors.clone().into(), self.newest);
        let used = self.uses;
        self.plans.insert(self.newest, Kept { plan, used });
        self.newest
    }

    /// Makes room for one more: the same choice on all ranks, which use the same subsets in the same order.
    pub(super) fn make_room(&mut self) {
        while self.plans.len() >= self.most {
            let oldest = self.plans.iter().min_by_key(|(_, kept)| kept.used);
            let Some((&number, _)) = oldest else {
                return;
            };
            self.plans.remove(&number);
            self.numbers.retain(|_, other| *other != number);
        }
    }
}
