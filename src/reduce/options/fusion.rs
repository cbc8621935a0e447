//! Which gradients of a mean reducer travel together.

use crate::error::{Error, Result};

/// How gradients are grouped into messages. Results do not depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fusion {
    /// All together.
    #[default]
    All,
    /// Each one alone.
    None,
    /// Cut behind these positions in the list of tensors, in ascending order: the tensor at a position still
    /// belongs to the group before the cut.
    Split(Vec<usize>),
}

/// First fusion id of a list that is split.
const FIRST_SPLIT: u32 = 1 << 10;
/// Fusion id of tensors that are never fused.
const NEVER: u32 = 0;

impl Fusion {
    /// The tensors of each message, by their positions.
    ///
    /// `own` holds each tensor's own fusion id, where it has one. If those differ from each other, they decide:
    /// equal ids travel together, and 0 is never fused. Else this choice does.
    ///
    /// # Errors
    /// `InvalidArgument` if positions of a split are not ascending.
    pub(in crate::reduce) fn groups(&self, own: &[Option<u32>]) -> Result<Vec<Vec<usize>>> {
        let ids = self.ids(own)?;
        let mut groups: Vec<(u32, Vec<usize>)> = Vec::new();
        for (position, id) in ids.into_iter().enumerate() {
            match groups.iter_mut().find(|group| group.0 == id) {
                Some((_, members)) if id != NEVER => members.push(position),
                _ => groups.push((id, vec![position])),
            }
        }
        Ok(groups.into_iter().map(|(_, members)| members).collect())
    }

    fn ids(&self, own: &[Option<u32>]) -> Result<Vec<u32>> {
        if own.windows(2).any(|pair| pair[0] != pair[1]) {
            return Ok(own.iter().map(|id| id.unwrap_or(1)).collect());
        }
        Ok(match self {
            Fusion::All => vec![1; own.len()],
            Fusion::None => vec![NEVER; own.len()],
            Fusion::Split(cuts) => {
                check_cuts(cuts, own.len())?;
                let id = |position| {
                    let behind = cuts.iter().filter(|&&cut| cut < position).count();
                    FIRST_SPLIT + u32::try_from(behind).unwrap_or(u32::MAX - FIRST_SPLIT)
                };
                (0..own.len()).map(id).collect()
            }
        })
    }
}

/// A cut behind the last tensor does nothing; MindSpore warns about it in these words.
fn check_cuts(cuts: &[usize], tensors: usize) -> Result<()> {
    if !cuts.windows(2).all(|pair| pair[0] < pair[1]) {
        return Err(Error::invalid(format!(
            "split indices {cuts:?} are not in ascending order"
        )));
    }
    for cut in cuts.iter().filter(|&&cut| cut >= tensors) {
        log::warn!(
            "AllReduce's split index {cut} is greater than or equal tothe total gradient's number of {tensors}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_OWN: [Option<u32>; 5] = [None; 5];

    #[test]
    fn the_choice_decides_where_tensors_have_no_ids_of_their_own() {
        let groups = |fusion: Fusion| fusion.groups(&NO_OWN).unwrap();
        assert_eq!(groups(Fusion::All), [vec![0, 1, 2, 3, 4]]);
        assert_eq!(groups(Fusion::None).len(), 5);
        assert_eq!(groups(Fusion::Split(vec![1])), [vec![0, 1], vec![2, 3, 4]]);
        assert_eq!(
            groups(Fusion::Split(vec![0, 3])),
            [vec![0], vec![1, 2, 3], vec![4]]
        );
        // Cuts behind the end are warned about and do nothing.
        assert_eq!(groups(Fusion::Split(vec![7])), [vec![0, 1, 2, 3, 4]]);
        assert!(Fusion::All.groups(&[]).unwrap().is_empty());
    }

    #[test]
    fn different_ids_of_tensors_decide_first() {
        let own = [Some(3), Some(0), Some(5), Some(0), Some(3)];
        let groups = Fusion::Split(vec![1]).groups(&own).unwrap();
        assert_eq!(groups, [vec![0, 4], vec![1], vec![2], vec![3]]);
        // Equal ones say nothing.
        let same = [Some(3); 3];
        assert_eq!(Fusion::None.groups(&same).unwrap().len(), 3);
    }

    #[test]
    fn split_indices_ascend() {
        let error = Fusion::Split(vec![3, 3]).groups(&NO_OWN).unwrap_err();
        assert!(error.to_string().contains("[3, 3]"), "{error}");
    }
}
