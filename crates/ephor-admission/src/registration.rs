//! The policies that are registered with the API server since the last write of the webhook configurations.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use ephor_engine::compile::Program;
use ephor_runtime::policies::{PolicyId, StoredPolicy};
use parking_lot::Mutex;

/// A policy that the configurations have taken in.
#[derive(Debug, Clone)]
pub struct Registered {
    /// What it compiled to then.
    pub program: Arc<Program>,
    /// Why its webhook is not registered, if it is not: the API server does not take it, or it has no place.
    pub refusal: Option<String>,
}

/// What is registered.
#[derive(Debug, Clone, Default)]
pub struct Registration {
    /// All policies with a program, also those that admission does not ask.
    pub policies: BTreeMap<PolicyId, Registered>,
    /// The certificates that the configurations carry, PEM; empty before the first write.
    pub ca_bundle: Arc<[u8]>,
    /// Why the latest state could not be written, if it could not.
    pub failure: Option<String>,
}

impl Registration {
    /// What is registered of a policy as it is now; `None` while what it is now has not been taken in.
    pub fn of(&self, policy: &StoredPolicy) -> Option<&Registered> {
        let program = policy.program.as_ref()?;
        self.policies.get(&policy.key).filter(|registered| Arc::ptr_eq(&registered.program, program))
    }
}

type Subscriber = Box<dyn Fn() + Send + Sync>;

/// Where the present registration is published. Clones are the same board.
#[derive(Clone, Default)]
pub struct RegistrationBoard(Arc<Shared>);

#[derive(Default)]
struct Shared {
    present: ArcSwap<Registration>,
    subscribers: Mutex<Vec<Subscriber>>,
}

impl fmt::Debug for RegistrationBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegistrationBoard({} policies)", self.get().policies.len())
    }
}

impl RegistrationBoard {
    /// The present registration.
    pub fn get(&self) -> Arc<Registration> {
        self.0.present.load_full()
    }

    /// Publishes a registration.
    pub fn publish(&self, registration: Registration) {
        self.0.present.store(Arc::new(registration));
        for subscriber in self.0.subscribers.lock().iter() {
            subscriber();
        }
    }

    /// Calls `subscriber` after each publication. It must be quick.
    pub fn subscribe(&self, subscriber: impl Fn() + Send + Sync + 'static) {
        self.0.subscribers.lock().push(Box::new(subscriber));
    }
}
