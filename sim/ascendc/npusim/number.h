// Number formats that the processor may not know: half without F16C, bfloat16.
#ifndef NPUSIM_NUMBER_H
#define NPUSIM_NUMBER_H

#include <string.h>

#include "types.h"

#if defined(__x86_64__) && __clang_major__ < 15 && defined(__F16C__)
#include <immintrin.h>
#define NPUSIM_HALF_EIGHTS 1
#endif

namespace npusim {

inline uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}
inline float bits_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

inline float bfloat16_to_float(bfloat16_t value) { return bits_float(static_cast<uint32_t>(value) << 16); }

// Round to nearest, ties to even; a NaN stays one.
inline bfloat16_t float_to_bfloat16(float value) {
  const uint32_t bits = float_bits(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<bfloat16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

#if defined(NPUSIM_HALF_EIGHTS)
inline void float8_to_half(const float *from, half *to) {
  _mm_storeu_si128(reinterpret_cast<__m128i *>(to), _mm256_cvtps_ph(_mm256_load_ps(from), _MM_FROUND_TO_NEAREST_INT));
}
#endif

inline half float_to_half(float value) { return static_cast<half>(value); }
inline float half_to_float(half value) { return static_cast<float>(value); }

}  // namespace npusim

#if defined(__x86_64__) && __clang_major__ < 15 && !defined(__F16C__)
// clang 14 turns conversions of __fp16 into these calls when the processor has no F16C; its own run-time library is not linked.
extern "C" {
__attribute__((weak, visibility("hidden"))) float __gnu_h2f_ieee(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 0x3FFu;
  if (exponent == 31) return npusim::bits_float(sign | 0x7F800000u | fraction << 13);
  if (exponent != 0) return npusim::bits_float(sign | (exponent + 112) << 23 | fraction << 13);
  const float tiny = static_cast<float>(fraction) * 0x1p-24f;  // subnormal: exact
  return sign != 0 ? -tiny : tiny;
}
__attribute__((weak, visibility("hidden"))) uint16_t __gnu_f2h_ieee(float value) {
  const uint32_t bits = npusim::float_bits(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7FFFFFFFu;
  if (size > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | (size >> 13 & 0x3FFu));
  if (size >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // rounds to 65536 or more
  if (size >= 0x38800000u) return static_cast<uint16_t>(sign | ((size - 0x38000000u + 0xFFFu + (size >> 13 & 1u)) >> 13));
  const float scaled = npusim::bits_float(size) + 0.5f;  // subnormal: the addition rounds at 2^-24
  return static_cast<uint16_t>(sign | (npusim::float_bits(scaled) & 0x7FFu));
}
}
#endif

namespace AscendC {
__aicore__ inline float ToFloat(const bfloat16_t &value) { return npusim::bfloat16_to_float(value); }
__aicore__ inline bfloat16_t ToBfloat16(const float &value) { return npusim::float_to_bfloat16(value); }
}  // namespace AscendC

#endif
