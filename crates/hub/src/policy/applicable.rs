//! A cache of the rules that can apply to a call, by tool and caller.
//!
//! Most of a rule does not depend on the arguments of a call. So the rules that match a tool and its
//! caller are found once, and a call checks only their patterns.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use plexus_mcp_core::Scopes;

use super::{Action, CompiledRule, ToolFacts};

/// The cache is emptied when it has this many entries, so that callers cannot fill the memory.
const MAX_ENTRIES: usize = 10_000;

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
    // Whether a rule that denies, or one that does not, matches whatever the arguments are.
    let (mut is_denied, mut is_decided) = (false, false);
    for (position, rule) in rules.iter().enumerate() {
        let denies = rule.source.action == Action::Deny;
        if is_denied || (is_decided && !denies) || !rule.can_match(tool) {
            continue;
        }
        positions.push(position);
        if !rule.has_pattern() {
            is_denied |= denies;
            is_decided = true;
        }
    }
    positions.into()
}
