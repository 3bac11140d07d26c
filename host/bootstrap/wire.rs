//! The store's frames: what travels between a PE and the job's store, and how bytes become frames again.
//!
//! What it is not: it does no input or output. Used by store.rs (server) and client.rs.
//!
//! A frame is a little-endian `u32` length, one kind byte (counted in the length), then the body. Integers are little-endian. A reader
//! gives bytes as they come, one at a time if need be, and gets whole messages out.

/// First word of a hello: "NPSH" in memory order.
pub const MAGIC: u32 = 0x4853_504e;
/// Version of this protocol.
pub const VERSION: u16 = 1;
/// Longest frame before a connection has been welcomed, bytes: a hello with the longest token fits.
pub const MAX_HELLO: u32 = 1024;
/// Longest contribution of one PE to an exchange, bytes.
pub const MAX_PAYLOAD: u32 = 64 << 20;
/// Longest frame of a welcomed PE, bytes.
pub const MAX_FRAME: u32 = MAX_PAYLOAD + 64;

/// What two sides of a store say to one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// PE to store, first of all.
    Hello {
        /// Number of the PE.
        pe: u32,
        /// PEs of the job, as this PE believes.
        n_pes: u32,
        /// Its process, for messages.
        pid: u32,
        /// The job's token.
        token: Vec<u8>,
    },
    /// PE to store: a contribution to the collective `seq`.
    Gather {
        /// Number of the collective, counted by each PE from 0.
        seq: u64,
        /// How long the store may wait for the others, milliseconds.
        deadline_ms: u64,
        /// What the PE is doing, to find calls that do not match.
        label: Label,
        /// Its bytes.
        payload: Vec<u8>,
    },
    /// PE to store: leaving in peace.
    Bye,
    /// PE to store: leaving with an error that the others should know.
    Abort {
        /// Why.
        reason: String,
    },
    /// Store to PE: come in.
    Welcome,
    /// Store to PE: stay out.
    Refused {
        /// Why.
        reason: String,
    },
    /// Store to PE: everybody's bytes, in the order of the PEs.
    Gathered {
        /// The collective.
        seq: u64,
        /// One entry a PE.
        payloads: Vec<Vec<u8>>,
    },
    /// Store to PE: the deadline of the collective passed.
    Late {
        /// The collective.
        seq: u64,
        /// PEs that did not come.
        missing: Vec<u32>,
    },
    /// Store to PE: the collective cannot end.
    Broken {
        /// The collective.
        seq: u64,
        /// Why.
        reason: String,
    },
    /// Store to PE: a PE died, or left with an error.
    Died {
        /// The PE.
        pe: u32,
        /// How.
        reason: String,
    },
}

/// What a PE does in a collective of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Label {
    /// All PEs have come.
    Join = 1,
    /// [`crate::World::barrier_all`].
    Barrier = 2,
    /// [`crate::World::exchange`].
    Exchange = 3,
    /// A step of the library's own set-up.
    Setup = 4,
    /// The last meeting.
    Finalize = 5,
}

impl Label {
    /// The word for messages.
    pub fn word(self) -> &'static str {
        match self {
            Label::Join => "init",
            Label::Barrier => "barrier_all",
            Label::Exchange => "exchange",
            Label::Setup => "set-up",
            Label::Finalize => "finalize",
        }
    }

    fn from_byte(byte: u8) -> Option<Label> {
        [
            Label::Join,
            Label::Barrier,
            Label::Exchange,
            Label::Setup,
            Label::Finalize,
        ]
        .into_iter()
        .find(|l| *l as u8 == byte)
    }
}

/// Bytes that are no frame of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Longer than accepted at this point.
    #[error("a frame of {length} bytes where at most {limit} are accepted")]
    TooLong {
        /// What the frame says.
        length: u32,
        /// The limit.
        limit: u32,
    },
    /// A frame of length 0.
    #[error("an empty frame")]
    Empty,
    /// No such kind.
    #[error("frame kind {0} does not exist")]
    Kind(u8),
    /// A body that ends early, has bytes left, or holds an impossible value.
    #[error("the body of a {0} frame is malformed")]
    Body(&'static str),
    /// Not our protocol.
    #[error("the first word is {0:#010x}, not npushmem's")]
    Magic(u32),
    /// Another version of our protocol.
    #[error("protocol version {0}; this side speaks {VERSION}: all PEs need the same npushmem")]
    Version(u16),
}

/// Bytes of `message` as a frame.
pub fn encode(message: &Message) -> Vec<u8> {
    let mut out = vec![0u8; 4];
    match message {
        Message::Hello {
            pe,
            n_pes,
            pid,
            token,
        } => {
            out.push(1);
            out.extend_from_slice(&MAGIC.to_le_bytes());
            out.extend_from_slice(&VERSION.to_le_bytes());
            for word in [*pe, *n_pes, *pid] {
                out.extend_from_slice(&word.to_le_bytes());
            }
            put_bytes(&mut out, token);
        }
        Message::Gather {
            seq,
            deadline_ms,
            label,
            payload,
        } => {
            out.push(2);
            out.extend_from_slice(&seq.to_le_bytes());
            out.extend_from_slice(&deadline_ms.to_le_bytes());
            out.push(*label as u8);
            put_bytes(&mut out, payload);
        }
        Message::Bye => out.push(3),
        Message::Abort { reason } => {
            out.push(4);
            put_bytes(&mut out, reason.as_bytes());
        }
        Message::Welcome => out.push(16),
        Message::Refused { reason } => {
            out.push(17);
            put_bytes(&mut out, reason.as_bytes());
        }
        Message::Gathered { seq, payloads } => {
            out.push(18);
            out.extend_from_slice(&seq.to_le_bytes());
            out.extend_from_slice(&(payloads.len() as u32).to_le_bytes());
            for payload in payloads {
                put_bytes(&mut out, payload);
            }
        }
        Message::Late { seq, missing } => {
            out.push(19);
            out.extend_from_slice(&seq.to_le_bytes());
            out.extend_from_slice(&(missing.len() as u32).to_le_bytes());
            for pe in missing {
                out.extend_from_slice(&pe.to_le_bytes());
            }
        }
        Message::Broken { seq, reason } => {
            out.push(20);
            out.extend_from_slice(&seq.to_le_bytes());
            put_bytes(&mut out, reason.as_bytes());
        }
        Message::Died { pe, reason } => {
            out.push(21);
            out.extend_from_slice(&pe.to_le_bytes());
            put_bytes(&mut out, reason.as_bytes());
        }
    }
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Bytes on their way to becoming messages.
#[derive(Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    start: usize,
}

impl Decoder {
    /// Adds what came from the connection.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        } else if self.start > 1 << 16 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, or `None` until more bytes come. Frames above `limit` bytes are refused before they are waited for.
    ///
    /// # Errors
    /// The bytes are no frame of ours; the connection is of no further use.
    pub fn next(&mut self, limit: u32) -> Result<Option<Message>, WireError> {
        let bytes = &self.bytes[self.start..];
        let Some(head) = bytes.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head);
        if length == 0 {
            return Err(WireError::Empty);
        }
        if length > limit {
            return Err(WireError::TooLong { length, limit });
        }
        let Some(frame) = bytes.get(4..4 + length as usize) else {
            return Ok(None);
        };
        let message = decode(frame)?;
        self.start += 4 + length as usize;
        Ok(Some(message))
    }
}

/// Takes a frame's body apart.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }
    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[b]: [u8; 1]| b)
    }
    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }
    fn text(&mut self) -> Option<String> {
        self.bytes()
            .map(|b| String::from_utf8_lossy(b).into_owned())
    }
    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

fn decode(frame: &[u8]) -> Result<Message, WireError> {
    let (&kind, body) = frame.split_first().ok_or(WireError::Empty)?;
    let mut body = Body(body);
    let whole = |name: &'static str, message: Option<Message>| message.ok_or(WireError::Body(name));
    match kind {
        1 => {
            let magic = body.u32().ok_or(WireError::Body("hello"))?;
            if magic != MAGIC {
                return Err(WireError::Magic(magic));
            }
            let version = body.u16().ok_or(WireError::Body("hello"))?;
            if version != VERSION {
                return Err(WireError::Version(version));
            }
            let mut rest = || {
                let (pe, n_pes, pid) = (body.u32()?, body.u32()?, body.u32()?);
                let token = body.bytes()?.to_vec();
                body.end()?;
                Some(Message::Hello {
                    pe,
                    n_pes,
                    pid,
                    token,
                })
            };
            whole("hello", rest())
        }
        2 => {
            let mut rest = || {
                let (seq, deadline_ms) = (body.u64()?, body.u64()?);
                let label = Label::from_byte(body.u8()?)?;
                let payload = body.bytes()?.to_vec();
                body.end()?;
                Some(Message::Gather {
                    seq,
                    deadline_ms,
                    label,
                    payload,
                })
            };
            whole("gather", rest())
        }
        3 => whole("bye", body.end().map(|()| Message::Bye)),
        4 => whole(
            "abort",
            body.text()
                .and_then(|reason| body.end().map(|()| Message::Abort { reason })),
        ),
        16 => whole("welcome", body.end().map(|()| Message::Welcome)),
        17 => whole(
            "refused",
            body.text()
                .and_then(|reason| body.end().map(|()| Message::Refused { reason })),
        ),
        18 => {
            let mut rest = || {
                let (seq, n) = (body.u64()?, body.u32()?);
                let mut payloads = Vec::new();
                for _ in 0..n {
                    payloads.push(body.bytes()?.to_vec());
                }
                body.end()?;
                Some(Message::Gathered { seq, payloads })
            };
            whole("gathered", rest())
        }
        19 => {
            let mut rest = || {
                let (seq, n) = (body.u64()?, body.u32()?);
                let mut missing = Vec::new();
                for _ in 0..n {
                    missing.push(body.u32()?);
                }
                body.end()?;
                Some(Message::Late { seq, missing })
            };
            whole("late", rest())
        }
        20 => {
            let mut rest = || {
                let (seq, reason) = (body.u64()?, body.text()?);
                body.end()?;
                Some(Message::Broken { seq, reason })
            };
            whole("broken", rest())
        }
        21 => {
            let mut rest = || {
                let (pe, reason) = (body.u32()?, body.text()?);
                body.end()?;
                Some(Message::Died { pe, reason })
            };
            whole("died", rest())
        }
        other => Err(WireError::Kind(other)),
    }
}

/// Whether two tokens are equal, in a time that does not depend on where they differ.
pub fn same_token(a: &[u8], b: &[u8]) -> bool {
    let mut difference = a.len() ^ b.len();
    for i in 0..a.len().max(b.len()) {
        let (x, y) = (
            a.get(i).copied().unwrap_or(0),
            b.get(i).copied().unwrap_or(0),
        );
        difference |= usize::from(std::hint::black_box(x ^ y));
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_message() -> impl Strategy<Value = Message> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
        let text = || ".{0,20}";
        prop_oneof![
            (any::<u32>(), any::<u32>(), any::<u32>(), bytes()).prop_map(
                |(pe, n_pes, pid, token)| Message::Hello {
                    pe,
                    n_pes,
                    pid,
                    token
                }
            ),
            (any::<u64>(), any::<u64>(), 1u8..=5, bytes()).prop_map(
                |(seq, deadline_ms, label, payload)| Message::Gather {
                    seq,
                    deadline_ms,
                    label: Label::from_byte(label).expect("label"),
                    payload
                }
            ),
            Just(Message::Bye),
            text().prop_map(|reason| Message::Abort { reason }),
            Just(Message::Welcome),
            text().prop_map(|reason| Message::Refused { reason }),
            (any::<u64>(), proptest::collection::vec(bytes(), 0..5))
                .prop_map(|(seq, payloads)| Message::Gathered { seq, payloads }),
            (any::<u64>(), proptest::collection::vec(any::<u32>(), 0..5))
                .prop_map(|(seq, missing)| Message::Late { seq, missing }),
            (any::<u64>(), text()).prop_map(|(seq, reason)| Message::Broken { seq, reason }),
            (any::<u32>(), text()).prop_map(|(pe, reason)| Message::Died { pe, reason }),
        ]
    }

    proptest! {
        #[test]
        fn frames_come_back_however_the_bytes_are_cut(messages in proptest::collection::vec(any_message(), 1..6), cut in 1usize..9) {
            let bytes: Vec<u8> = messages.iter().flat_map(encode).collect();
            let mut decoder = Decoder::default();
            let mut seen = Vec::new();
            for part in bytes.chunks(cut) {
                decoder.feed(part);
                while let Some(message) = decoder.next(MAX_FRAME).expect("frame") {
                    seen.push(message);
                }
            }
            prop_assert_eq!(seen, messages);
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_waited_for_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = Decoder::default();
            decoder.feed(&bytes);
            while let Ok(Some(_)) = decoder.next(MAX_HELLO) {}
        }

        #[test]
        fn a_damaged_frame_is_refused_or_another_frame(message in any_message(), at in any::<usize>(), value in any::<u8>()) {
            let mut bytes = encode(&message);
            let at = at % bytes.len();
            bytes[at] = value;
            let mut decoder = Decoder::default();
            decoder.feed(&bytes);
            while let Ok(Some(_)) = decoder.next(MAX_FRAME) {}
        }

        #[test]
        fn tokens_are_equal_only_byte_for_byte(a in proptest::collection::vec(any::<u8>(), 0..8), b in proptest::collection::vec(any::<u8>(), 0..8)) {
            prop_assert_eq!(same_token(&a, &b), a == b);
            prop_assert!(same_token(&a, &a));
        }
    }

    #[test]
    fn a_frame_above_the_limit_is_refused_before_its_bytes_come() {
        let mut decoder = Decoder::default();
        decoder.feed(&u32::MAX.to_le_bytes());
        assert_eq!(
            decoder.next(MAX_HELLO),
            Err(WireError::TooLong {
                length: u32::MAX,
                limit: MAX_HELLO
            })
        );
    }

    #[test]
    fn http_at_the_stores_port_is_refused() {
        let mut decoder = Decoder::default();
        decoder.feed(b"GET / HTTP/1.1\r\n\r\n");
        assert!(decoder.next(MAX_HELLO).is_err());
    }
}
