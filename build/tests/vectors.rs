//! The vector unit's results against plain Rust.

mod common;

use common::{pack, Gm, Launch, Module};
use std::sync::OnceLock;

fn module() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| Module::compile("vectors.cpp", npushmem_build::NPU_ARCH_A2))
}

/// Runs with `inputs` in global memory and an output of `bytes`.
fn run(kernel: &str, inputs: &[Vec<u8>], bytes: usize, n: Option<usize>) -> Vec<u8> {
    let mut memory: Vec<Gm> = Vec::new();
    for input in inputs {
        let mut gm = Gm::new(input.len());
        gm.bytes()[..input.len()].copy_from_slice(input);
        memory.push(gm);
    }
    let mut out = Gm::new(bytes);
    let mut arguments: Vec<u64> = memory.iter().map(Gm::address).collect();
    arguments.push(out.address());
    let mut packed = pack(&arguments);
    if let Some(n) = n {
        packed.extend((n as u32).to_ne_bytes());
    }
    let outcome = module().run(kernel, &packed, &Launch::default());
    assert_eq!(outcome.code, 0, "{kernel}: {outcome:?}");
    out.bytes()[..bytes].to_vec()
}

/// Numbers and their bytes.
trait Number: Copy + PartialEq + std::fmt::Debug {
    const SIZE: usize;
    fn bytes(values: &[Self]) -> Vec<u8>;
    fn read(bytes: &[u8]) -> Vec<Self>;
}
macro_rules! number {
    ($($t:ty),+) => {$(
        impl Number for $t {
            const SIZE: usize = std::mem::size_of::<$t>();
            fn bytes(values: &[Self]) -> Vec<u8> {
                values.iter().flat_map(|v| v.to_ne_bytes()).collect()
            }
            fn read(bytes: &[u8]) -> Vec<Self> {
                bytes.chunks_exact(Self::SIZE).map(|b| <$t>::from_ne_bytes(b.try_into().unwrap())).collect()
            }
        }
    )+};
}
number!(f32, i16, u16, i32, i64);

/// `blocks` results of n elements, each starting at a multiple of 32 bytes.
fn results<T: Number>(bytes: &[u8], n: usize, blocks: usize) -> Vec<Vec<T>> {
    let step = (n * T::SIZE).div_ceil(32) * 32;
    (0..blocks)
        .map(|i| T::read(&bytes[i * step..i * step + n * T::SIZE]))
        .collect()
}

/// Numbers without a pattern, the same each time.
fn noise(n: usize, seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}
fn floats(n: usize, seed: u64) -> Vec<f32> {
    noise(n, seed)
        .map(|r| (r >> 40) as f32 / 16384.0 - 512.0)
        .collect()
}

/// Lengths around the widths of machine vectors.
const LENGTHS: [usize; 7] = [1, 7, 8, 31, 64, 100, 1000];

/// f32 -> half bits, round to nearest even; by exact comparison of neighbours.
fn half_bits(v: f32) -> u16 {
    nearest(v, half_value, 0x7C00)
}
fn half_value(bits: u16) -> f64 {
    let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 31, f64::from(bits & 0x3FF));
    let size = match exponent {
        31 if bits & 0x3FF != 0 => f64::NAN,
        31 => 65536.0, // infinity rounds as the next power of two would
        0 => fraction * 2f64.powi(-24),
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
    };
    if sign == 1 {
        -size
    } else {
        size
    }
}
fn bfloat16_value(bits: u16) -> f64 {
    if bits & 0x7FFF == 0x7F80 {
        return 2f64.powi(128) * if bits >> 15 == 1 { -1.0 } else { 1.0 };
    }
    f64::from(f32::from_bits(u32::from(bits) << 16))
}
/// The 16-bit pattern whose value is nearest, ties to even; sizes grow with their bits up to `infinity`.
fn nearest(v: f32, value: impl Fn(u16) -> f64, infinity: u16) -> u16 {
    let sign = if v.is_sign_negative() { 0x8000 } else { 0 };
    let size = f64::from(v.abs());
    let below = floor_size(size, &value, infinity);
    if below == infinity {
        return sign | infinity;
    }
    let (down, up) = (size - value(below), value(below + 1) - size);
    sign | if up < down || (up == down && below & 1 == 1) {
        below + 1
    } else {
        below
    }
}
/// The largest pattern whose value is not above `size`.
fn floor_size(size: f64, value: impl Fn(u16) -> f64, infinity: u16) -> u16 {
    let (mut low, mut high) = (0u16, infinity + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if value(middle) <= size {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[test]
fn float_arithmetic_equals_the_processor_s() {
    for n in LENGTHS {
        let (a, b) = (floats(n, 1), floats(n, 2));
        let step = (n * 4).div_ceil(32) * 32;
        let all = run(
            "arithmetic_float",
            &[f32::bytes(&a), f32::bytes(&b)],
            8 * step,
            Some(n),
        );
        let got = results::<f32>(&all, n, 8);
        let each = |f: &dyn Fn(f32, f32) -> f32| {
            a.iter().zip(&b).map(|(x, y)| f(*x, *y)).collect::<Vec<_>>()
        };
        assert_eq!(got[0], each(&|x, y| x + y));
        assert_eq!(got[1], each(&|x, y| x - y));
        assert_eq!(got[2], each(&|x, y| x * y));
        assert_eq!(got[3], each(&f32::max));
        assert_eq!(got[4], each(&f32::min));
        assert_eq!(got[5], each(&|x, _| x + 3.0));
        assert_eq!(got[6], each(&|x, _| x * 3.0));
        assert_eq!(got[7], each(&|x, _| x.clamp(3.0, 100.0)));
    }
}

#[test]
fn integer_arithmetic_wraps() {
    for n in LENGTHS {
        let a: Vec<i32> = noise(n, 3).map(|r| r as i32).collect();
        let b: Vec<i32> = noise(n, 4).map(|r| r as i32).collect();
        let step = (n * 4).div_ceil(32) * 32;
        let got = results::<i32>(
            &run(
                "arithmetic_int32",
                &[i32::bytes(&a), i32::bytes(&b)],
                8 * step,
                Some(n),
            ),
            n,
            8,
        );
        let each = |f: &dyn Fn(i32, i32) -> i32| {
            a.iter().zip(&b).map(|(x, y)| f(*x, *y)).collect::<Vec<_>>()
        };
        assert_eq!(got[0], each(&i32::wrapping_add));
        assert_eq!(got[1], each(&i32::wrapping_sub));
        assert_eq!(got[2], each(&i32::wrapping_mul));
        assert_eq!(got[3], each(&|x, y| x.max(y)));
        assert_eq!(got[6], each(&|x, _| x.wrapping_mul(3)));
        let a: Vec<i16> = a.iter().map(|v| *v as i16).collect();
        let b: Vec<i16> = b.iter().map(|v| *v as i16).collect();
        let step = (n * 2).div_ceil(32) * 32;
        let got = results::<i16>(
            &run(
                "arithmetic_int16",
                &[i16::bytes(&a), i16::bytes(&b)],
                8 * step,
                Some(n),
            ),
            n,
            8,
        );
        let each = |f: &dyn Fn(i16, i16) -> i16| {
            a.iter().zip(&b).map(|(x, y)| f(*x, *y)).collect::<Vec<_>>()
        };
        assert_eq!(got[0], each(&i16::wrapping_add));
        assert_eq!(got[2], each(&i16::wrapping_mul));
        assert_eq!(got[4], each(&|x, y| x.min(y)));
    }
}

#[test]
fn half_arithmetic_rounds_once() {
    for n in LENGTHS {
        let a: Vec<u16> = floats(n, 5)
            .into_iter()
            .map(|v| half_bits(v / 8.0))
            .collect();
        let b: Vec<u16> = floats(n, 6)
            .into_iter()
            .map(|v| half_bits(v / 64.0))
            .collect();
        let step = (n * 2).div_ceil(32) * 32;
        let got = results::<u16>(
            &run(
                "arithmetic_half",
                &[u16::bytes(&a), u16::bytes(&b)],
                8 * step,
                Some(n),
            ),
            n,
            8,
        );
        let each = |f: &dyn Fn(f64, f64) -> f64| {
            a.iter()
                .zip(&b)
                .map(|(x, y)| half_bits(f(half_value(*x), half_value(*y)) as f32))
                .collect::<Vec<_>>()
        };
        assert_eq!(got[0], each(&|x, y| x + y));
        assert_eq!(got[2], each(&|x, y| x * y));
        assert_eq!(got[3], each(&f64::max));
        assert_eq!(got[6], each(&|x, _| x * 3.0));
    }
}

#[test]
fn functions_are_close_to_the_mathematical_ones() {
    let n = 100;
    let a: Vec<f32> = floats(n, 7).into_iter().map(|v| v / 32.0).collect();
    let got = results::<f32>(&run("functions", &[f32::bytes(&a)], 7 * 416, Some(n)), n, 7);
    let close = |x: f32, y: f64| (f64::from(x) - y).abs() <= 1e-6 * y.abs().max(1e-3);
    for (i, v) in a.iter().enumerate() {
        let v64 = f64::from(*v);
        assert!(close(got[0][i], v64.exp()), "exp {v}");
        assert!((f64::from(got[1][i]) - v64).abs() < 1e-5, "ln(exp) {v}");
        assert!(close(got[2][i], v64.abs().sqrt()), "sqrt {v}");
        assert!(close(got[3][i], 1.0 / v64.abs().sqrt()), "reciprocal {v}");
        assert!(close(got[4][i], 1.0 / v64.abs().sqrt()), "rsqrt {v}");
        assert_eq!(got[5][i], v.max(0.0), "relu {v}");
        assert_eq!(got[6][i], 1.0, "div {v}");
    }
}

#[test]
fn bit_operations_are_exact() {
    let n = 77;
    let a: Vec<u16> = noise(n, 8).map(|r| r as u16).collect();
    let b: Vec<u16> = noise(n, 9).map(|r| r as u16).collect();
    let got = results::<u16>(
        &run("bits", &[u16::bytes(&a), u16::bytes(&b)], 3 * 160, Some(n)),
        n,
        3,
    );
    for i in 0..n {
        assert_eq!(
            (got[0][i], got[1][i], got[2][i]),
            (a[i] & b[i], a[i] | b[i], !a[i])
        );
    }
}

/// Values where round modes differ, and the edges of the integer types.
fn awkward() -> Vec<f32> {
    let mut values = vec![
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        -1.5,
        2.5,
        -2.5,
        0.499_999_97,
        -0.499_999_97,
        1e-30,
        -1e-30,
        32_766.5,
        32_767.5,
        40_000.0,
        -32_768.5,
        -40_000.0,
        2_147_483_500.0,
        2_147_483_648.0,
        -2_147_483_648.0,
        3e9,
        -3e9,
        9e18,
        9.3e18,
        -9.3e18,
        8_388_607.5,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    values.extend(floats(200, 10));
    values
}

/// Round half away from zero etc., in the kernel's order of modes.
fn rounded(v: f32) -> [f32; 5] {
    [
        v.round_ties_even(),
        v.floor(),
        v.ceil(),
        v.round(),
        v.trunc(),
    ]
}

#[test]
fn casts_to_integers_round_as_asked_and_saturate() {
    let a = awkward();
    let n = a.len();
    let (got32, got16, got64) = (
        results::<i32>(
            &run("cast_int32", &[f32::bytes(&a)], 5 * 1024, Some(n)),
            n,
            5,
        ),
        results::<i16>(
            &run("cast_int16", &[f32::bytes(&a)], 5 * 512, Some(n)),
            n,
            5,
        ),
        results::<i64>(
            &run("cast_int64", &[f32::bytes(&a)], 5 * 2048, Some(n)),
            n,
            5,
        ),
    );
    for (i, v) in a.iter().enumerate() {
        for (mode, whole) in rounded(*v).into_iter().enumerate() {
            // `as` saturates and takes NaN to 0, as the unit does.
            assert_eq!(got32[mode][i], whole as i32, "{v} mode {mode}");
            assert_eq!(got16[mode][i], whole as i16, "{v} mode {mode}");
            assert_eq!(got64[mode][i], whole as i64, "{v} mode {mode}");
        }
    }
}

#[test]
fn casts_from_float_to_float_round_to_whole_numbers() {
    let a: Vec<f32> = awkward().into_iter().filter(|v| !v.is_nan()).collect();
    let n = a.len();
    let got = results::<f32>(
        &run("cast_float", &[f32::bytes(&a)], 5 * 1024, Some(n)),
        n,
        5,
    );
    for (i, v) in a.iter().enumerate() {
        for (mode, whole) in rounded(*v).into_iter().enumerate() {
            assert_eq!(got[mode][i], whole, "{v} mode {mode}");
        }
    }
}

/// The patterns that the five modes should give.
fn narrowed(v: f32, value: &dyn Fn(u16) -> f64, infinity: u16) -> [u16; 5] {
    let sign = if v.is_sign_negative() { 0x8000u16 } else { 0 };
    let size = f64::from(v.abs());
    let down = floor_size(size, value, infinity);
    let exact = value(down) == size || down == infinity;
    let up = if exact { down } else { down + 1 };
    let away = !exact && size - value(down) >= value(up) - size;
    let (floor, ceil) = if sign == 0 { (down, up) } else { (up, down) };
    [
        nearest(v, value, infinity),
        sign | floor,
        sign | ceil,
        sign | if away { up } else { down },
        sign | down,
    ]
}

#[test]
fn casts_to_half_and_bfloat16_round_as_asked() {
    let mut a: Vec<f32> = floats(200, 11).into_iter().map(|v| v / 7.0).collect();
    a.extend([
        0.0,
        -0.0,
        1.0,
        65504.0,
        1e-6,
        -1e-6,
        5.96e-8,
        6.0e-5,
        6.1e-5,
        1.000_488_3,
        -1.000_488_3,
        1.001_464_8,
    ]);
    let n = a.len();
    let halves = results::<u16>(&run("cast_half", &[f32::bytes(&a)], 5 * 448, Some(n)), n, 5);
    let brains = results::<u16>(
        &run("cast_bfloat16", &[f32::bytes(&a)], 5 * 448, Some(n)),
        n,
        5,
    );
    for (i, v) in a.iter().enumerate() {
        let got: Vec<u16> = halves.iter().map(|m| m[i]).collect();
        assert_eq!(got, narrowed(*v, &half_value, 0x7C00), "half of {v}");
        let got: Vec<u16> = brains.iter().map(|m| m[i]).collect();
        assert_eq!(
            got,
            narrowed(*v, &bfloat16_value, 0x7F80),
            "bfloat16 of {v}"
        );
    }
    let odd = results::<u16>(&run("cast_odd", &[f32::bytes(&a)], 448, Some(n)), n, 1);
    for (i, v) in a.iter().enumerate() {
        let down = floor_size(f64::from(v.abs()), half_value, 0x7C00);
        let exact = half_value(down) == f64::from(v.abs());
        let size = if exact || down & 1 == 1 {
            down
        } else {
            down + 1
        };
        assert_eq!(odd[0][i] & 0x7FFF, size, "{v}");
    }
}

#[test]
fn every_half_becomes_its_float() {
    let all: Vec<u16> = (0..=u16::MAX).filter(|b| b & 0x7C00 != 0x7C00).collect();
    for part in all.chunks(8192) {
        let n = part.len();
        let got = results::<f32>(
            &run("half_to_float", &[u16::bytes(part)], n * 4, Some(n)),
            n,
            1,
        );
        for (bits, v) in part.iter().zip(&got[0]) {
            assert_eq!(f64::from(*v), half_value(*bits), "{bits:#x}");
        }
    }
}

#[test]
fn reductions_find_sum_and_extremes_with_their_places() {
    for n in [1usize, 5, 63, 64, 65, 128, 1000, 20_000] {
        let a = floats(n, 12);
        let out = run("reduce", &[f32::bytes(&a)], 20, Some(n));
        let values = f32::read(&out);
        let sum: f64 = a.iter().map(|v| f64::from(*v)).sum();
        let size: f64 = a.iter().map(|v| f64::from(v.abs())).sum();
        assert!(
            (f64::from(values[0]) - sum).abs() <= 1e-6 * size,
            "n {n}: {} is not {sum}",
            values[0]
        );
        let best = a.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let least = a.iter().copied().fold(f32::INFINITY, f32::min);
        assert_eq!((values[1], values[3]), (best, least));
        assert_eq!(
            values[2].to_bits() as usize,
            a.iter().position(|v| *v == best).unwrap()
        );
        assert_eq!(
            values[4].to_bits() as usize,
            a.iter().position(|v| *v == least).unwrap()
        );
    }
}

#[test]
fn the_repeat_form_follows_mask_and_strides() {
    let (a, b) = (floats(192, 13), floats(192, 14));
    let out = f32::read(&run(
        "repeats",
        &[f32::bytes(&a), f32::bytes(&b)],
        2 * 768,
        None,
    ));
    for i in 0..192 {
        let first = if i % 64 < 20 { a[i] + b[i] } else { -1.0 };
        // The second source does not advance between repeats.
        let second = if i % 2 == 0 { a[i] * b[i % 64] } else { -1.0 };
        assert_eq!((out[i], out[192 + i]), (first, second), "element {i}");
    }
}
