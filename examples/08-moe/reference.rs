//! What the kernels of this example should do, in plain Rust: no communication, no NPU.

use half::f16;

/// The sizes; all data follows from them.
pub struct Problem {
    /// PEs of the job.
    pub pes: usize,
    /// Tokens of each PE.
    pub tokens: usize,
    /// Features of a token.
    pub hidden: usize,
    /// Experts of a token.
    pub top_k: usize,
    /// Experts in all.
    pub experts: usize,
}

/// A PE's choice of experts: `[tokens][top_k]`.
pub struct Routing {
    /// Expert numbers, each once a token.
    pub experts: Vec<i32>,
    /// Their weights, which add up to 1 for each token.
    pub weights: Vec<f32>,
}

/// Where a row came from.
#[derive(Clone, Copy)]
pub struct Source {
    /// PE.
    pub pe: usize,
    /// Its token.
    pub token: usize,
}

impl Problem {
    /// The features of a token, in [-1, 1).
    pub fn token(&self, pe: usize, token: usize) -> Vec<f16> {
        let mut random = Random::new(pe * self.tokens + token);
        (0..self.hidden)
            .map(|_| f16::from_f32(random.next() * 2.0 - 1.0))
            .collect()
    }

    /// What a router chose for a PE's tokens. Experts are not equally popular.
    pub fn routing(&self, pe: usize) -> Routing {
        let mut experts = Vec::new();
        let mut weights = Vec::new();
        for token in 0..self.tokens {
            let mut random = Random::new(!(pe * self.tokens + token));
            let mut scores: Vec<(f32, usize)> = (0..self.experts)
                .map(|expert| (random.next() + 0.2 * (expert % 5) as f32, expert))
                .collect();
            scores.sort_by(|a, b| b.0.total_cmp(&a.0));
            let chosen = &scores[..self.top_k];
            let sum: f32 = chosen.iter().map(|(score, _)| score.exp()).sum();
            experts.extend(chosen.iter().map(|(_, expert)| *expert as i32));
            weights.extend(chosen.iter().map(|(score, _)| score.exp() / sum));
        }
        Routing { experts, weights }
    }

    /// The rows that dispatch brings to a PE, in their order: by expert, sender, token.
    pub fn received(&self, pe: usize) -> Vec<Source> {
        let per_pe = self.experts.div_ceil(self.pes);
        let own = pe * per_pe..((pe + 1) * per_pe).min(self.experts);
        let mut rows = vec![Vec::new(); own.len()];
        // Each core of a sender has the tokens after those of the core before, so they come in order.
        for sender in 0..self.pes {
            let routing = self.routing(sender);
            for (at, expert) in routing.experts.iter().enumerate() {
                let expert = *expert as usize;
                if own.contains(&expert) {
                    rows[expert - own.start].push(Source {
                        pe: sender,
                        token: at / self.top_k,
                    });
                }
            }
        }
        rows.concat()
    }

    /// A token's result: each expert's output, weighted, added up in the order of the choice.
    pub fn result(&self, pe: usize, token: usize, routing: &Routing) -> Vec<f16> {
        let mut sum = vec![0.0f32; self.hidden];
        let row = self.token(pe, token);
        for k in 0..self.top_k {
            let at = token * self.top_k + k;
            let expert = routing.experts[at] as f32 / self.experts as f32;
            let factor = f16::from_f32(1.0 + expert).to_f32();
            for (sum, feature) in sum.iter_mut().zip(&row) {
                let output = f16::from_f32(feature.to_f32() * factor).to_f32();
                let term = output * routing.weights[at];
                *sum = if k == 0 { term } else { *sum + term };
            }
        }
        sum.into_iter().map(f16::from_f32).collect()
    }

    /// Rows in all, and the most that any PE sends to any expert: what every pair would be padded to.
    pub fn rows(&self) -> (usize, usize) {
        let mut most = 0;
        for pe in 0..self.pes {
            let mut counts = vec![0; self.experts];
            for expert in self.routing(pe).experts {
                counts[expert as usize] += 1;
            }
            most = counts.into_iter().fold(most, usize::max);
        }
        (self.pes * self.tokens * self.top_k, most)
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn new(seed: usize) -> Random {
        Random(seed as u64)
    }

    /// In [0, 1).
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 24) as f32
    }
}
