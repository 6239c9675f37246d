//! `ephor serve admission` as it runs in production, before a real API server, under faults.
//!
//! Replicas stand behind a balancer, as they do behind a Service. The tests need a control plane
//! (`cargo xtask cluster build`), and so are not part of a plain `cargo test`.

mod balancer;
mod faults;
mod guarded;
mod load;
