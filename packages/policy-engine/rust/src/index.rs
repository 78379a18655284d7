//! The policies that can speak of one action: a scope names its actions, so the others need no look.

use cedar_policy::{ActionConstraint, Entities, EntityUid, PolicySet};
use std::collections::{HashMap, HashSet};

/// A policy set, and what of it each action needs. A slice is made when first asked for and kept.
pub struct Index {
    whole: PolicySet,
    any: Vec<cedar_policy::Policy>,
    named: HashMap<EntityUid, Vec<cedar_policy::Policy>>,
    slices: HashMap<EntityUid, PolicySet>,
}

impl Index {
    pub fn new(whole: PolicySet) -> Index {
        let (mut any, mut named) = (Vec::new(), HashMap::<EntityUid, Vec<_>>::new());
        for policy in whole.policies() {
            match policy.action_constraint() {
                ActionConstraint::Any => any.push(policy.clone()),
                ActionConstraint::Eq(action) => named.entry(action).or_default().push(policy.clone()),
                ActionConstraint::In(actions) => {
                    for action in actions.into_iter().collect::<HashSet<_>>() {
                        named.entry(action).or_default().push(policy.clone());
                    }
                }
            }
        }
        Index {
            whole,
            any,
            named,
            slices: HashMap::new(),
        }
    }

    pub fn whole(&self) -> &PolicySet {
        &self.whole
    }

    /// What `action` needs; `actions` holds it and its groups.
    pub fn slice(&mut self, action: &EntityUid, actions: &Entities) -> &PolicySet {
        if !self.slices.contains_key(action) {
            let mut found: HashMap<_, _> = self.any.iter().map(|policy| (policy.id().clone(), policy)).collect();
            let groups = actions.ancestors(action).into_iter().flatten().cloned();
            for name in groups.chain([action.clone()]) {
                for policy in self.named.get(&name).into_iter().flatten() {
                    found.insert(policy.id().clone(), policy);
                }
            }
            // A clash of ids cannot be, as they come from one set: the whole set is right in any case.
            let slice = PolicySet::from_policies(found.into_values().cloned()).unwrap_or_else(|_| self.whole.clone());
            self.slices.insert(action.clone(), slice);
        }
        &self.slices[action]
    }
}
