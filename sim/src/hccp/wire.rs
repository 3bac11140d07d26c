//! The emulated management network: names, sockets and packets between the HCCP agents of processes on one machine.
//!
//! A NIC address and port become the abstract unix socket `npusim/<uid>/<job>/<ip>/<port>`, which the kernel forgets with its process. Packets
//! are datagrams of a connection (SOCK_SEQPACKET), all of one size, so that none is ever half there. Sockets never block. This file decides
//! nothing; `agent.rs` calls it.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytemuck::{Pod, Zeroable};
use npushmem_roce::nic::QpAddress;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

/// Bytes of a connection tag (`tag` of the HCCP socket structures).
pub const TAG_BYTES: usize = 192;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// Longest abstract name: `sun_path` has 108 bytes, the first is the NUL that marks it abstract.
const NAME_MAX: usize = 107;
/// First word of every packet, "NPHC" in memory order.
const MAGIC: u32 = u32::from_le_bytes(*b"NPHC");
/// Version of the packets.
const VERSION: u32 = 1;
/// Payload of a packet in bytes.
const BODY_BYTES: usize = 256;

/// A connection's tag, compared byte by byte.
pub type Tag = [u8; TAG_BYTES];

const KIND_HELLO: u32 = 1;
const KIND_ACCEPT: u32 = 2;
const KIND_REFUSE: u32 = 3;
const KIND_ADDRESS: u32 = 4;
const KIND_READY: u32 = 5;
const KIND_ABORT: u32 = 6;

/// What agents say to one another.
#[derive(Clone, Debug)]
pub enum Message {
    /// Client to server, first: where I come from and the tag of this connection.
    Hello {
        /// Address of the client's NIC.
        from: Ipv4Addr,
        /// Tag of the connection.
        tag: Tag,
    },
    /// Server to client: the white list admits you.
    Accept,
    /// Server to client: it does not, and will not.
    Refuse,
    /// Either way: the address of queue pair number `seq` of this connection.
    Address {
        /// How many queue pairs this end connected over the connection before.
        seq: u32,
        /// Where the queue pair is.
        address: QpAddress,
    },
    /// Either way: queue pair number `seq` of the sender can take requests.
    Ready {
        /// Number of the queue pair on this connection.
        seq: u32,
    },
    /// Either way: queue pair number `seq` of the sender will not be connected.
    Abort {
        /// Number of the queue pair on this connection.
        seq: u32,
    },
}

/// A packet as it travels; both ends run on one machine, so byte order is its own.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Packet {
    magic: u32,
    version: u32,
    kind: u32,
    seq: u32,
    body: [u8; BODY_BYTES],
}

const _: () = assert!(
    size_of::<QpAddress>() <= BODY_BYTES,
    "a queue pair's address must fit a packet"
);
const _: () = assert!(
    4 + TAG_BYTES <= BODY_BYTES,
    "an address and a tag must fit a packet"
);

impl Message {
    fn encode(&self) -> Packet {
        let mut packet = Packet {
            magic: MAGIC,
            version: VERSION,
            ..Packet::zeroed()
        };
        match self {
            Self::Hello { from, tag } => {
                packet.kind = KIND_HELLO;
                packet.body[..4].copy_from_slice(&from.octets());
                packet.body[4..4 + TAG_BYTES].copy_from_slice(tag);
            }
            Self::Accept => packet.kind = KIND_ACCEPT,
            Self::Refuse => packet.kind = KIND_REFUSE,
            Self::Address { seq, address } => {
                (packet.kind, packet.seq) = (KIND_ADDRESS, *seq);
                packet.body[..size_of::<QpAddress>()].copy_from_slice(bytemuck::bytes_of(address));
            }
            Self::Ready { seq } => (packet.kind, packet.seq) = (KIND_READY, *seq),
            Self::Abort { seq } => (packet.kind, packet.seq) = (KIND_ABORT, *seq),
        }
        packet
    }

    fn decode(packet: &Packet) -> Result<Self, String> {
        if packet.magic != MAGIC || packet.version != VERSION {
            return Err(format!(
                "a packet with magic {:#x} version {}; this emulator speaks version {VERSION}: both ends must be of one build",
                packet.magic, packet.version
            ));
        }
        let seq = packet.seq;
        Ok(match packet.kind {
            KIND_HELLO => {
                let mut tag = [0; TAG_BYTES];
                tag.copy_from_slice(&packet.body[4..4 + TAG_BYTES]);
                Self::Hello {
                    from: Ipv4Addr::new(
                        packet.body[0],
                        packet.body[1],
                        packet.body[2],
                        packet.body[3],
                    ),
                    tag,
                }
            }
            KIND_ACCEPT => Self::Accept,
            KIND_REFUSE => Self::Refuse,
            KIND_ADDRESS => Self::Address {
                seq,
                address: bytemuck::pod_read_unaligned(&packet.body[..size_of::<QpAddress>()]),
            },
            KIND_READY => Self::Ready { seq },
            KIND_ABORT => Self::Abort { seq },
            other => return Err(format!("a packet of unknown kind {other}")),
        })
    }
}

/// The abstract name of a NIC's port. A job token that does not fit is replaced by its 64-bit FNV-1a hash.
pub fn name(uid: u32, job: &str, ip: Ipv4Addr, port: u16) -> String {
    let plain = format!("npusim/{uid}/{job}/{ip}/{port}");
    if plain.len() <= NAME_MAX {
        return plain;
    }
    const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
    let hash = job.bytes().fold(FNV_OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    });
    format!("npusim/{uid}/#{hash:016x}/{ip}/{port}")
}

fn address(ip: Ipv4Addr, port: u16) -> Result<SocketAddrUnix, Errno> {
    let job = std::env::var("NPUSHMEM_JOB").unwrap_or_default();
    SocketAddrUnix::new_abstract_name(
        name(rustix::process::getuid().as_raw(), &job, ip, port).as_bytes(),
    )
}

fn socket() -> Result<OwnedFd, Errno> {
    net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
}

/// Opens a listener on a NIC's port; `Errno::ADDRINUSE` when it is taken.
pub fn listen(ip: Ipv4Addr, port: u16) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    net::bind(&socket, &address(ip, port)?)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Connects to a NIC's port; an error says that nobody listens there yet, or that its queue is full.
pub fn dial(ip: Ipv4Addr, port: u16) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    net::connect(&socket, &address(ip, port)?)?;
    Ok(socket)
}

/// Takes one waiting connection, if there is one.
pub fn accept(listener: BorrowedFd<'_>) -> Result<Option<OwnedFd>, Errno> {
    match net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        Ok(socket) => Ok(Some(socket)),
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the other end is a process of this user.
pub fn same_user(socket: BorrowedFd<'_>) -> bool {
    net::sockopt::socket_peercred(socket).is_ok_and(|peer| peer.uid == rustix::process::getuid())
}

/// Sends one message; `false` when the socket's buffer is full and the message must wait.
pub fn send(socket: impl AsFd, message: &Message) -> Result<bool, Errno> {
    match net::send(
        socket,
        bytemuck::bytes_of(&message.encode()),
        SendFlags::NOSIGNAL,
    ) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What a receive found.
pub enum Received {
    /// A message.
    Message(Message),
    /// Nothing now.
    Nothing,
    /// The end; why, in words.
    Closed(String),
}

/// Takes one message, if there is one.
pub fn receive(socket: impl AsFd) -> Received {
    let mut packet = Packet::zeroed();
    match net::recv(
        socket,
        bytemuck::bytes_of_mut(&mut packet),
        net::RecvFlags::empty(),
    ) {
        Ok((_, 0)) => Received::Closed("the other process closed it or died".into()),
        Ok((_, bytes)) if bytes == size_of::<Packet>() => match Message::decode(&packet) {
            Ok(message) => Received::Message(message),
            Err(why) => Received::Closed(why),
        },
        Ok((_, bytes)) => Received::Closed(format!(
            "a packet of {bytes} bytes, not {}",
            size_of::<Packet>()
        )),
        Err(Errno::AGAIN | Errno::INTR) => Received::Nothing,
        Err(error) => Received::Closed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_user_job_address_and_port() {
        assert_eq!(
            name(1000, "job7", Ipv4Addr::new(192, 168, 100, 3), 10002),
            "npusim/1000/job7/192.168.100.3/10002"
        );
    }

    #[test]
    fn a_long_job_token_is_hashed_so_that_the_name_fits() {
        let ip = Ipv4Addr::new(192, 168, 100, 255);
        let one = name(u32::MAX, &"a".repeat(200), ip, 65535);
        let other = name(u32::MAX, &"b".repeat(200), ip, 65535);
        assert!(one.len() <= NAME_MAX && one != other, "{one}");
    }

    #[test]
    fn messages_come_back_as_they_were_sent() {
        let mut tag = [0; TAG_BYTES];
        tag[0] = 7;
        tag[TAG_BYTES - 1] = 9;
        let hello = Message::Hello {
            from: Ipv4Addr::new(192, 168, 100, 9),
            tag,
        };
        let Ok(Message::Hello { from, tag: back }) = Message::decode(&hello.encode()) else {
            panic!("not a hello")
        };
        assert_eq!((from, back), (Ipv4Addr::new(192, 168, 100, 9), tag));
        assert!(matches!(
            Message::decode(&Message::Abort { seq: 3 }.encode()),
            Ok(Message::Abort { seq: 3 })
        ));
    }

    #[test]
    fn a_packet_of_another_version_is_refused_in_words() {
        let mut packet = Message::Accept.encode();
        packet.version = 99;
        assert!(Message::decode(&packet).is_err_and(|why| why.contains("version 99")));
    }
}
