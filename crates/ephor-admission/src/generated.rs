//! What became of the policies that ask for admission policies of the API server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use ephor_engine::policy::ProgramKind;
use ephor_expr::Str;
use ephor_runtime::policies::PolicyId;
use parking_lot::Mutex;

/// What became of one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Generated {
    /// Its objects are stored.
    Stored,
    /// They are not, and why.
    Skipped(Str),
}

type Subscriber = Box<dyn Fn() + Send + Sync>;

/// Where it is published. Clones are the same board.
#[derive(Clone, Default)]
pub struct GeneratedBoard(Arc<Shared>);

struct Shared {
    /// `None` from the beginning of a term until the objects have been looked at: another replica may have changed
    /// them.
    present: ArcSwapOption<BTreeMap<PolicyId, Generated>>,
    subscribers: Mutex<Vec<Subscriber>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { present: ArcSwapOption::from_pointee(BTreeMap::new()), subscribers: Mutex::default() }
    }
}

impl fmt::Debug for GeneratedBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GeneratedBoard({} policies)", self.get().len())
    }
}

impl GeneratedBoard {
    /// What became of each policy that asks; nothing while that is unknown.
    pub fn get(&self) -> Arc<BTreeMap<PolicyId, Generated>> {
        self.0.present.load_full().unwrap_or_default()
    }

    /// Whether it is known what became of the policies.
    pub fn is_known(&self) -> bool {
        self.0.present.load().is_some()
    }

    /// Whether the API server does what the policy says, so that no webhook may do it again.
    pub fn takes_over(&self, policy: &PolicyId) -> bool {
        policy.kind == ProgramKind::MutatingPolicy && self.get().get(policy) == Some(&Generated::Stored)
    }

    /// Nothing is known until the next [`GeneratedBoard::publish`].
    pub fn forget(&self) {
        self.0.present.store(None);
    }

    /// Publishes it; subscribers are called if it is news.
    pub fn publish(&self, generated: BTreeMap<PolicyId, Generated>) {
        if self.0.present.load().as_deref() == Some(&generated) {
            return;
        }
        self.0.present.store(Some(Arc::new(generated)));
        for subscriber in self.0.subscribers.lock().iter() {
            subscriber();
        }
    }

    /// Calls `subscriber` after each change. It must be quick.
    pub fn subscribe(&self, subscriber: impl Fn() + Send + Sync + 'static) {
        self.0.subscribers.lock().push(Box::new(subscriber));
    }
}
