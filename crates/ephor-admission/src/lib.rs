//! The admission role: requests in, verdicts and patches out, and what the API server must know to send them.
//!
//! - [`review`]: handlers of resources. [`policy_admission`]: handlers of Ephor's own kinds. [`http`]: both over HTTPS.
//! - [`webhooks`]: which requests come in. [`registration`]: which policies the API server knows. [`certs`]: how
//!   callers know the server. [`admission_policies`]: policies that the API server enforces by itself. [`generated`]:
//!   what became of them. [`status`]: which policies hold. [`leading`]: all that the leader does of it.

pub mod admission_policies;
pub mod certs;
pub mod generated;
pub mod http;
pub mod leading;
pub mod policy_admission;
pub mod registration;
pub mod review;
pub mod status;
pub mod webhooks;
