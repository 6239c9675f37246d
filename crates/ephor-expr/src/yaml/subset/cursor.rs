//! The place in the text, and what a byte means there.

/// The text is outside of the subset, or faulty.
#[derive(Debug)]
pub(super) struct GiveUp;

impl From<crate::yaml::error::Fault> for GiveUp {
    fn from(_: crate::yaml::error::Fault) -> Self {
        GiveUp
    }
}

/// What a byte is inside of text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Nothing but itself.
    Ordinary,
    LineBreak,
    Colon,
    Hash,
    /// `,`, a bracket or a brace.
    Flow,
    /// The first byte of a character that may be one that YAML forbids or treats on its own.
    Suspect,
    /// Control characters, among them tabs and carriage returns.
    Control,
}

#[expect(clippy::indexing_slicing, reason = "checked when it is compiled")]
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Ordinary; 256];
    let mut control = 0;
    while control < 0x20 {
        classes[control] = Class::Control;
        control += 1;
    }
    classes[0x7f] = Class::Control;
    classes[b'\n' as usize] = Class::LineBreak;
    classes[b':' as usize] = Class::Colon;
    classes[b'#' as usize] = Class::Hash;
    classes[b',' as usize] = Class::Flow;
    classes[b'[' as usize] = Class::Flow;
    classes[b']' as usize] = Class::Flow;
    classes[b'{' as usize] = Class::Flow;
    classes[b'}' as usize] = Class::Flow;
    // U+0080 to U+00BF; U+2000 to U+2FFF; U+F000 to U+FFFF.
    classes[0xc2] = Class::Suspect;
    classes[0xe2] = Class::Suspect;
    classes[0xef] = Class::Suspect;
    classes
};

/// The class of `byte`.
#[expect(clippy::indexing_slicing, reason = "every byte has a class")]
pub(super) fn class(byte: u8) -> Class {
    CLASSES[byte as usize]
}

/// A place in a text.
pub(super) struct Cursor<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
}

impl<'t> Cursor<'t> {
    /// The byte at `offset`; the end of the text looks like a line break.
    pub(super) fn byte(&self, offset: usize) -> u8 {
        self.text.as_bytes().get(offset).copied().unwrap_or(b'\n')
    }

    /// The byte here.
    pub(super) fn here(&self) -> u8 {
        self.byte(self.at)
    }

    pub(super) fn at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    pub(super) fn slice(&self, from: usize, to: usize) -> Result<&'t str, GiveUp> {
        self.text.get(from..to).ok_or(GiveUp)
    }

    /// Whether a space or the end of the line is at `offset`.
    pub(super) fn is_blank(&self, offset: usize) -> bool {
        matches!(self.byte(offset), b' ' | b'\n')
    }

    pub(super) fn skip_spaces(&mut self) {
        while self.here() == b' ' {
            self.at += 1;
        }
    }

    /// Goes on to the next line when nothing but spaces and a comment is left on this one.
    pub(super) fn finish_line(&mut self) -> Result<(), GiveUp> {
        let from = self.at;
        self.skip_spaces();
        match self.here() {
            b'\n' => {}
            // A comment needs white space before it.
            b'#' if self.at > from => self.skip_comment()?,
            _ => return Err(GiveUp),
        }
        self.at += 1;
        Ok(())
    }

    /// From a `#` to the end of its line.
    pub(super) fn skip_comment(&mut self) -> Result<(), GiveUp> {
        loop {
            match class(self.here()) {
                Class::LineBreak => return Ok(()),
                Class::Control => return Err(GiveUp),
                Class::Suspect => self.check_suspect(self.at)?,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Gives up on characters at `offset` that YAML does not take as text: control characters, byte order marks,
    /// non-characters, line breaks of Unicode.
    pub(super) fn check_suspect(&self, offset: usize) -> Result<(), GiveUp> {
        let (second, third) = (self.byte(offset + 1), self.byte(offset + 2));
        match (self.byte(offset), second, third) {
            (0xc2, 0x80..=0x9f, _) | (0xe2, 0x80, 0xa8 | 0xa9) | (0xef, 0xbb, 0xbf) | (0xef, 0xbf, 0xbe | 0xbf) => {
                Err(GiveUp)
            }
            _ => Ok(()),
        }
    }

    /// Whether a line that marks documents (`---`, `...`) starts at `offset`.
    pub(super) fn is_marker(&self, offset: usize) -> bool {
        let rest = self.text.as_bytes().get(offset..).unwrap_or_default();
        rest.starts_with(b"---") || rest.starts_with(b"...")
    }
}
