//! The roles as they run in production, before a real API server, under faults.
//!
//! Replicas of admission stand behind a balancer, as they do behind a Service. The tests need a control plane
//! (`cargo xtask cluster build`), and so are not part of a plain `cargo test`.

mod aggregated;
mod aggregated_role;
mod balancer;
mod crash;
mod dev;
mod faults;
mod forged;
mod guarded;
mod load;
mod report_faults;
mod takeover;
mod way_back;
