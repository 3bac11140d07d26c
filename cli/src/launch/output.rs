//! The PEs' output, line by line with a prefix, never two lines mixed.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::LaunchError;

/// A line longer than this is passed on in pieces.
const LONGEST_LINE: u64 = 64 << 10; // bytes
/// How long output is waited for after the last PE has ended: only something that a PE left running outside its group can hold it back.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The threads that pass output on.
pub struct Output {
    done: Sender<()>,
    all_done: Receiver<()>,
    threads: RefCell<usize>,
    /// Why output could not be written: the first reason.
    lost: Arc<Mutex<Option<std::io::Error>>>,
}

impl Default for Output {
    fn default() -> Self {
        let (done, all_done) = channel();
        Self {
            done,
            all_done,
            threads: RefCell::new(0),
            lost: Arc::default(),
        }
    }
}

impl Output {
    /// Takes the pipes of a child: output is passed on from now on, the pipe to its stdin is returned.
    pub fn attach(
        &self,
        mut child: Child,
        pe: u32,
        prefix: Option<&str>,
    ) -> Result<(Child, Option<ChildStdin>), LaunchError> {
        let prefix = prefix.unwrap_or_default().replace("{pe}", &pe.to_string());
        let stdin = child.stdin.take();
        let mut streams: Vec<(Box<dyn Read + Send>, bool)> = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            streams.push((Box::new(stdout), false));
        }
        if let Some(stderr) = child.stderr.take() {
            streams.push((Box::new(stderr), true));
        }
        for (stream, is_error) in streams {
            let (done, prefix) = (self.done.clone(), prefix.clone());
            let lost = self.lost.clone();
            let thread = thread::Builder::new()
                .name(format!("npushmem-output-{pe}"))
                .spawn(move || {
                    let passed = if is_error {
                        pass_on(stream, &prefix, || std::io::stderr().lock())
                    } else {
                        pass_on(stream, &prefix, || std::io::stdout().lock())
                    };
                    if let Err(error) = passed {
                        let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
                        lost.get_or_insert(error);
                    }
                    // Nobody may be waiting any more.
                    let _ = done.send(());
                });
            if let Err(source) = thread {
                let _ = child.kill();
                let _ = child.wait();
                return Err(LaunchError::System {
                    what: "a thread for output",
                    source,
                });
            }
            *self.threads.borrow_mut() += 1;
        }
        Ok((child, stdin))
    }

    /// Returns when all output has been passed on, or after a moment; the reason when some could not be written.
    pub fn finish(self) -> Option<std::io::Error> {
        let deadline = Instant::now() + LAST_WORDS;
        for _ in 0..self.threads.into_inner() {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.all_done.recv_timeout(left).is_err() {
                break;
            }
        }
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.take()
    }
}

/// Copies lines until the stream ends or nobody reads ours any more; then the PE's next write fails as it would without us. An error is what
/// kept a line from being written, other than a reader that has gone away.
fn pass_on<W: Write>(stream: impl Read, prefix: &str, open: impl Fn() -> W) -> std::io::Result<()> {
    let mut reader = BufReader::with_capacity(LONGEST_LINE as usize, stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        line.extend_from_slice(prefix.as_bytes());
        let read = (&mut reader)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(bytes) if bytes > 0) {
            return Ok(());
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        let mut target = open();
        match target.write_all(&line).and_then(|()| target.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_gets_the_prefix_and_the_last_one_an_end() {
        let sink = Arc::new(Mutex::new(Vec::new()));
        pass_on(&b"one\n\ntwo"[..], "[3] ", || Shared(sink.clone())).unwrap();
        assert_eq!(
            String::from_utf8(sink.lock().unwrap().clone()).unwrap(),
            "[3] one\n[3] \n[3] two\n"
        );
    }
}
