//! The algorithms of collectives against a sequential model: PEs are threads of this process, each with a heap of its own.
//!
//! Not the C routines (the programs in capi/tests call those), nor the Rust API.

use npushmem::shm::data::{self, Strides};
use npushmem::shm::group::{Group, Memory, Policy};
use npushmem::shm::layout::{self, Slot};
use npushmem::shm::ops::{self, Operation};
use npushmem::shm::{reduce, table};
use proptest::prelude::*;

/// Bytes of user memory of each PE, for `src` and for `dest`.
const USER: usize = 1 << 18;

/// One PE's memory: the collectives' area, then `src`, then `dest`.
#[repr(C, align(4096))]
#[derive(Clone, Copy)]
struct Page([u8; 4096]);

struct Heap {
    pages: Vec<Page>,
}

struct World {
    bases: Vec<usize>,
    src: usize,
    dest: usize,
    _heaps: Vec<Heap>,
}

impl World {
    fn new(n_pes: usize) -> World {
        let area = layout::area_bytes(n_pes);
        let pages = (area + 2 * USER) / 4096;
        let mut heaps: Vec<Heap> = (0..n_pes)
            .map(|_| Heap {
                pages: vec![Page([0; 4096]); pages],
            })
            .collect();
        let bases = heaps
            .iter_mut()
            .map(|h| h.pages.as_mut_ptr() as usize)
            .collect();
        World {
            bases,
            src: area,
            dest: area + USER,
            _heaps: heaps,
        }
    }

    fn src(&self, pe: usize) -> *mut u8 {
        (self.bases[pe] + self.src) as *mut u8
    }

    fn dest(&self, pe: usize) -> *mut u8 {
        (self.bases[pe] + self.dest) as *mut u8
    }

    /// The group of `pes` in slot `slot`, as PE `me` has it.
    fn group(
        &self,
        pes: &[usize],
        me: usize,
        slot: usize,
        start: u64,
        cores: usize,
    ) -> Option<Group> {
        let index = pes.iter().position(|&pe| pe == me)?;
        let members = pes
            .iter()
            .map(|&pe| (Slot::new(self.bases[pe] as *mut u8, slot, pe), pe as u32))
            .collect();
        let policy = Policy {
            give_up: None,
            compare: true,
        };
        Some(Group::new(members, index, start, cores, policy))
    }
}

/// What one PE sees.
struct View<'a> {
    world: &'a World,
    me: usize,
}

impl Memory for View<'_> {
    unsafe fn peer(&self, addr: *const u8, pe: usize) -> *mut u8 {
        (addr as usize - self.world.bases[self.me] + self.world.bases[pe]) as *mut u8
    }
}

/// Runs `body` on every PE.
fn on_all(world: &World, n_pes: usize, body: impl Fn(usize, &View) + Sync) {
    std::thread::scope(|scope| {
        for me in 0..n_pes {
            let body = &body;
            scope.spawn(move || body(me, &View { world, me }));
        }
    });
}

fn write(at: *mut u8, bytes: &[u8]) {
    assert!(bytes.len() <= USER);
    // SAFETY: user memory of this PE.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) }
}

fn read(at: *const u8, len: usize) -> Vec<u8> {
    assert!(len <= USER);
    // SAFETY: user memory of this PE, which nobody writes now.
    unsafe { std::slice::from_raw_parts(at, len) }.to_vec()
}

/// Bytes that depend on PE, round and position.
fn pattern(pe: usize, round: usize, len: usize) -> Vec<u8> {
    let seed = (pe * 7919 + round * 104_729 + 1) as u64;
    let word = |i: usize| {
        (seed ^ i as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_le_bytes()
    };
    (0..len.div_ceil(8)).flat_map(word).take(len).collect()
}

/// Keeps threads apart: some start late.
fn skew(pe: usize, round: usize) {
    for _ in 0..(pe * 31 + round * 17) % 4 {
        std::thread::yield_now();
    }
}

#[derive(Debug, Clone)]
enum Step {
    Sync,
    Broadcast {
        bytes: usize,
        root: usize,
        in_place: bool,
    },
    Fcollect {
        bytes: usize,
    },
    Collect {
        sizes: Vec<usize>,
    },
    Alltoall {
        bytes: usize,
    },
    Alltoalls {
        dest: usize,
        src: usize,
        element: usize,
        count: usize,
    },
    Sum {
        count: usize,
        in_place: bool,
    },
    Scan {
        count: usize,
        in_place: bool,
        inclusive: bool,
    },
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..70, 100usize..130, 2000usize..2100, 0usize..9000]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Sync),
        (size(), 0usize..64, any::<bool>()).prop_map(|(bytes, root, in_place)| Step::Broadcast {
            bytes,
            root,
            in_place
        }),
        size().prop_map(|bytes| Step::Fcollect { bytes }),
        prop::collection::vec(size(), 9).prop_map(|sizes| Step::Collect { sizes }),
        size().prop_map(|bytes| Step::Alltoall { bytes }),
        (
            1usize..4,
            1usize..4,
            prop::sample::select(vec![1usize, 2, 4, 8, 16]),
            0usize..60
        )
            .prop_map(|(dest, src, element, count)| Step::Alltoalls {
                dest,
                src,
                element,
                count
            }),
        (0usize..1200, any::<bool>()).prop_map(|(count, in_place)| Step::Sum { count, in_place }),
        (0usize..1200, any::<bool>(), any::<bool>()).prop_map(|(count, in_place, inclusive)| {
            Step::Scan {
                count,
                in_place,
                inclusive,
            }
        }),
    ]
}

const SUM: Operation = ops::operation::<i64, ops::Sum>();

fn longs(bytes: &[u8]) -> Vec<i64> {
    bytes
        .chunks_exact(8)
        .map(|c| i64::from_le_bytes(c.try_into().expect("eight")))
        .collect()
}

fn sum(pes: &[usize], round: usize, count: usize) -> Vec<u8> {
    let mut total = vec![0i64; count];
    for &pe in pes {
        for (t, v) in total.iter_mut().zip(longs(&pattern(pe, round, count * 8))) {
            *t = t.wrapping_add(v);
        }
    }
    total.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// One step on one PE, and what the model says.
fn run(step: &Step, round: usize, group: &Group, view: &View, pes: &[usize]) {
    let (world, pe, me, n) = (view.world, view.me, group.me(), pes.len());
    let (src, dest) = (world.src(pe), world.dest(pe));
    let expect = |at: *const u8, expected: &[u8], what: &str| {
        assert_eq!(
            read(at, expected.len()),
            expected,
            "{what} on PE {pe}, round {round}: {step:?}"
        );
    };
    // SAFETY (all calls): symmetric user memory of USER bytes, large enough for the sizes that the strategies give.
    match step {
        Step::Sync => group.sync().expect("met"),
        Step::Broadcast {
            bytes,
            root,
            in_place,
        } => {
            let root = root % n;
            write(src, &pattern(pe, round, *bytes));
            let to = if *in_place { src } else { dest };
            // SAFETY: src and dest are this member's areas, larger than any step needs; all members take the same step.
            unsafe { data::broadcast(group, view, to, src, *bytes, root, true) }.expect("done");
            expect(to, &pattern(pes[root], round, *bytes), "broadcast");
        }
        Step::Fcollect { bytes } => {
            write(src, &pattern(pe, round, *bytes));
            // SAFETY: src and dest are this member's areas, larger than any step needs; all members take the same step.
            unsafe { data::fcollect(group, view, dest, src, *bytes) }.expect("done");
            let all: Vec<u8> = pes
                .iter()
                .flat_map(|&p| pattern(p, round, *bytes))
                .collect();
            expect(dest, &all, "fcollect");
        }
        Step::Collect { sizes } => {
            write(src, &pattern(pe, round, sizes[me % 9]));
            // SAFETY: src and dest are this member's areas, larger than any step needs; all members take the same step.
            unsafe { data::collect(group, view, dest, USER, src, sizes[me % 9]) }.expect("done");
            let all: Vec<u8> = pes
                .iter()
                .enumerate()
                .flat_map(|(i, &p)| pattern(p, round, sizes[i % 9]))
                .collect();
            expect(dest, &all, "collect");
        }
        Step::Alltoall { bytes } => {
            write(src, &pattern(pe, round, bytes * n));
            // SAFETY: src and dest are this member's areas, larger than any step needs; all members take the same step.
            unsafe { data::alltoall(group, view, dest, src, *bytes) }.expect("done");
            let all: Vec<u8> = pes
                .iter()
                .flat_map(|&p| pattern(p, round, bytes * n)[me * bytes..(me + 1) * bytes].to_vec())
                .collect();
            expect(dest, &all, "alltoall");
        }
        Step::Alltoalls {
            dest: to,
            src: from,
            element,
            count,
        } => {
            let whole = n * count * element;
            write(src, &pattern(pe, round, whole * from));
            write(dest, &vec![0xee; whole * to]);
            let strides = Strides {
                dest: *to,
                src: *from,
                element: *element,
                count: *count,
            };
            // SAFETY: src and dest are this member's areas, larger than any step needs; all members take the same step.
            unsafe { data::alltoalls(group, view, dest, src, strides) }.expect("done");
            let mut expected = vec![0xee; whole * to];
            for (i, &p) in pes.iter().enumerate() {
                let theirs = pattern(p, round, whole * from);
                for k in 0..*count {
                    let a = (me * count + k) * from * element;
                    let b = (i * count + k) * to * element;
                    expected[b..b + element].copy_from_slice(&theirs[a..a + element]);
                }
            }
            expect(dest, &expected, "alltoalls");
        }
        Step::Sum { count, in_place } => {
            write(src, &pattern(pe, round, count * 8));
            let to = if *in_place { src } else { dest };
            // SAFETY: src and dest are this member's areas, larger than any step needs; all members take the same step.
            unsafe { reduce::reduce(group, view, SUM, to, src, *count) }.expect("done");
            expect(to, &sum(pes, round, *count), "sum");
        }
        Step::Scan {
            count,
            in_place,
            inclusive,
        } => {
            write(src, &pattern(pe, round, count * 8));
            let to = if *in_place { src } else { dest };
            // SAFETY: src and dest are this member's areas, larger than any step needs; all members take the same step.
            unsafe { reduce::scan(group, view, SUM, to, src, *count, *inclusive) }.expect("done");
            let before = if *inclusive { me + 1 } else { me };
            expect(to, &sum(&pes[..before], round, *count), "scan");
        }
    }
}

fn check(pes: &[usize], n_pes: usize, cores: usize, steps: &[Step]) {
    let world = World::new(n_pes);
    on_all(&world, n_pes, |me, view| {
        let Some(group) = world.group(pes, me, 3, 0, cores) else {
            return;
        };
        for (round, step) in steps.iter().enumerate() {
            skew(me, round);
            run(step, round, &group, view, pes);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_collectives_agrees_with_a_sequential_model(
        n_pes in prop::sample::select(vec![1usize, 2, 3, 4, 5, 7, 8]),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        check(&(0..n_pes).collect::<Vec<_>>(), n_pes, 64, &steps);
    }

    #[test]
    fn groups_of_some_pes_in_any_order_agree_with_the_model(
        start in 0usize..3,
        stride in 1usize..3,
        size in 1usize..4,
        reverse in any::<bool>(),
        steps in prop::collection::vec(step(), 1..20),
    ) {
        let mut pes: Vec<usize> = (0..size).map(|i| start + i * stride).collect();
        if reverse {
            pes.reverse();
        }
        check(&pes, 8, 64, &steps);
    }
}

#[test]
fn a_barrier_lets_nobody_pass_before_all_have_come_a_hundred_thousand_times() {
    use std::sync::atomic::{AtomicU64, Ordering};
    for (n_pes, cores, rounds) in [
        (2, 64, 100_000u64),
        (3, 64, 20_000),
        (19, 64, 300),
        (40, 2, 300),
    ] {
        let world = World::new(n_pes);
        let pes: Vec<usize> = (0..n_pes).collect();
        let arrived = AtomicU64::new(0);
        on_all(&world, n_pes, |me, _| {
            let group = world.group(&pes, me, 0, 0, cores).expect("a member");
            for round in 1..=rounds {
                if (me as u64 + round).is_multiple_of(97) {
                    std::thread::yield_now();
                }
                arrived.fetch_add(1, Ordering::Relaxed);
                group.sync().expect("met");
                let seen = arrived.load(Ordering::Relaxed);
                assert!(
                    seen >= round * n_pes as u64,
                    "{seen} had arrived in round {round} of {n_pes} PEs"
                );
            }
        });
    }
}

#[test]
fn a_slot_passes_to_another_group_without_a_reset() {
    let world = World::new(5);
    on_all(&world, 5, |me, view| {
        let mut start = 0;
        for (generation, pes) in [
            vec![0, 1, 2, 3, 4],
            vec![4, 2, 0],
            vec![0, 1, 2, 3, 4],
            vec![1, 2, 3],
        ]
        .iter()
        .enumerate()
        {
            if let Some(group) = world.group(pes, me, 7, start, 64) {
                for round in 0..50 {
                    run(
                        &Step::Sum {
                            count: round * 9,
                            in_place: round % 2 == 0,
                        },
                        round,
                        &group,
                        view,
                        pes,
                    );
                    run(
                        &Step::Broadcast {
                            bytes: round * 60,
                            root: round,
                            in_place: false,
                        },
                        round,
                        &group,
                        view,
                        pes,
                    );
                }
            }
            // As the creation of a team does: above whatever any member has used.
            start = (generation as u64 + 1) * 1000;
            let all = world
                .group(&[0, 1, 2, 3, 4], me, 1, generation as u64, 64)
                .expect("all are members");
            all.sync().expect("met");
        }
    });
}

#[test]
fn a_root_that_runs_ahead_overwrites_nothing_that_is_still_to_be_read() {
    let world = World::new(3);
    let pes = [0, 1, 2];
    on_all(&world, 3, |me, view| {
        let group = world.group(&pes, me, 2, 0, 64).expect("a member");
        for round in 0..5000 {
            if me == 2 && round % 100 == 0 {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            run(
                &Step::Broadcast {
                    bytes: 8 + round % 300,
                    root: 0,
                    in_place: false,
                },
                round,
                &group,
                view,
                &pes,
            );
        }
    });
}

#[test]
fn large_sums_are_right_for_many_pes() {
    for n_pes in [9, 65, 128] {
        let world = World::new(n_pes);
        let pes: Vec<usize> = (0..n_pes).collect();
        on_all(&world, n_pes, |me, view| {
            let group = world.group(&pes, me, 0, 0, 2).expect("a member");
            for (round, count) in [1, 200, 256, 257, 3000].into_iter().enumerate() {
                run(
                    &Step::Sum {
                        count,
                        in_place: round % 2 == 0,
                    },
                    round,
                    &group,
                    view,
                    &pes,
                );
                run(
                    &Step::Scan {
                        count,
                        in_place: round % 2 == 1,
                        inclusive: round % 3 == 0,
                    },
                    round,
                    &group,
                    view,
                    &pes,
                );
            }
        });
    }
}

/// `op` of `a` and `b` through the erased operation, in each of the ways its result may lie.
fn apply<T: Copy + PartialEq + std::fmt::Debug>(operation: Operation, a: &[T], b: &[T]) -> Vec<T> {
    let mut apart = a.to_vec();
    let (mut over_a, mut over_b) = (a.to_vec(), b.to_vec());
    // SAFETY: arrays of equal length.
    unsafe {
        let n = a.len();
        (operation.combine)(
            apart.as_mut_ptr().cast(),
            a.as_ptr().cast(),
            b.as_ptr().cast(),
            n,
        );
        let at = over_a.as_mut_ptr().cast::<u8>();
        (operation.combine)(at, at, b.as_ptr().cast(), n);
        let at = over_b.as_mut_ptr().cast::<u8>();
        (operation.combine)(at, a.as_ptr().cast(), at, n);
    }
    assert_eq!(apart, over_a);
    assert_eq!(apart, over_b);
    apart
}

#[test]
fn operations_of_each_kind_of_type_give_what_c_gives() {
    use ops::{operation, And, Max, Min, Or, Prod, Sum, Xor};
    let (a, b) = ([1i8, -100, 127, 5], [2i8, -100, 1, -5]);
    assert_eq!(apply(operation::<i8, Sum>(), &a, &b), [3, 56, -128, 0]);
    assert_eq!(apply(operation::<i8, Min>(), &a, &b), [1, -100, 1, -5]);
    assert_eq!(apply(operation::<i8, Max>(), &a, &b), [2, -100, 127, 5]);
    let (a, b) = ([0xf0u8, 3, 1], [0x3cu8, 5, 1]);
    assert_eq!(apply(operation::<u8, And>(), &a, &b), [0x30, 1, 1]);
    assert_eq!(apply(operation::<u8, Or>(), &a, &b), [0xfc, 7, 1]);
    assert_eq!(apply(operation::<u8, Xor>(), &a, &b), [0xcc, 6, 0]);
    let (a, b) = ([1.5f64, -2.0, 8.0], [0.5f64, 3.0, 8.0]);
    assert_eq!(apply(operation::<f64, Prod>(), &a, &b), [0.75, -6.0, 64.0]);
    assert_eq!(apply(operation::<f64, Max>(), &a, &b), [1.5, 3.0, 8.0]);
    let c = |re, im| table::ComplexDouble { re, im };
    assert_eq!(
        apply(
            operation::<table::ComplexDouble, Prod>(),
            &[c(1.0, 2.0), c(0.0, 1.0)],
            &[c(3.0, -1.0), c(0.0, 1.0)]
        ),
        [c(5.0, 5.0), c(-1.0, 0.0)]
    );
    assert_eq!(
        apply(
            operation::<table::ComplexDouble, Sum>(),
            &[c(1.0, 2.0)],
            &[c(3.0, -1.0)]
        ),
        [c(4.0, 1.0)]
    );
}

/// A small integer as an x87 80-bit number: sign and exponent, explicit leading bit.
#[cfg(target_arch = "x86_64")]
fn long_double(value: i64) -> table::LongDouble {
    let mut bytes = [0u8; 16];
    if value != 0 {
        let magnitude = value.unsigned_abs();
        let shift = magnitude.leading_zeros();
        bytes[..8].copy_from_slice(&(magnitude << shift).to_le_bytes());
        let exponent = 16383 + 63 - shift as u16;
        let sign = if value < 0 { 0x8000 } else { 0 };
        bytes[8..10].copy_from_slice(&(exponent | sign).to_le_bytes());
    }
    table::LongDouble(bytes)
}

#[cfg(target_arch = "x86_64")]
#[test]
fn long_double_operations_are_exact_to_64_bits() {
    use ops::{operation, Max, Min, Prod, Sum};
    let big = (1i64 << 62) + 1;
    for (a, b) in [
        (1, 2),
        (-3, 5),
        (7, -7),
        (big, 1),
        (big, -big),
        (0, 4),
        (3_000_000_019, 2_000_000_011),
    ] {
        let (x, y) = ([long_double(a)], [long_double(b)]);
        assert_eq!(
            apply(operation::<table::LongDouble, Sum>(), &x, &y),
            [long_double(a + b)],
            "{a} + {b}"
        );
        assert_eq!(
            apply(operation::<table::LongDouble, Min>(), &x, &y),
            [long_double(a.min(b))],
            "min of {a} and {b}"
        );
        assert_eq!(
            apply(operation::<table::LongDouble, Max>(), &x, &y),
            [long_double(a.max(b))],
            "max of {a} and {b}"
        );
        if let Some(product) = a.checked_mul(b) {
            assert_eq!(
                apply(operation::<table::LongDouble, Prod>(), &x, &y),
                [long_double(product)],
                "{a} * {b}"
            );
        }
    }
}
