//! Characters that a reader does not see, but that change what he sees.
//!
//! Control characters move the cursor of a terminal and colour text; marks of writing direction put text in another
//! order than it is stored in; others have no width. Output writes them as escapes.

/// Whether `c` is a control character, a mark of writing direction, a separator of lines that editors do not show, or
/// another character without a shape. Joiners of Persian words and of emoji are not among them.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_direction_marks_are_unseen() {
        for c in ['\0', '\n', '\u{1b}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{e0041}'] {
            assert!(is_unseen(c), "{c:?}");
        }
        for c in ['a', ' ', 'é', '\u{5d0}', '\u{200d}', '漢', '\u{1f600}'] {
            assert!(!is_unseen(c), "{c:?}");
        }
    }
}
