//! The sequential model: which operations are no race, and what they leave behind. The head of `super` says the rules.

use std::fmt::Write as _;

use super::state::{apply, Actor, Byte, Half, Mode, Signal, NOBODY};
use super::{
    begin, op, Case, Expected, Raw, ATOMICS, B_BYTES, DATA, LANDING, LONGEST, MOST, SIGNALS, SINK,
    SLOTS, SOURCES,
};

const NAMES: [&str; op::COUNT as usize] = [
    "put",
    "put_nbi",
    "put_ub",
    "put_ub_nbi",
    "get",
    "get_nbi",
    "get_ub",
    "p",
    "g",
    "iput",
    "iget",
    "ibput",
    "ibget",
    "put_signal",
    "put_signal_nbi",
    "signal",
    "wait",
    "atomic",
    "fence",
    "quiet",
    "flush",
    "fence_pe",
    "quiet_pe",
    "commit",
    "barrier",
    "engine",
    "refill",
];

/// Atomics, as `kernels/sequence.cpp` numbers them.
const ATOMIC_NAMES: [&str; 18] = [
    "fetch",
    "set",
    "add",
    "inc",
    "fetch_add",
    "fetch_inc",
    "swap",
    "compare_swap",
    "and",
    "or",
    "xor",
    "min",
    "max",
    "fetch_and",
    "fetch_or",
    "fetch_xor",
    "fetch_min",
    "fetch_max",
];

/// The sequential model.
pub struct Model {
    pes: usize,
    cores: usize,
    races: bool,
    epoch: u32,
    counter: u32,
    a: Vec<Vec<u8>>,
    b: Vec<Vec<u8>>,
    out: Vec<Vec<(usize, u64, u64)>>,
    bytes: Vec<Vec<Byte>>,
    halves: Vec<Vec<Half>>,
    signals: Vec<Vec<Signal>>,
    actors: Vec<Actor>,
    listing: String,
}

/// A record without its first two words.
#[derive(Default)]
struct Args {
    at: usize,
    here: usize,
    n: u64,
    x: u64,
    y: u64,
    z: u64,
}

impl Model {
    fn new(pes: usize, cores: usize, seed: u64, races: bool) -> Model {
        let byte = Byte {
            epoch: 0,
            writer: NOBODY,
            written_by: 0,
            fences: 0,
            quiets: 0,
            told: 0,
            readers: 0,
            read_quiets: None,
        };
        let signal = Signal {
            epoch: 0,
            updates: 0,
            adds: false,
            waited: false,
            before: 0,
            by: (0, NOBODY, 0),
        };
        let half = Half {
            epoch: 0,
            mode: Mode::Free,
        };
        let (a, b) = (0..pes).map(|pe| begin(seed, pe, cores)).unzip();
        Model {
            pes,
            cores,
            races,
            epoch: 1,
            counter: 0,
            a,
            b,
            out: vec![Vec::new(); pes],
            bytes: vec![vec![byte; DATA]; pes],
            halves: vec![vec![half; ATOMICS / 4]; pes],
            signals: vec![vec![signal; SIGNALS]; pes],
            actors: (0..pes * cores)
                .map(|_| Actor {
                    fences: vec![1; pes],
                    quiets: vec![1; pes],
                    flushes: 1,
                    taken: vec![None; SOURCES],
                    landing: 0,
                    slots: 0,
                    list: Vec::new(),
                })
                .collect(),
            listing: String::new(),
        }
    }

    /// Makes a case for `pes` PEs of `cores` cores of the operations of `raw` that are no race.
    pub fn run(pes: usize, cores: usize, seed: u64, raw: &[Raw]) -> Case {
        Model::case(Model::new(pes, cores, seed, false), raw)
    }

    /// The same, but a core may overwrite what it wrote without a fence between, and change sources that a put still reads: what such a case leaves
    /// is not what the model says, whenever something overtakes.
    pub fn run_with_races(pes: usize, cores: usize, seed: u64, raw: &[Raw]) -> Case {
        Model::case(Model::new(pes, cores, seed, true), raw)
    }

    fn case(mut model: Model, raw: &[Raw]) -> Case {
        for one in raw {
            let full = model
                .actors
                .iter()
                .any(|actor| actor.list.len() + 2 >= MOST);
            if full {
                break;
            }
            model.counter += 1;
            model.take(*one);
        }
        model.barrier(0);
        let Model {
            a,
            b,
            out,
            actors,
            listing,
            ..
        } = model;
        let expected = a
            .into_iter()
            .zip(b)
            .zip(out)
            .map(|((a, b), out)| Expected { a, b, out })
            .collect();
        Case {
            lists: actors.into_iter().map(|actor| actor.list).collect(),
            expected,
            listing,
        }
    }

    /// Does one operation, or leaves it out.
    fn take(&mut self, raw: Raw) {
        let what = u64::from(raw.what) % op::COUNT;
        let actor = raw.actor as usize % self.actors.len();
        let pe = raw.pe as usize % self.pes;
        // None: it would be a race, or has no room.
        let _ = match what {
            op::PUT | op::PUT_NBI | op::PUT_UB | op::PUT_UB_NBI => self.put(what, actor, pe, raw),
            op::GET | op::GET_NBI | op::GET_UB => self.get(what, actor, pe, raw),
            op::P | op::G => self.scalar(what, actor, pe, raw),
            op::IPUT | op::IGET | op::IBPUT | op::IBGET => self.strided(what, actor, pe, raw),
            op::PUT_SIGNAL | op::PUT_SIGNAL_NBI | op::SIGNAL => self.signal(what, actor, pe, raw),
            op::WAIT => self.wait(actor, raw),
            op::ATOMIC => self.atomic(actor, pe, raw),
            op::BARRIER => self.barrier(u64::from(raw.value % 2)),
            op::REFILL => self.refill(actor, raw),
            _ => self.order(what, actor, pe, raw),
        };
    }

    fn emit(&mut self, what: u64, actor: usize, pe: usize, args: Args) {
        let Args {
            at,
            here,
            n,
            x,
            y,
            z,
        } = args;
        let _ = write!(
            self.listing,
            "PE {} core {}: {} pe={pe} at={at} here={here} n={n} x={x} y={y:#x} z={z}",
            actor / self.cores,
            actor % self.cores,
            NAMES[what as usize]
        );
        if what == op::ATOMIC {
            let _ = write!(
                self.listing,
                " ({} of {}{})",
                ATOMIC_NAMES[(n & 0xff) as usize],
                ["u64", "i64", "u32", "i32"][(n >> 8 & 3) as usize],
                if n >> 16 != 0 { ", nbi" } else { "" }
            );
        }
        self.listing.push('\n');
        self.actors[actor]
            .list
            .push([what, pe as u64, at as u64, here as u64, n, x, y, z]);
    }

    /// The state of a byte in this epoch.
    fn byte(&mut self, pe: usize, at: usize) -> &mut Byte {
        let epoch = self.epoch;
        let byte = &mut self.bytes[pe][at];
        if byte.epoch != epoch {
            *byte = Byte {
                epoch,
                writer: NOBODY,
                told: 0,
                readers: 0,
                read_quiets: None,
                ..*byte
            };
        }
        byte
    }

    fn half(&mut self, pe: usize, index: usize) -> &mut Half {
        let epoch = self.epoch;
        let half = &mut self.halves[pe][index];
        if half.epoch != epoch {
            *half = Half {
                epoch,
                mode: Mode::Free,
            };
        }
        half
    }

    /// Whether no atomics of this epoch are on the word of a byte.
    fn plain(&mut self, pe: usize, at: usize) -> bool {
        let word = at / 8 * 2;
        at >= ATOMICS
            || (self.half(pe, word).mode == Mode::Free
                && self.half(pe, word + 1).mode == Mode::Free)
    }

    fn may_write(&mut self, actor: usize, pe: usize, at: usize, n: usize) -> bool {
        let (fences, quiets) = (self.actors[actor].fences[pe], self.actors[actor].quiets[pe]);
        let me = 1u16 << actor;
        at + n <= DATA
            && (at..at + n).all(|at| {
                let plain = self.plain(pe, at);
                let byte = *self.byte(pe, at);
                let ordered = byte.writer == NOBODY
                    || byte.told & me != 0
                    || (byte.writer == actor as u8 && (self.races || byte.fences < fences));
                let unread = byte.readers & !me == 0
                    && (byte.readers == 0 || byte.read_quiets.is_none_or(|then| then < quiets));
                plain && ordered && unread
            })
    }

    fn may_read(&mut self, actor: usize, pe: usize, at: usize, n: usize) -> bool {
        let quiets = self.actors[actor].quiets[pe];
        at + n <= DATA
            && (at..at + n).all(|at| {
                let plain = self.plain(pe, at);
                let byte = *self.byte(pe, at);
                plain
                    && (byte.writer == NOBODY
                        || byte.told & 1 << actor != 0
                        || (byte.writer == actor as u8 && byte.quiets < quiets))
            })
    }

    fn write(&mut self, actor: usize, pe: usize, at: usize, bytes: &[u8]) {
        let (fences, quiets) = (self.actors[actor].fences[pe], self.actors[actor].quiets[pe]);
        let written_by = self.counter;
        for (offset, &value) in bytes.iter().enumerate() {
            self.a[pe][at + offset] = value;
            let byte = self.byte(pe, at + offset);
            byte.writer = actor as u8;
            (byte.written_by, byte.fences, byte.quiets) = (written_by, fences, quiets);
            byte.told = 0;
        }
    }

    fn read(&mut self, actor: usize, pe: usize, at: usize, n: usize, waits: bool) -> Vec<u8> {
        let quiets = self.actors[actor].quiets[pe];
        for at in at..at + n {
            let byte = self.byte(pe, at);
            byte.readers |= 1 << actor;
            if !waits {
                byte.read_quiets = Some(quiets);
            }
        }
        self.a[pe][at..at + n].to_vec()
    }

    /// `n` bytes of the sources of a core, from `here`; `held`: by a transfer that does not wait for them to be taken.
    fn source(&mut self, actor: usize, here: usize, n: usize, held: bool) -> Vec<u8> {
        let flushes = self.actors[actor].flushes;
        if held {
            self.actors[actor].taken[here..here + n].fill(Some(flushes));
        }
        let start = actor % self.cores * B_BYTES + here;
        self.b[actor / self.cores][start..start + n].to_vec()
    }

    /// A landing place of a core, as an offset in its b.
    fn land(&mut self, actor: usize, n: usize, odd: usize) -> Option<usize> {
        let start = self.actors[actor].landing + odd % 40;
        if start + n > LANDING {
            return None;
        }
        self.actors[actor].landing = start + n;
        Some(actor % self.cores * B_BYTES + SOURCES + start)
    }

    fn slot(&mut self, actor: usize) -> Option<usize> {
        let slot = self.actors[actor].slots;
        if slot == SINK {
            return None;
        }
        self.actors[actor].slots += 1;
        Some(actor % self.cores * SLOTS + slot)
    }

    fn in_b(&self, actor: usize, here: usize) -> usize {
        actor % self.cores * B_BYTES + here
    }

    fn put(&mut self, what: u64, actor: usize, pe: usize, raw: Raw) -> Option<()> {
        let n = 1 + raw.n as usize % LONGEST;
        let (at, here) = (raw.at as usize % DATA, raw.here as usize % (SOURCES - n));
        if !self.may_write(actor, pe, at, n) {
            return None;
        }
        let bytes = self.source(actor, here, n, what == op::PUT_NBI);
        self.write(actor, pe, at, &bytes);
        let here = self.in_b(actor, here);
        self.emit(
            what,
            actor,
            pe,
            Args {
                at,
                here,
                n: n as u64,
                ..Args::default()
            },
        );
        Some(())
    }

    fn get(&mut self, what: u64, actor: usize, pe: usize, raw: Raw) -> Option<()> {
        let n = 1 + raw.n as usize % LONGEST;
        let at = raw.at as usize % DATA;
        if !self.may_read(actor, pe, at, n) {
            return None;
        }
        let here = self.land(actor, n, raw.here as usize)?;
        let bytes = self.read(actor, pe, at, n, what != op::GET_NBI);
        self.b[actor / self.cores][here..here + n].copy_from_slice(&bytes);
        self.emit(
            what,
            actor,
            pe,
            Args {
                at,
                here,
                n: n as u64,
                ..Args::default()
            },
        );
        Some(())
    }

    fn scalar(&mut self, what: u64, actor: usize, pe: usize, raw: Raw) -> Option<()> {
        let n = 1usize << (raw.n % 4);
        let at = raw.at as usize % DATA / n * n;
        let mut args = Args {
            at,
            n: n as u64,
            ..Args::default()
        };
        if what == op::P {
            if !self.may_write(actor, pe, at, n) {
                return None;
            }
            args.y = u64::from(raw.value).wrapping_mul(0x1_0000_0001);
            self.write(actor, pe, at, &args.y.to_le_bytes()[..n]);
        } else {
            if !self.may_read(actor, pe, at, n) {
                return None;
            }
            let slot = self.slot(actor)?;
            let mut wide = [0u8; 8];
            wide[..n].copy_from_slice(&self.read(actor, pe, at, n, true));
            self.out[actor / self.cores].push((slot, u64::MAX, u64::from_le_bytes(wide)));
            args.here = slot;
        }
        self.emit(what, actor, pe, args);
        Some(())
    }

    fn strided(&mut self, what: u64, actor: usize, pe: usize, raw: Raw) -> Option<()> {
        let element = 1usize << (raw.value % 4);
        let block = if matches!(what, op::IBPUT | op::IBGET) {
            3
        } else {
            1
        };
        let n = 1 + raw.n as usize % 40;
        let far_stride = block + (raw.value >> 2) as usize % 5;
        let near_stride = block + (raw.value >> 8) as usize % 5;
        let at = raw.at as usize % DATA / element * element;
        let piece = block * element;
        let far = |i: usize| at + i * far_stride * element;
        let get = matches!(what, op::IGET | op::IBGET);
        let span = (n - 1) * near_stride * element + piece;
        let mut args = Args {
            at,
            n: n as u64,
            z: element as u64,
            ..Args::default()
        };
        if get {
            if !(0..n).all(|i| self.may_read(actor, pe, far(i), piece)) {
                return None;
            }
            let place = self.land(actor, span + element, 0)?;
            args.here = place.next_multiple_of(element);
            for i in 0..n {
                let bytes = self.read(actor, pe, far(i), piece, true);
                let near = args.here + i * near_stride * element;
                self.b[actor / self.cores][near..near + piece].copy_from_slice(&bytes);
            }
            (args.x, args.y) = (near_stride as u64, far_stride as u64);
        } else {
            if !(0..n).all(|i| self.may_write(actor, pe, far(i), piece)) {
                return None;
            }
            let here = raw.here as usize % (SOURCES - span) / element * element;
            for i in 0..n {
                let bytes = self.source(actor, here + i * near_stride * element, piece, false);
                self.write(actor, pe, far(i), &bytes);
            }
            args.here = self.in_b(actor, here);
            (args.x, args.y) = (far_stride as u64, near_stride as u64);
        }
        self.emit(what, actor, pe, args);
        Some(())
    }

    fn signal_word(&mut self, pe: usize, index: usize) -> (u64, &mut Signal) {
        let at = DATA + 8 * index;
        let mut bytes = [0u8; 8];
        bytes.copy_from_slice(&self.a[pe][at..at + 8]);
        let now = u64::from_le_bytes(bytes);
        let epoch = self.epoch;
        let signal = &mut self.signals[pe][index];
        if signal.epoch != epoch {
            *signal = Signal {
                epoch,
                updates: 0,
                waited: false,
                before: now,
                ..*signal
            };
        }
        (now, signal)
    }

    fn signal(&mut self, what: u64, actor: usize, pe: usize, raw: Raw) -> Option<()> {
        let index = (raw.value >> 1) as usize % SIGNALS;
        let add = raw.value & 1 != 0;
        let n = if what == op::SIGNAL {
            0
        } else {
            raw.n as usize % (LONGEST + 1)
        };
        let (at, here) = (raw.at as usize % DATA, raw.here as usize % (SOURCES - n));
        if n > 0 && !self.may_write(actor, pe, at, n) {
            return None;
        }
        let fences = self.actors[actor].fences[pe];
        let counter = self.counter;
        let (now, signal) = self.signal_word(pe, index);
        if signal.waited || (signal.updates > 0 && !(add && signal.adds)) {
            return None;
        }
        // Never 0, and never what the word holds: a wait must see the change.
        let y = if add {
            u64::from(raw.value | 1)
        } else {
            Some(u64::from(counter) << 32 | u64::from(raw.value)).filter(|&value| value != now)?
        };
        let value = if add { now.wrapping_add(y) } else { y };
        signal.updates += 1;
        signal.adds = add;
        signal.by = (counter, actor as u8, fences);
        let x = DATA + 8 * index;
        self.a[pe][x..x + 8].copy_from_slice(&value.to_le_bytes());
        let bytes = self.source(actor, here, n, what == op::PUT_SIGNAL_NBI);
        self.write(actor, pe, at, &bytes);
        let args = Args {
            at,
            here: self.in_b(actor, here),
            n: n as u64,
            x: x as u64,
            y,
            z: u64::from(add),
        };
        self.emit(what, actor, pe, args);
        Some(())
    }

    /// A core waits for a signal of its own PE that has one update in this epoch. It then knows of the data that came with it, and of what was fenced
    /// before it.
    fn wait(&mut self, actor: usize, raw: Raw) -> Option<()> {
        let pe = actor / self.cores;
        let found = (0..SIGNALS)
            .map(|step| (raw.at as usize + step) % SIGNALS)
            .find(|&index| self.signal_word(pe, index).1.updates == 1)?;
        let (now, signal) = self.signal_word(pe, found);
        let (cmp, y) = match raw.value % 3 {
            0 if now > signal.before => (3, now), // GE
            1 => (1, signal.before),              // NE
            _ => (0, now),                        // EQ
        };
        signal.waited = true;
        let (by, writer, fences) = signal.by;
        for at in 0..DATA {
            let byte = self.byte(pe, at);
            let followed = byte.written_by == by || (byte.written_by < by && byte.fences < fences);
            if byte.writer == writer && followed {
                byte.told |= 1 << actor;
            }
        }
        let args = Args {
            x: (DATA + 8 * found) as u64,
            y,
            z: cmp,
            ..Args::default()
        };
        self.emit(op::WAIT, actor, pe, args);
        Some(())
    }

    fn atomic(&mut self, actor: usize, pe: usize, raw: Raw) -> Option<()> {
        let what = raw.n as usize % ATOMIC_NAMES.len();
        let kind = (raw.n / 32) as usize % 4; // u64, i64, u32, i32
        let wide = kind < 2;
        let at = raw.at as usize % ATOMICS / if wide { 8 } else { 4 } * if wide { 8 } else { 4 };
        let fetches = matches!(what, 0 | 4..=7 | 13..=17);
        let nbi = fetches && raw.value & 0x8000_0000 != 0;
        // Classes that commute, by what they do to the word.
        let class = match what {
            0 => Some(0),
            2..=5 => Some(1),
            8 | 13 => Some(2),
            9 | 14 => Some(3),
            10 | 15 => Some(4),
            11 | 16 => Some(5),
            12 | 17 => Some(6),
            _ => None,
        };
        let word = at / 8 * 8;
        for at in word..word + 8 {
            let byte = *self.byte(pe, at);
            if byte.writer != NOBODY || byte.readers != 0 {
                return None;
            }
        }
        let me = &self.actors[actor];
        let (fences, quiets) = (me.fences[pe], me.quiets[pe]);
        let common = Mode::Common {
            class: class.unwrap_or(0),
            // Signs matter to minima and maxima only; widths to all.
            kind: kind as u8,
        };
        let own = Mode::Own {
            actor: actor as u8,
            fences: if fetches && !nbi { 0 } else { fences },
            quiets: if nbi { quiets } else { 0 },
        };
        let halves = at / 4..at / 4 + if wide { 2 } else { 1 };
        let before: Vec<Mode> = halves
            .clone()
            .map(|index| self.half(pe, index).mode)
            .collect();
        let mut alone = class.is_none() || raw.value & 0x4000_0000 != 0;
        let mut free = false;
        for mode in &before {
            match *mode {
                Mode::Free => free = true,
                Mode::Own {
                    actor: owner,
                    fences: after,
                    quiets: too,
                } => {
                    if owner != actor as u8 || after >= fences || too >= quiets {
                        return None;
                    }
                    alone = true;
                }
                Mode::Common { .. } => {
                    if *mode != common || class.is_none() {
                        return None;
                    }
                    alone = false;
                }
            }
        }
        // Both halves in one state.
        let owned = before.iter().any(|mode| matches!(mode, Mode::Own { .. }));
        if (free
            && before
                .iter()
                .any(|mode| matches!(mode, Mode::Common { .. })))
            || (owned && !alone)
        {
            return None;
        }
        let slot = if fetches {
            self.slot(actor)?
        } else {
            actor % self.cores * SLOTS + SINK
        };
        for index in halves {
            self.half(pe, index).mode = if alone { own } else { common };
        }
        let y = u64::from(raw.value).wrapping_mul(0x9_0000_0007);
        let n = if wide { 8 } else { 4 };
        let mut bytes = [0u8; 8];
        bytes[..n].copy_from_slice(&self.a[pe][at..at + n]);
        let old = u64::from_le_bytes(bytes);
        let mask = if wide { u64::MAX } else { u64::from(u32::MAX) };
        // A comparand that fits in half of the cases.
        let x = if raw.here & 1 == 0 { old } else { y ^ 1 };
        let new = apply(what, kind, old, x & mask, y & mask) & mask;
        self.a[pe][at..at + n].copy_from_slice(&new.to_le_bytes()[..n]);
        if fetches && (alone || class == Some(0)) {
            self.out[actor / self.cores].push((slot, mask, old));
        }
        let args = Args {
            at,
            here: slot,
            n: what as u64 | (kind as u64) << 8 | u64::from(nbi) << 16,
            x,
            y,
            z: 0,
        };
        self.emit(op::ATOMIC, actor, pe, args);
        Some(())
    }

    fn order(&mut self, what: u64, actor: usize, pe: usize, raw: Raw) -> Option<()> {
        let me = &mut self.actors[actor];
        let mut args = Args::default();
        match what {
            op::FENCE => me.fences.iter_mut().for_each(|count| *count += 1),
            op::FENCE_PE => me.fences[pe] += 1,
            op::QUIET_PE => {
                me.fences[pe] += 1;
                me.quiets[pe] += 1;
            }
            op::QUIET => {
                me.fences.iter_mut().for_each(|count| *count += 1);
                me.quiets.iter_mut().for_each(|count| *count += 1);
                me.flushes += 1;
            }
            op::FLUSH => me.flushes += 1,
            op::ENGINE => args.z = u64::from(raw.value % 3),
            _ => {}
        }
        self.emit(what, actor, pe, args);
        Some(())
    }

    fn refill(&mut self, actor: usize, raw: Raw) -> Option<()> {
        let n = 8 * (1 + raw.n as usize % 32);
        let here = raw.here as usize % (SOURCES - n) / 8 * 8;
        let me = &self.actors[actor];
        let mut taken = me.taken[here..here + n].iter().flatten();
        if !self.races && taken.any(|&then| then >= me.flushes) {
            return None;
        }
        let y = u64::from(raw.value) << 20;
        let start = self.in_b(actor, here);
        for word in 0..n / 8 {
            let value = (y + word as u64).to_le_bytes();
            self.b[actor / self.cores][start + 8 * word..][..8].copy_from_slice(&value);
        }
        let args = Args {
            here: start,
            n: n as u64,
            y,
            ..Args::default()
        };
        self.emit(op::REFILL, actor, 0, args);
        Some(())
    }

    /// All cores of all PEs meet, and everything is done.
    fn barrier(&mut self, kind: u64) -> Option<()> {
        for actor in 0..self.actors.len() {
            self.emit(
                op::BARRIER,
                actor,
                0,
                Args {
                    z: kind,
                    ..Args::default()
                },
            );
            let me = &mut self.actors[actor];
            me.fences.iter_mut().for_each(|count| *count += 1);
            me.quiets.iter_mut().for_each(|count| *count += 1);
            me.flushes += 1;
        }
        self.epoch += 1;
        Some(())
    }
}
