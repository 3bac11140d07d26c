//! Which PEs a team has after splits, against brute force; and which slots are free. No processes: the arithmetic only.

use npushmem::shm::shape::Shape;
use npushmem::shm::slots::{self, Set, Slots};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// World PEs of a team, in order.
fn members(shape: Shape) -> Vec<i32> {
    (0..shape.size).map(|member| shape.pe(member)).collect()
}

/// What the standard says of a strided split, on lists. `None`: an invalid triplet.
fn strided(team: &[i32], start: i32, stride: i32, size: i32) -> Option<Vec<i32>> {
    if size < 1 || (stride == 0 && size != 1) {
        return None;
    }
    (0..size)
        .map(|i| {
            usize::try_from(start + i * stride)
                .ok()
                .and_then(|at| team.get(at))
                .copied()
        })
        .collect()
}

/// What the standard says of a 2D split, on lists: the row and the column of one member.
fn row_and_column(team: &[i32], xrange: i32, member: usize) -> (Vec<i32>, Vec<i32>) {
    let xrange = (xrange as usize).min(team.len());
    let at = |i: usize| (i % xrange, i / xrange);
    let pick = |keep: &dyn Fn(usize) -> bool| {
        (0..team.len())
            .filter(|&i| keep(i))
            .map(|i| team[i])
            .collect()
    };
    let (x, y) = at(member);
    (pick(&|i| at(i).1 == y), pick(&|i| at(i).0 == x))
}

#[derive(Debug, Clone)]
enum Split {
    Strided(i32, i32, i32),
    Row(i32, usize),
    Column(i32, usize),
}

fn split() -> impl Strategy<Value = Split> {
    prop_oneof![
        (-2i32..12, -4i32..5, -1i32..10)
            .prop_map(|(start, stride, size)| Split::Strided(start, stride, size)),
        (1i32..9, 0usize..64).prop_map(|(x, member)| Split::Row(x, member)),
        (1i32..9, 0usize..64).prop_map(|(x, member)| Split::Column(x, member)),
    ]
}

proptest! {
    #[test]
    fn nested_splits_agree_with_a_model_on_lists(n_pes in 1i32..70, splits in prop::collection::vec(split(), 1..8)) {
        let mut team = Shape::world(n_pes);
        let mut list: Vec<i32> = (0..n_pes).collect();
        for split in splits {
            let (next, expected) = match split {
                Split::Strided(start, stride, size) => (team.strided(start, stride, size), strided(&list, start, stride, size)),
                Split::Row(x, member) => {
                    let member = member % list.len();
                    (team.row_and_column(x, member as i32).map(|both| both.0), Some(row_and_column(&list, x, member).0))
                }
                Split::Column(x, member) => {
                    let member = member % list.len();
                    (team.row_and_column(x, member as i32).map(|both| both.1), Some(row_and_column(&list, x, member).1))
                }
            };
            prop_assert_eq!(next.map(members), expected.clone(), "{:?} of {:?}", split, list);
            let (Some(next), Some(expected)) = (next, expected) else { continue };
            for pe in -1..=n_pes {
                let position = expected.iter().position(|&p| p == pe).map(|i| i as i32);
                prop_assert_eq!(next.member(pe), position, "PE {} of {:?}", pe, &expected);
            }
            (team, list) = (next, expected);
        }
    }
}

#[test]
fn rows_of_no_length_are_refused() {
    assert_eq!(Shape::world(4).row_and_column(0, 0), None);
    assert_eq!(Shape::world(4).row_and_column(-3, 0), None);
}

#[test]
fn a_triplet_whose_last_member_would_overflow_is_refused() {
    assert_eq!(Shape::world(4).strided(1, i32::MAX, i32::MAX), None);
    assert_eq!(Shape::world(4).strided(3, i32::MIN, 3), None);
}

#[test]
fn the_slot_of_a_destroyed_team_is_free_when_all_members_have_left_it() {
    let line = AtomicU64::new(0);
    let mut slots = Slots::new(2);
    let (free, ceiling, more) = slots.offer();
    assert_eq!((free.lowest(), ceiling, more), (Some([2, 3]), 0, false));
    slots.settle(free, &[2]);
    slots.leave(2, 41, vec![line.as_ptr().cast()]);
    let (free, ceiling, more) = slots.offer();
    assert_eq!(
        (free.lowest(), ceiling, more),
        (Some([3]), 41, true),
        "a member has not left yet"
    );
    slots.settle(free, &[]);
    line.store(41, Ordering::Release);
    let (free, ceiling, more) = slots.offer();
    assert_eq!((free.lowest(), ceiling, more), (Some([2]), 41, false));
    slots.settle(free, &[2]);
}

#[test]
fn two_threads_that_split_at_once_are_not_offered_the_same_slots() {
    let mut slots = Slots::new(2);
    let (first, ..) = slots.offer();
    let (second, _, more) = slots.offer();
    assert_eq!((second, more), (Set([0; slots::WORDS]), true));
    slots.settle(second, &[]);
    assert_eq!(slots.offer().0, second, "the first agreement is not over");
    slots.settle(first, &[2]);
    assert_eq!(slots.offer().0.lowest(), Some([3]));
}
