//! What a model of time is told of requests. The NIC itself has no notion of speed: it moves bytes when it comes to them, and tells before each change
//! what it is, so that somebody else can say when it would be seen.

/// A place in a memfd that processes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub inode: u64,
    /// Byte in the file.
    pub offset: u64,
}

/// A request that has passed all checks and is about to move its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executed {
    /// Queue pair.
    pub qp: usize,
    /// Opcode of the work request.
    pub opcode: u32,
    /// Bytes of the message.
    pub bytes: u64,
    /// It waits for the responses of the requests before it.
    pub strong: bool,
    /// For a request of at most 8 bytes: where its remote bytes are, and what the aligned word there holds now.
    pub word: Option<(Place, u64)>,
}

/// Told in mode [`super::Mode::Inline`], on the ringing thread.
pub trait Timing: Send + Sync {
    /// A request is about to move its bytes.
    fn request(&self, request: &Executed);
    /// The completion of the request just told is about to be written at `address`, whose word holds `before`.
    fn completion(&self, address: u64, before: u64);
}
