//! A cache of the rules that can apply to a call, by tool and caller.
//!
//! Most of a rule does not depend on the arguments of a call. So the rules that match a tool and its
//! caller are found once, and a call checks only their patterns.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use plexus_mcp_core::Scopes;

use super::{CompiledRule, ToolFacts};

/// The cache is emptied when it has this many entries, so that callers cannot fill the memory: room
/// for two callers of each of 50,000 tools.
const MAX_ENTRIES: usize = 100_000;

/// See the documentation of the module. A cache belongs to the rules of one policy.
#[derive(Debug, Default)]
pub(super) struct ApplicableRules {
    cache: RwLock<HashMap<Key, Arc<[usize]>>>,
}

/// Everything about a call, apart from its arguments, that a rule looks at.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    names: Vec<String>,
    principal: String,
    scopes: Option<Scopes>,
}

impl ApplicableRules {
    /// The positions of the rules that decide about calls of `tool`, in order. Rules that can never
    /// decide, because an earlier rule always does, are left out.
    pub(super) fn of(&self, rules: &[CompiledRule], tool: &ToolFacts<'_>) -> Arc<[usize]> {
        let key = Key {
            names: tool.names().to_vec(),
            principal: tool.principal().to_owned(),
            scopes: tool.scopes().cloned(),
        };
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cache.get(&key) {
            return Arc::clone(known);
        }
        drop(cache);
        let found = applicable(rules, tool);
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_ENTRIES {
            cache.clear();
        }
        cache.insert(key, Arc::clone(&found));
        found
    }
}

fn applicable(rules: &[CompiledRule], tool: &ToolFacts<'_>) -> Arc<[usize]> {
    let mut positions = Vec::new();
    // Whether a rule that wins, or one that does not, matches whatever the arguments are.
    let (mut is_denied, mut is_decided) = (false, false);
    for (position, rule) in rules.iter().enumerate() {
        let wins = rule.wins();
        if is_denied || (is_decided && !wins) || !rule.can_match(tool) {
            continue;
        }
        positions.push(position);
        if !rule.has_pattern() {
            is_denied |= wins;
            is_decided = true;
        }
    }
    positions.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_50_000_tools_are_kept() {
        let cache = ApplicableRules::default();
        let of = |number: u32| {
            let tool = format!("tool_{number}");
            cache.of(&[], &ToolFacts::new(&format!("up0__{tool}"), "up0", &tool))
        };
        let found: Vec<_> = (0..50_000).map(of).collect();
        for (number, first) in (0..).zip(&found) {
            assert!(Arc::ptr_eq(first, &of(number)), "{number}");
        }
    }
}
