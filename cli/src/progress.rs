//! Progress bars on stderr, drawn only when stderr is a terminal. Every long step of a command has one.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `bytes` of a file.
pub fn bytes(what: &str, bytes: u64) -> ProgressBar {
    bar(
        what,
        bytes,
        "{prefix:>12} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
    )
}

/// A bar over `count` things.
pub fn count(what: &str, count: u64) -> ProgressBar {
    bar(
        what,
        count,
        "{prefix:>12} [{bar:30}] {human_pos}/{human_len} {eta}",
    )
}

/// A spinner for a step without a known length.
pub fn spinner(what: &str) -> ProgressBar {
    let spinner = bar(what, 0, "{prefix:>12} {spinner} {elapsed}");
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

fn bar(what: &str, length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // The templates are constants; one that did not parse would only lose its looks.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(what.to_owned());
    bar
}
