//! Flow collections of the subset, JSON among them.

use super::cursor::{Cursor, GiveUp};
use super::scalar::Context;
use crate::yaml::build::{Builder, Collection};
use crate::yaml::trace::Trace;

/// Reads the flow collection at the cursor into `builder`; the cursor ends behind it.
pub(super) fn flow_collection<T: Trace>(cursor: &mut Cursor<'_>, builder: &mut Builder<'_, T>) -> Result<(), GiveUp> {
    let mut open: Vec<Collection> = Vec::new();
    loop {
        // A value is next.
        match cursor.here() {
            b'[' | b'{' => {
                let collection = if cursor.here() == b'[' { Collection::Array } else { Collection::Object };
                builder.begin(collection, 0, cursor.at as u32)?;
                open.push(collection);
                cursor.at += 1;
            }
            _ => {
                let token = cursor.token(Context::Flow)?;
                if token.is_key {
                    return Err(GiveUp);
                }
                builder.scalar(token.scalar)?;
                separator(cursor)?;
            }
        }
        // Behind an opening bracket, a value or a comma.
        loop {
            skip_blank(cursor)?;
            let Some(collection) = open.last() else { return Ok(()) };
            let closing = if *collection == Collection::Array { b']' } else { b'}' };
            if cursor.here() == closing {
                cursor.at += 1;
                builder.end(Some(cursor.at as u32))?;
                open.pop();
                if open.is_empty() {
                    return Ok(());
                }
                separator(cursor)?;
                continue;
            }
            if *collection == Collection::Object {
                let token = cursor.token(Context::Flow)?;
                if !token.is_key {
                    return Err(GiveUp);
                }
                builder.scalar(token.scalar)?;
                cursor.at += 1;
                skip_blank(cursor)?;
            }
            break;
        }
    }
}

/// Behind a value: a comma, which is passed, or a closing bracket, which is not.
fn separator(cursor: &mut Cursor<'_>) -> Result<(), GiveUp> {
    skip_blank(cursor)?;
    match cursor.here() {
        b',' => cursor.at += 1,
        b']' | b'}' => {}
        _ => return Err(GiveUp),
    }
    Ok(())
}

/// Spaces, line breaks and comments.
fn skip_blank(cursor: &mut Cursor<'_>) -> Result<(), GiveUp> {
    loop {
        match cursor.here() {
            b' ' => cursor.at += 1,
            b'\n' if cursor.at_end() => return Err(GiveUp),
            b'\n' => {
                cursor.at += 1;
                if cursor.is_marker(cursor.at) {
                    return Err(GiveUp);
                }
            }
            b'#' if matches!(cursor.byte(cursor.at - 1), b' ' | b'\n') => cursor.skip_comment()?,
            _ => return Ok(()),
        }
    }
}
