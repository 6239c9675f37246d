//! What every [`Cluster`] keeps, as cases that run on any of them.
//!
//! The same cases run on the cluster in memory and on a real API server, so that what is developed on the one works on
//! the other. A case gets a namespace of its own and panics when the contract is broken.

mod definitions;
mod deletes;
mod objects;
mod patches;
mod reads;
mod test_env;
mod watches;
mod writes;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ephor_cluster::Cluster;

pub use test_env::TestEnv;

/// One case: what it is about, and the check.
pub type Case = (&'static str, fn(&TestEnv));

/// All cases.
pub const CASES: &[&[Case]] =
    &[objects::CASES, reads::CASES, writes::CASES, patches::CASES, deletes::CASES, watches::CASES, definitions::CASES];

/// Runs all cases, in namespaces that begin with `prefix`, and gives the names of those that failed; why, the panics on
/// standard error say. `pass` lets a little time pass.
pub fn check(cluster: &Arc<dyn Cluster>, prefix: &str, pass: impl Fn() + 'static) -> Vec<&'static str> {
    let pass: Arc<dyn Fn()> = Arc::new(pass);
    let cases = CASES.iter().flat_map(|cases| cases.iter());
    let mut failed = Vec::new();
    for (number, (name, case)) in cases.enumerate() {
        let env = TestEnv::new(Arc::clone(cluster), format!("{prefix}-{number}"), Arc::clone(&pass));
        if catch_unwind(AssertUnwindSafe(|| case(&env))).is_err() {
            failed.push(*name);
        }
    }
    failed
}
