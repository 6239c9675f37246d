//! Input and output on a thread of their own.

use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// A runtime that blocking callers can wait on from anywhere.
pub(crate) struct Background {
    /// Taken when dropped.
    runtime: Option<Runtime>,
}

impl Background {
    pub(crate) fn start() -> std::io::Result<Self> {
        // One worker: it moves bytes, callers read the documents in them.
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("ephor-kube").enable_all().build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs `work` and waits for it; `None` if it died of a panic.
    ///
    /// The caller waits on a channel: a runtime's own way of blocking panics on threads of another runtime.
    pub(crate) fn wait<T, F>(&self, work: F) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let (answer, answered) = mpsc::sync_channel(1);
        self.runtime.as_ref()?.spawn(async move {
            // A failed send means that the caller is gone.
            let _ = answer.send(work.await);
        });
        answered.recv().ok()
    }

    /// Runs `work` for at most `limit`; `None` if it was not done by then.
    pub(crate) fn wait_for<T, F>(&self, limit: Duration, work: F) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        self.wait(async move { tokio::time::timeout(limit, work).await.ok() }).flatten()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Dropping a runtime waits for it, which is forbidden on the threads of another one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_works_on_the_threads_of_another_runtime() {
        let outer = Builder::new_current_thread().build().unwrap();
        let answer = outer.block_on(async {
            let background = Background::start().unwrap();
            background.wait(async { 1 })
        });
        assert_eq!(answer, Some(1));
    }

    #[test]
    fn a_panic_is_no_answer() {
        let background = Background::start().unwrap();
        assert_eq!(background.wait(async { assert!(std::hint::black_box(false), "expected") }), None);
        assert_eq!(background.wait(async { 2 }), Some(2));
    }

    #[test]
    fn waiting_ends_with_the_time() {
        let background = Background::start().unwrap();
        assert_eq!(background.wait_for(Duration::ZERO, std::future::pending::<()>()), None);
    }
}
