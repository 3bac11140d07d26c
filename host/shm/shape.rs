//! The arithmetic of teams: which PEs of the world a team has, after any number of splits.
//!
//! Not the team objects (`mod.rs`). Every split of the standard keeps members at equal distances, so three numbers say everything.

/// PEs `start`, `start + stride`, ... of the world, `size` of them; the stride may be negative (and is 0 only for one member).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// World PE of member 0.
    pub start: i32,
    /// World PEs between consecutive members.
    pub stride: i32,
    /// Members; at least 1.
    pub size: i32,
}

impl Shape {
    /// The world of `n_pes`.
    pub fn world(n_pes: i32) -> Shape {
        Shape {
            start: 0,
            stride: 1,
            size: n_pes,
        }
    }

    /// World PE of a member.
    #[inline]
    pub fn pe(self, member: i32) -> i32 {
        self.start + member * self.stride
    }

    /// The member that is world PE `pe`.
    #[inline]
    pub fn member(self, pe: i32) -> Option<i32> {
        let distance = pe - self.start;
        if self.stride == 0 {
            return (distance == 0).then_some(0);
        }
        let member = distance / self.stride;
        (distance % self.stride == 0 && (0..self.size).contains(&member)).then_some(member)
    }

    /// Members `start`, `start + stride`, ... of this team, as a team (OpenSHMEM 1.6, `shmem_team_split_strided`). `None`: no valid triplet.
    pub fn strided(self, start: i32, stride: i32, size: i32) -> Option<Shape> {
        if size < 1 || (stride == 0 && size != 1) {
            return None;
        }
        let last = i64::from(start) + i64::from(stride) * i64::from(size - 1);
        let inside = |member: i64| (0..i64::from(self.size)).contains(&member);
        (inside(i64::from(start)) && inside(last)).then(|| Shape {
            start: self.pe(start),
            // One member: the distance to a next one means nothing, and may be large.
            stride: if size == 1 { 1 } else { self.stride * stride },
            size,
        })
    }

    /// The row and the column of `member` when this team is laid out in rows of `xrange` (OpenSHMEM 1.6, `shmem_team_split_2d`).
    /// `None`: `xrange` is not positive.
    pub fn row_and_column(self, xrange: i32, member: i32) -> Option<(Shape, Shape)> {
        if xrange < 1 {
            return None;
        }
        let xrange = xrange.min(self.size);
        let (x, y) = (member % xrange, member / xrange);
        let row_size = xrange.min(self.size - y * xrange);
        let column_size = (self.size - x + xrange - 1) / xrange;
        Some((
            self.strided(y * xrange, 1, row_size)?,
            self.strided(x, xrange, column_size)?,
        ))
    }
}
