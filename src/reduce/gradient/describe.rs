//! What was planned: the radix, and what a rank does in a reduction, as text for people.

use crate::reduce::gradient::GradientReducer;
#[cfg(doc)]
use crate::reduce::options::Options;

impl GradientReducer {
    /// The most subtrees that a round merges: [`Options::radix`], or with [`Options::AUTO_RADIX`] what the cost model chose.
    pub fn radix(&self) -> u32 {
        self.choices.radix
    }

    /// The reduction of all tensors as this rank sees it: what was chosen, the buckets, and one line a stage, in the order in
    /// which stages are issued.
    pub fn plan_text(&self) -> String {
        let shape = self.world.shape();
        let mut lines = vec![format!(
            "rank {} of {}: {} servers of {}, {}",
            self.world.rank(),
            self.world.size(),
            shape.servers,
            shape.locals,
            self.options.agreed(self.choices).join(", ")
        )];
        for (number, bucket) in self.plans.whole().buckets.iter().enumerate() {
            let names = bucket
                .members
                .iter()
                .map(|&tensor| format!("{:?}", self.specs[tensor].name));
            lines.push(format!(
                "bucket {number}: {} elements of {}, tensors {}",
                bucket.layout.elements(),
                bucket.layout.dtype().name(),
                names.collect::<Vec<_>>().join(" ")
            ));
        }
        for (number, stage) in self.plans.whole().stages().iter().enumerate() {
            lines.push(match stage.peers.as_slice() {
                [] => format!("{number}: {}", stage.operation),
                peers => format!(
                    "{number}: {}, {} bytes with ranks {peers:?}",
                    stage.operation, stage.bytes
                ),
            });
        }
        lines.join("\n") + "\n"
    }
}
