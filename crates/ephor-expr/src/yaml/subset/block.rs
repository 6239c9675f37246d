//! Block structure of the subset: lines, indentation, keys and dashes.

use super::cursor::{Cursor, GiveUp};
use super::flow::flow_collection;
use super::scalar::{Context, absent};
use crate::yaml::build::{Builder, Built, Collection};
use crate::yaml::options::Options;
use crate::yaml::trace::Trace;

/// The documents of `text`; `None` when it is outside of the subset, faulty or over a limit.
pub(in crate::yaml) fn build<T: Trace>(text: &str, options: &Options) -> Option<Vec<Built<T::Node>>> {
    let mut builder = Builder::<T>::new(options);
    let cursor = Cursor { text, at: 0 };
    let mut scanner = Scanner { cursor, builder: &mut builder, blocks: Vec::new(), has_root: false, is_marked: false };
    scanner.text().ok()?;
    Some(builder.finish())
}

/// An open block collection.
struct Block {
    collection: Collection,
    /// The column of its keys or dashes.
    indent: usize,
    /// Where a key or dash ends that still has no value.
    awaiting: Option<usize>,
}

struct Scanner<'s, 't, 'o, T: Trace> {
    cursor: Cursor<'t>,
    builder: &'s mut Builder<'o, T>,
    blocks: Vec<Block>,
    /// Whether the document has a value, finished or not.
    has_root: bool,
    /// Whether the document starts with a marker.
    is_marked: bool,
}

impl<T: Trace> Scanner<'_, '_, '_, T> {
    fn text(&mut self) -> Result<(), GiveUp> {
        while !self.cursor.at_end() {
            self.line()?;
        }
        self.end_document()
    }

    /// Reads from the start of a line to the start of another.
    fn line(&mut self) -> Result<(), GiveUp> {
        let start = self.cursor.at;
        self.cursor.skip_spaces();
        let indent = self.cursor.at - start;
        match self.cursor.here() {
            b'\n' => {
                self.cursor.at += 1;
                return Ok(());
            }
            b'#' => {
                self.cursor.skip_comment()?;
                self.cursor.at += 1;
                return Ok(());
            }
            _ if indent == 0 && self.cursor.is_marker(start) => return self.marker(),
            _ => {}
        }
        if !self.has_root && !self.is_marked {
            self.builder.begin_document(self.cursor.at as u32);
        }
        self.close_to(indent)?;
        self.content(indent)
    }

    /// The start of another document.
    fn marker(&mut self) -> Result<(), GiveUp> {
        let start = self.cursor.at;
        if self.cursor.here() != b'-' {
            return Err(GiveUp);
        }
        self.cursor.at += 3;
        self.cursor.finish_line()?;
        self.end_document()?;
        self.is_marked = true;
        self.builder.begin_document(start as u32);
        Ok(())
    }

    fn end_document(&mut self) -> Result<(), GiveUp> {
        while !self.blocks.is_empty() {
            self.close_block()?;
        }
        self.builder.end_document();
        self.has_root = false;
        Ok(())
    }

    /// Ends the collections that a line at column `indent` does not belong to.
    fn close_to(&mut self, indent: usize) -> Result<(), GiveUp> {
        let dash = self.is_dash();
        while let Some(top) = self.blocks.last() {
            if top.indent < indent {
                // Only what still lacks its value goes on further to the right.
                return if top.awaiting.is_some() { Ok(()) } else { Err(GiveUp) };
            }
            if top.indent == indent {
                match (top.collection, dash) {
                    (Collection::Array, true) | (Collection::Object, false) => return self.fill(),
                    // A list may stand right below its key.
                    (Collection::Object, true) => return if top.awaiting.is_some() { Ok(()) } else { Err(GiveUp) },
                    (Collection::Array, false) => {}
                }
            }
            self.close_block()?;
        }
        if self.has_root { Err(GiveUp) } else { Ok(()) }
    }

    fn close_block(&mut self) -> Result<(), GiveUp> {
        self.fill()?;
        self.blocks.pop();
        Ok(self.builder.end(None)?)
    }

    /// Gives the innermost collection the null that it still waits for.
    fn fill(&mut self) -> Result<(), GiveUp> {
        if let Some(offset) = self.blocks.last_mut().and_then(|top| top.awaiting.take()) {
            self.builder.scalar(absent(offset))?;
        }
        Ok(())
    }

    fn is_dash(&self) -> bool {
        self.cursor.here() == b'-' && self.cursor.is_blank(self.cursor.at + 1)
    }

    /// A value is about to begin: whatever waited for it waits no more. There must be something that did.
    fn begin_value(&mut self) -> Result<(), GiveUp> {
        if let Some(top) = self.blocks.last_mut() {
            return top.awaiting.take().map(|_| ()).ok_or(GiveUp);
        }
        self.has_root = true;
        Ok(())
    }

    fn open(&mut self, collection: Collection, indent: usize) -> Result<(), GiveUp> {
        self.begin_value()?;
        self.builder.begin(collection, 0, self.cursor.at as u32)?;
        self.blocks.push(Block { collection, indent, awaiting: None });
        Ok(())
    }

    /// Reads dashes, a key and a value, as many of these as there are, to the end of the line or of the value.
    /// `column` is that of the cursor.
    fn content(&mut self, mut column: usize) -> Result<(), GiveUp> {
        while self.is_dash() {
            if !matches!(self.blocks.last(), Some(Block { collection: Collection::Array, indent, .. }) if *indent == column)
            {
                self.open(Collection::Array, column)?;
            }
            let dash = self.cursor.at;
            self.cursor.at += 1;
            self.wait();
            if self.at_line_end()? {
                return Ok(());
            }
            column += self.cursor.at - dash;
        }
        if matches!(self.cursor.here(), b'[' | b'{' | b'|' | b'>') {
            return self.value();
        }
        let start = self.cursor.at;
        let token = self.cursor.token(Context::Block)?;
        if !token.is_key {
            if self.blocks.is_empty() {
                return Err(GiveUp);
            }
            self.begin_value()?;
            self.builder.scalar(token.scalar)?;
            return self.cursor.finish_line();
        }
        if !matches!(self.blocks.last(), Some(Block { collection: Collection::Object, indent, .. }) if *indent == column)
        {
            let colon = std::mem::replace(&mut self.cursor.at, start);
            self.open(Collection::Object, column)?;
            self.cursor.at = colon;
        }
        self.builder.scalar(token.scalar)?;
        self.cursor.at += 1;
        self.wait();
        if self.at_line_end()? { Ok(()) } else { self.value() }
    }

    /// The innermost collection waits for a value from here on.
    fn wait(&mut self) {
        if let Some(top) = self.blocks.last_mut() {
            top.awaiting = Some(self.cursor.at);
        }
    }

    /// Skips spaces; whether the line is over then, in which case the cursor is on the next.
    fn at_line_end(&mut self) -> Result<bool, GiveUp> {
        self.cursor.skip_spaces();
        match self.cursor.here() {
            b'\n' => {}
            b'#' => self.cursor.skip_comment()?,
            _ => return Ok(false),
        }
        self.cursor.at += 1;
        Ok(true)
    }

    /// A value on the line of its key or dash.
    fn value(&mut self) -> Result<(), GiveUp> {
        self.begin_value()?;
        match self.cursor.here() {
            b'[' | b'{' => {
                flow_collection(&mut self.cursor, self.builder)?;
                self.cursor.finish_line()
            }
            b'|' | b'>' => {
                let parent = self.blocks.last().ok_or(GiveUp)?.indent;
                let scalar = self.cursor.block_scalar(parent)?;
                Ok(self.builder.scalar(scalar)?)
            }
            _ => {
                let token = self.cursor.token(Context::Block)?;
                if token.is_key {
                    return Err(GiveUp);
                }
                self.builder.scalar(token.scalar)?;
                self.cursor.finish_line()
            }
        }
    }
}
