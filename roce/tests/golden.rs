//! Every vector of `golden/vectors.txt`, encoded and decoded by this crate. The device's C++ encoder is tested against the same file.

use std::collections::BTreeMap;

use npushmem_roce::bits::Le32;
use npushmem_roce::cqe::{Cqe, Status};
use npushmem_roce::doorbell::Doorbell;
use npushmem_roce::wqe::{count, opcode, DataSegment, Flags, SendWqe};

const VECTORS: &str = include_str!("../golden/vectors.txt");

/// One line of the file.
struct Vector {
    kind: &'static str,
    keys: BTreeMap<&'static str, &'static str>,
}

impl Vector {
    fn all(kind: &str) -> Vec<Vector> {
        let lines = VECTORS
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let found: Vec<Vector> = lines
            .map(Vector::parse)
            .filter(|vector| vector.kind == kind)
            .collect();
        assert!(!found.is_empty(), "no vector of kind {kind}");
        found
    }

    fn parse(line: &'static str) -> Vector {
        let mut words = line.split(' ');
        let kind = words.next().expect("split gives at least one word");
        let keys = words
            .map(|word| {
                word.split_once('=')
                    .unwrap_or_else(|| panic!("`{word}` in: {line}"))
            })
            .collect();
        Vector { kind, keys }
    }

    fn text(&self, key: &str) -> &'static str {
        self.keys
            .get(key)
            .unwrap_or_else(|| panic!("{} has no {key}", self.keys["name"]))
    }

    fn number(&self, key: &str) -> u64 {
        let text = self.text(key);
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        parsed.unwrap_or_else(|error| panic!("{}: {key}={text}: {error}", self.keys["name"]))
    }

    fn word(&self, key: &str) -> u32 {
        u32::try_from(self.number(key))
            .unwrap_or_else(|_| panic!("{}: {key} is wider than 32 bits", self.keys["name"]))
    }

    fn hex(&self, key: &str) -> Vec<u8> {
        let text = self.text(key);
        let byte =
            |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("two hexadecimal digits");
        (0..text.len()).step_by(2).map(byte).collect()
    }

    fn segments(&self) -> Vec<DataSegment> {
        let key = |what: &str, index| self.word(&format!("{what}{index}"));
        let segment = |index| {
            DataSegment::new(
                self.number(&format!("addr{index}")),
                key("len", index),
                key("lkey", index),
            )
        };
        (0..self.number("sges")).map(segment).collect()
    }

    fn flags(&self) -> Flags {
        Flags {
            signaled: self.number("signaled") == 1,
            fence: self.number("fence") == 1,
            strong_order: self.number("so") == 1,
            solicited: self.number("solicited") == 1,
        }
    }

    fn encode_wqe(&self) -> SendWqe {
        let (rkey, va) = (self.word("rkey"), self.number("va"));
        let result = || {
            let segments = self.segments();
            assert_eq!(segments.len(), 1);
            (segments[0].addr.get(), segments[0].lkey.get())
        };
        let wqe = match self.text("op") {
            "write" => SendWqe::write(rkey, va, &self.segments()),
            "read" => SendWqe::read(rkey, va, &self.segments()),
            "write_imm" => {
                SendWqe::write(rkey, va, &self.segments()).with_immediate(self.word("imm"))
            }
            "send" => SendWqe::send(&self.segments()),
            "compare_swap" => {
                let (addr, lkey) = result();
                SendWqe::compare_swap(
                    rkey,
                    va,
                    addr,
                    lkey,
                    self.number("compare"),
                    self.number("swap"),
                )
            }
            "fetch_add" => {
                let (addr, lkey) = result();
                SendWqe::fetch_add(rkey, va, addr, lkey, self.number("add"))
            }
            "write_inline" => {
                let mut wqe = SendWqe::write_inline(rkey, va, &self.hex("payload"))
                    .expect("at most 32 bytes");
                wqe.count = wqe.count.with(count::SGE_NUM, self.word("sge_num"));
                wqe
            }
            other => panic!("unknown op {other}"),
        };
        wqe.flagged(self.flags())
            .owned(self.number("n"), self.word("depth"))
    }
}

fn words(bytes: &[u8]) -> Vec<Le32> {
    bytes
        .chunks_exact(4)
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

#[test]
fn work_requests_are_encoded_to_the_golden_bytes() {
    for vector in Vector::all("wqe") {
        let wqe = vector.encode_wqe();
        assert_eq!(
            words(bytemuck::bytes_of(&wqe)),
            words(&vector.hex("bytes")),
            "{}",
            vector.text("name")
        );
    }
}

#[test]
fn direct_work_requests_are_encoded_to_the_golden_bytes() {
    for vector in Vector::all("direct_wqe") {
        let wqe = vector
            .encode_wqe()
            .direct(vector.number("pi"), vector.word("sl"));
        assert_eq!(
            words(bytemuck::bytes_of(&wqe)),
            words(&vector.hex("bytes")),
            "{}",
            vector.text("name")
        );
    }
}

#[test]
fn golden_work_requests_are_decoded_to_their_meaning() {
    for vector in Vector::all("wqe") {
        let name = vector.text("name");
        let wqe: SendWqe = bytemuck::pod_read_unaligned(&vector.hex("bytes"));
        let code = match vector.text("op") {
            "write" | "write_inline" => opcode::WRITE,
            "read" => opcode::READ,
            "write_imm" => opcode::WRITE_IMM,
            "send" => opcode::SEND,
            "compare_swap" => opcode::COMPARE_SWAP,
            "fetch_add" => opcode::FETCH_ADD,
            other => panic!("unknown op {other}"),
        };
        assert_eq!(wqe.opcode(), code, "{name}");
        assert_eq!(wqe.flags(), vector.flags(), "{name}");
        assert_eq!(
            (wqe.rkey.get(), wqe.va.get()),
            (vector.word("rkey"), vector.number("va")),
            "{name}"
        );
        assert_eq!(
            wqe.is_inline(),
            vector.text("op") == "write_inline",
            "{name}"
        );
        if wqe.is_inline() {
            let payload = vector.hex("payload");
            assert_eq!(wqe.msg_len.get() as usize, payload.len(), "{name}");
            assert_eq!(wqe.inline_bytes()[..payload.len()], payload, "{name}");
        } else {
            let segments = vector.segments();
            assert_eq!(wqe.sge_num(), segments.len(), "{name}");
            assert_eq!(wqe.segments[..segments.len()], segments, "{name}");
            let total: u32 = segments.iter().map(|segment| segment.len.get()).sum();
            assert_eq!(wqe.msg_len.get(), total, "{name}");
        }
        match code {
            opcode::FETCH_ADD => {
                assert_eq!(
                    wqe.atomic_segment().add_or_swap.get(),
                    vector.number("add"),
                    "{name}"
                );
                assert_eq!(wqe.atomic_segment().compare.get(), 0, "{name}");
            }
            opcode::COMPARE_SWAP => {
                assert_eq!(
                    wqe.atomic_segment().add_or_swap.get(),
                    vector.number("swap"),
                    "{name}"
                );
                assert_eq!(
                    wqe.atomic_segment().compare.get(),
                    vector.number("compare"),
                    "{name}"
                );
            }
            opcode::WRITE_IMM => assert_eq!(wqe.immediate.get(), vector.word("imm"), "{name}"),
            _ => (),
        }
    }
}

#[test]
fn send_doorbells_are_encoded_and_decoded_as_golden() {
    for vector in Vector::all("sq_doorbell") {
        let (qpn, service_level) = (vector.word("qpn"), vector.word("sl"));
        let doorbell = Doorbell::Send {
            qpn,
            producer: vector.word("head") & 0xffff,
            service_level,
        };
        assert_eq!(
            doorbell.encode(),
            vector.number("value"),
            "{}",
            vector.text("name")
        );
        assert_eq!(
            Doorbell::decode(vector.number("value")),
            doorbell,
            "{}",
            vector.text("name")
        );
    }
}

#[test]
fn consumer_doorbells_are_decoded_in_both_forms_and_encoded_as_rdma_core_does() {
    for vector in Vector::all("cq_doorbell") {
        let doorbell = Doorbell::Consumer {
            cqn: vector.word("cqn"),
            consumer: vector.word("ci") & 0xff_ffff,
        };
        assert_eq!(
            Doorbell::decode(vector.number("value")),
            doorbell,
            "{}",
            vector.text("name")
        );
        if vector.text("from") != "cann" {
            assert_eq!(
                doorbell.encode(),
                vector.number("value"),
                "{}",
                vector.text("name")
            );
        }
    }
}

#[test]
fn arm_doorbells_are_encoded_and_decoded_as_golden() {
    for vector in Vector::all("cq_arm") {
        let doorbell = Doorbell::Arm {
            cqn: vector.word("cqn"),
            consumer: vector.word("ci"),
            solicited: vector.number("solicited") == 1,
            sequence: vector.word("sn"),
        };
        assert_eq!(
            doorbell.encode(),
            vector.number("value"),
            "{}",
            vector.text("name")
        );
        assert_eq!(
            Doorbell::decode(vector.number("value")),
            doorbell,
            "{}",
            vector.text("name")
        );
    }
}

#[test]
fn completions_are_encoded_and_decoded_as_golden() {
    for vector in Vector::all("cqe") {
        let name = vector.text("name");
        let status = Status::from_code(vector.word("status"));
        let cqe = Cqe::sent(
            vector.word("opcode"),
            vector.number("wqe_index"),
            vector.word("qpn"),
            0,
        )
        .with_status(status, vector.word("sub_status") as u8)
        .with_byte_count(vector.word("byte_cnt"))
        .owned(vector.number("n"), vector.word("depth"));
        assert_eq!(
            words(bytemuck::bytes_of(&cqe)),
            words(&vector.hex("bytes")),
            "{name}"
        );

        let decoded: Cqe = bytemuck::pod_read_unaligned(&vector.hex("bytes"));
        assert_eq!(
            (decoded.opcode(), decoded.status()),
            (vector.word("opcode"), status),
            "{name}"
        );
        assert_eq!(
            u64::from(decoded.sub_status()),
            vector.number("sub_status"),
            "{name}"
        );
        assert_eq!(
            u64::from(decoded.wqe_index()),
            vector.number("wqe_index"),
            "{name}"
        );
        assert_eq!(
            (decoded.qpn(), decoded.byte_cnt.get()),
            (vector.word("qpn"), vector.word("byte_cnt")),
            "{name}"
        );
    }
}
