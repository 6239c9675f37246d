//! Resources through a plan, on all cores, in order.
//!
//! A reader splits files into documents, or lists the objects of a cluster, and hands them out in chunks; workers parse
//! and judge them; the caller's thread puts the results back in order. A fixed number of chunks is under way at a time:
//! the reader waits for slow workers, and for the chunk that all results after it wait for.

use std::collections::BTreeMap;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use ephor_cluster::object;
use ephor_expr::Value;
use ephor_expr::yaml::{DocumentStream, RawDocument, StreamError};
use parking_lot::Mutex;

use super::existing::KindOfObjects;
use super::judge::{Judged, Place};
use super::plan::Plan;
use crate::load::read_resources;
use crate::locate::{Located, SourceFile};

/// Where resources are read.
#[derive(Debug, Clone)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// Text in memory.
    Text(Arc<SourceFile>),
    /// The objects of a kind in a cluster.
    Existing(KindOfObjects),
}

/// Something to judge.
enum Item {
    /// What stands in a document.
    Document(RawDocument),
    /// An object.
    Object(Value),
}

/// Documents that travel together.
struct Chunk {
    number: u64,
    items: Vec<(Arc<str>, Item)>,
    faults: Vec<Located>,
}

/// A chunk has about this much text: enough that handing it over costs nothing, little enough that the cores stay
/// busy to the end.
const CHUNK_BYTES: usize = 64 << 10;
/// The number of objects in a chunk if their size is not known.
const CHUNK_OBJECTS: usize = 25;
/// So many chunks for each worker are under way, from reading to taking their results.
const CHUNKS_UNDER_WAY: usize = 8;

/// Judges all resources of `inputs` and gives what they come to, in input order, to `take`; it ends early when `take`
/// fails.
pub fn run<E>(plan: &Plan, inputs: &[Input], mut take: impl FnMut(Judged) -> Result<(), E>) -> Result<(), E> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(16);
    let (chunks, queue) = sync_channel::<Chunk>(workers * 2);
    let (done, results) = sync_channel::<Judged>(workers * 2);
    let (under_way, finished) = sync_channel::<()>(workers * CHUNKS_UNDER_WAY);
    // Workers own the queue together: when the last one leaves, the reader's sends fail and it leaves too.
    let queue = Arc::new(Mutex::new(queue));
    std::thread::scope(|scope| {
        scope.spawn(move || Reader::new(chunks, under_way).read_all(inputs));
        for _ in 0..workers {
            let (queue, done) = (Arc::clone(&queue), done.clone());
            scope.spawn(move || work(plan, &queue, &done));
        }
        drop((queue, done));
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for judged in results {
            waiting.insert(judged.chunk, judged);
            while let Some(judged) = waiting.remove(&next) {
                take(judged)?;
                next += 1;
                // This frees the place of the chunk. It fails if the reader has ended, which needs no place any more.
                let _ = finished.recv();
            }
        }
        Ok(())
    })
}

fn work(plan: &Plan, queue: &Mutex<Receiver<Chunk>>, done: &SyncSender<Judged>) {
    loop {
        let received = queue.lock().recv();
        let Ok(chunk) = received else { return };
        let mut judged = Judged { chunk: chunk.number, faults: chunk.faults, ..Judged::default() };
        for (file, item) in &chunk.items {
            // A fault of Ephor's own ends one document, not the run; the exit code says that something was not done.
            let judging = AssertUnwindSafe(|| match item {
                Item::Document(document) => plan.judge_document(document, file, &mut judged),
                Item::Object(object) => plan.judge(object.clone(), &Place::new(Arc::clone(file), 0), &mut judged),
            });
            if catch_unwind(judging).is_err() {
                let place = match item {
                    Item::Document(document) => document.first_line.to_string(),
                    Item::Object(object) => format!("{}/{}", object::namespace(object), object::name(object)),
                };
                let message = format!("{file}:{place}: ephor failed at this document: please report it");
                judged.faults.push(Located::plain("internal", message));
            }
        }
        if done.send(judged).is_err() {
            return;
        }
    }
}

/// The receiver of documents is gone.
struct Stopped;

struct Reader {
    chunks: SyncSender<Chunk>,
    /// Holds one entry for each chunk that is under way; sending waits while it is full.
    under_way: SyncSender<()>,
    number: u64,
    next: Vec<(Arc<str>, Item)>,
    bytes: usize,
}

impl Reader {
    fn new(chunks: SyncSender<Chunk>, under_way: SyncSender<()>) -> Self {
        Self { chunks, under_way, number: 0, next: Vec::new(), bytes: 0 }
    }

    fn read_all(mut self, inputs: &[Input]) {
        for input in inputs {
            let read = match input {
                Input::File(path) => match read_resources(path) {
                    Ok(stream) => self.read(stream, &path_name(path)),
                    Err(error) => {
                        let message = format!("cannot read `{}`: {error}", path.display());
                        self.fault(Located::plain("unreadable", message))
                    }
                },
                Input::Text(file) => {
                    self.read(DocumentStream::new(file.text.as_bytes()), &Arc::from(file.name.as_str()))
                }
                Input::Existing(objects) => self.read_existing(objects),
            };
            if read.is_err() {
                return;
            }
        }
        // A failed send means that the receiver has stopped.
        let _ = self.send(Vec::new());
    }

    fn read(&mut self, stream: DocumentStream<impl Read>, name: &Arc<str>) -> Result<(), Stopped> {
        for document in stream {
            match document {
                Ok(document) => {
                    self.bytes += document.text.len();
                    self.next.push((Arc::clone(name), Item::Document(document)));
                    if self.bytes >= CHUNK_BYTES {
                        self.send(Vec::new())?;
                    }
                }
                Err(StreamError::Io(error)) => {
                    self.fault(Located::plain("unreadable", format!("cannot read `{name}`: {error}")))?;
                }
                Err(StreamError::Text(error)) => {
                    let source = SourceFile { name: name.to_string(), text: String::new() };
                    self.fault(Located::of_yaml(error, &Arc::new(source)))?;
                }
            }
        }
        Ok(())
    }

    fn read_existing(&mut self, objects: &KindOfObjects) -> Result<(), Stopped> {
        let name: Arc<str> = Arc::from(objects.resource.qualified_plural());
        let read = objects.read(|page| {
            for object in page {
                self.next.push((Arc::clone(&name), Item::Object(object)));
                if self.next.len() >= CHUNK_OBJECTS {
                    self.send(Vec::new())?;
                }
            }
            Ok(())
        });
        match read {
            Ok(taken) => taken,
            Err(error) => self.fault(Located::plain("cluster", format!("cannot list {name}: {error}"))),
        }
    }

    /// Sends what was read so far, then the fault, so that order is kept.
    fn fault(&mut self, fault: Located) -> Result<(), Stopped> {
        self.send(Vec::new())?;
        self.send(vec![fault])
    }

    fn send(&mut self, faults: Vec<Located>) -> Result<(), Stopped> {
        let items = std::mem::take(&mut self.next);
        if items.is_empty() && faults.is_empty() {
            return Ok(());
        }
        let chunk = Chunk { number: self.number, items, faults };
        self.number += 1;
        self.bytes = 0;
        self.under_way.send(()).map_err(|_| Stopped)?;
        self.chunks.send(chunk).map_err(|_| Stopped)
    }
}

fn path_name(path: &Path) -> Arc<str> {
    Arc::from(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_waits_for_the_oldest_chunk() {
        let (chunks, queue) = sync_channel(100);
        let (under_way, finished) = sync_channel(2);
        let text = Arc::new(SourceFile { name: "a".to_owned(), text: "x".repeat(CHUNK_BYTES) });
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let inputs = vec![Input::Text(text); 5];
                Reader::new(chunks, under_way).read_all(&inputs);
            });
            let read = |n: usize| (0..n).map(|_| queue.recv().unwrap().number).collect::<Vec<_>>();
            assert_eq!(read(2), [0, 1]);
            // The third chunk is read, and waits for a place.
            assert!(!reader.is_finished() && queue.try_recv().is_err());
            finished.recv().unwrap();
            assert_eq!(read(1), [2]);
            drop(finished);
        });
        assert!(queue.iter().next().is_none());
    }
}
