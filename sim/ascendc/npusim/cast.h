// Cast: conversions between element types, with the vector unit's round modes. Out-of-range values saturate; NaN becomes 0 in integers.
#ifndef NPUSIM_CAST_H
#define NPUSIM_CAST_H

#include <limits>

#include "vector.h"

namespace npusim {

using AscendC::RoundMode;

// A float rounded to an integral value.
template <RoundMode mode> inline float to_integral(float v) {
  if constexpr (mode == RoundMode::CAST_FLOOR) return __builtin_floorf(v);
  else if constexpr (mode == RoundMode::CAST_CEIL) return __builtin_ceilf(v);
  else if constexpr (mode == RoundMode::CAST_TRUNC) return __builtin_truncf(v);
  else if constexpr (mode == RoundMode::CAST_ROUND) {  // half away from zero; adding 0.5 first would round twice
    const float size = __builtin_fabsf(v), down = __builtin_floorf(size);
    return __builtin_copysignf(size - down >= 0.5f ? down + 1.0f : down, v);
  } else return __builtin_rintf(v);
}

template <typename I> inline I saturate(float v) {
  constexpr float low = static_cast<float>(std::numeric_limits<I>::min());
  // The largest float that fits: 2^31 and 2^63 themselves do not.
  constexpr float high = sizeof(I) == 8 ? 9223371487098961920.0f : sizeof(I) == 4 ? 2147483520.0f : static_cast<float>(std::numeric_limits<I>::max());
  const float safe = v == v ? v : 0.0f;
  const I inside = static_cast<I>(safe < low ? low : high < safe ? high : safe);
  return high < safe ? std::numeric_limits<I>::max() : inside;
}

// A float rounded to fewer fraction bits (half keeps 10, bfloat16 7), still as a float; overflow is left to the conversion after it.
// Used for the modes that the processor's own conversion does not have.
template <RoundMode mode> inline float to_fraction(float v, uint32_t drop) {
  const uint32_t bits = float_bits(v), sign = bits & 0x80000000u, size = bits & 0x7FFFFFFFu, low = (1u << drop) - 1;
  if (size >= 0x7F800000u || (size & low) == 0) return v;
  const uint32_t down = size & ~low, up = down + low + 1;
  bool away;
  if constexpr (mode == RoundMode::CAST_FLOOR) away = sign != 0;
  else if constexpr (mode == RoundMode::CAST_CEIL) away = sign == 0;
  else if constexpr (mode == RoundMode::CAST_ROUND) away = (size & low) >= (low + 1) / 2;
  else if constexpr (mode == RoundMode::CAST_ODD) away = (down >> drop & 1) == 0;
  else away = false;  // TRUNC
  return bits_float(sign | (away ? up : down));
}

// Fraction bits of a float that half has no room for: 13, more for half's subnormals.
inline uint32_t half_drop(float v) {
  const int exponent = static_cast<int>(float_bits(v) >> 23 & 255u) - 127;
  const int drop = exponent >= -14 ? 13 : 13 + (-14 - exponent);
  return static_cast<uint32_t>(drop > 23 ? 23 : drop);
}

template <RoundMode mode> inline half float_to_half_as(float v) {
  if constexpr (mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT) return float_to_half(v);
  else return float_to_half(to_fraction<mode>(v, half_drop(v)));
}
template <RoundMode mode> inline bfloat16_t float_to_bfloat16_as(float v) {
  if constexpr (mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT) return float_to_bfloat16(v);
  else return float_to_bfloat16(to_fraction<mode>(v, 16));
}

template <typename T> constexpr bool is_float = one_of<T, half, bfloat16_t, float>;
template <typename T> inline float widen(T v) {
  if constexpr (AscendC::IsSameType<T, bfloat16_t>::value) return bfloat16_to_float(v);
  else return static_cast<float>(v);
}

// One element. Integers go to float exactly or to the nearest.
template <typename T, typename U, RoundMode mode> inline T convert(U v) {
  using AscendC::IsSameType;
  if constexpr (IsSameType<T, half>::value) {
    return float_to_half_as<mode>(widen(v));
  } else if constexpr (IsSameType<T, bfloat16_t>::value) {
    return float_to_bfloat16_as<mode>(widen(v));
  } else if constexpr (IsSameType<T, float>::value) {
    if constexpr (IsSameType<U, float>::value) return to_integral<mode>(v);
    else return widen(v);
  } else if constexpr (is_float<U>) {
    return saturate<T>(to_integral<mode>(widen(v)));
  } else {
    constexpr int64_t low = static_cast<int64_t>(std::numeric_limits<T>::min()), high = static_cast<int64_t>(std::numeric_limits<T>::max());
    const int64_t wide = static_cast<int64_t>(v);
    return static_cast<T>(wide < low ? low : high < wide ? high : wide);
  }
}

template <typename T, typename U, RoundMode mode> inline void cast_loop(T *d, const U *a, uint64_t n) {
  if constexpr (one_of<half, T, U>) {
    NPUSIM_LOOP_HALF for (uint64_t i = 0; i < n; ++i) d[i] = convert<T, U, mode>(a[i]);
  } else {
    NPUSIM_LOOP for (uint64_t i = 0; i < n; ++i) d[i] = convert<T, U, mode>(a[i]);
  }
}

// Pairs that the vector unit of A2 and A3 converts directly.
template <typename T, typename U> constexpr bool castable =
    (AscendC::IsSameType<U, float>::value && one_of<T, float, half, bfloat16_t, int16_t, int32_t, int64_t>) ||
    (AscendC::IsSameType<U, half>::value && one_of<T, float, int8_t, uint8_t, int16_t, int32_t>) ||
    (AscendC::IsSameType<U, bfloat16_t>::value && one_of<T, float, int32_t>) || (AscendC::IsSameType<U, int8_t>::value && one_of<T, half>) ||
    (AscendC::IsSameType<U, uint8_t>::value && one_of<T, half>) || (AscendC::IsSameType<U, int16_t>::value && one_of<T, half, float>) ||
    (AscendC::IsSameType<U, int32_t>::value && one_of<T, float, int16_t, int64_t>) ||
    (AscendC::IsSameType<U, int64_t>::value && one_of<T, float, int32_t>);

// Conversions that lose nothing take CAST_NONE only.
template <typename T, typename U> constexpr bool lossless =
    (one_of<T, float> && one_of<U, half, bfloat16_t, int16_t>) || (one_of<T, half> && one_of<U, int8_t, uint8_t>) || (one_of<T, int64_t> && one_of<U, int32_t>);

}  // namespace npusim

namespace AscendC {

template <typename T, typename U>
__aicore__ inline void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &mode, const uint32_t count, NPUSIM_SITE) {
  static_assert(npusim::castable<T, U>, "Cast: the vector unit does not convert between these types; go through float or half");
  T *d = npusim::operand(dst, static_cast<uint64_t>(count) * sizeof(T), "Cast", site);
  const U *a = npusim::operand(src, static_cast<uint64_t>(count) * sizeof(U), "Cast", site);
  npusim::check_overlap(d, static_cast<uint64_t>(count) * sizeof(T), a, static_cast<uint64_t>(count) * sizeof(U), "Cast", site);
  npusim::vector_work(site);
  if constexpr (npusim::lossless<T, U>) {
    if (mode != RoundMode::CAST_NONE)
      npusim::broken(site, "Cast: round mode %d for a conversion that loses nothing; use CAST_NONE", static_cast<int>(mode));
    npusim::cast_loop<T, U, RoundMode::CAST_NONE>(d, a, count);
  } else {
    switch (mode) {
      case RoundMode::CAST_NONE: return npusim::cast_loop<T, U, RoundMode::CAST_NONE>(d, a, count);
      case RoundMode::CAST_RINT: return npusim::cast_loop<T, U, RoundMode::CAST_RINT>(d, a, count);
      case RoundMode::CAST_FLOOR: return npusim::cast_loop<T, U, RoundMode::CAST_FLOOR>(d, a, count);
      case RoundMode::CAST_CEIL: return npusim::cast_loop<T, U, RoundMode::CAST_CEIL>(d, a, count);
      case RoundMode::CAST_ROUND: return npusim::cast_loop<T, U, RoundMode::CAST_ROUND>(d, a, count);
      case RoundMode::CAST_TRUNC: return npusim::cast_loop<T, U, RoundMode::CAST_TRUNC>(d, a, count);
      case RoundMode::CAST_ODD:
        if constexpr (IsSameType<T, half>::value && IsSameType<U, float>::value) return npusim::cast_loop<T, U, RoundMode::CAST_ODD>(d, a, count);
        npusim::broken(site, "Cast: CAST_ODD is for float to half only");
    }
    npusim::broken(site, "Cast: %d is no round mode", static_cast<int>(mode));
  }
}

}  // namespace AscendC

#endif
