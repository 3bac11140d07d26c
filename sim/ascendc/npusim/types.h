// Words of AscendC for the emulated NPU: function and address-space qualifiers, number types, enumerations.
//
// No behaviour is here. Values are the vendor's (interface facts); the text is ours. Included first by every other part.
#ifndef NPUSIM_TYPES_H
#define NPUSIM_TYPES_H

#include <stdint.h>

#if !defined(__clang__)
#error "kernels for the emulated NPU need clang: address spaces are part of overload resolution"
#endif
#if __NPU_ARCH__ != 2201 && __NPU_ARCH__ != 3510
#error "__NPU_ARCH__ must be 2201 (A2, A3) or 3510 (950)"
#endif

#define __CCE_AICORE__ (__NPU_ARCH__ == 2201 ? 220 : 310)
#if __NPU_ARCH__ == 2201
#define __DAV_C220_VEC__ 1
#else
#define __DAV_C310__ 1
#endif

// --- Qualifiers -----------------------------------------------------------------------------------------------------------------------
// Global memory and the unified buffer are address spaces of their own, as on the device: a pointer into one does not convert to a pointer
// into the other. Underneath both are ordinary addresses of this process.
#define __gm__ __attribute__((address_space(1)))
#define __ubuf__ __attribute__((address_space(6)))
#define __aicore__
// npushmem-build looks for this annotation (build/src/scan.rs); default visibility lets the trampoline ask for the symbol's name.
#define __global__ __attribute__((annotate("npusim.global"), visibility("default"), used))
#define __mix__(cube, vector) __attribute__((annotate("npusim.core(" #cube "," #vector ")")))
#define __vector__ __mix__(0, 1)
#define __cube__ __mix__(1, 0)
#define __schedmode__(mode)

typedef __gm__ uint8_t *GM_ADDR;

// --- Numbers --------------------------------------------------------------------------------------------------------------------------
// half is a built-in type, never a class: clang refuses member functions behind __gm__ and __ubuf__ pointers.
#if defined(__x86_64__) && __clang_major__ < 15
typedef __fp16 half;
#else
typedef _Float16 half;
#endif

// bfloat16: storage with conversions; arithmetic is for the vector unit (Cast to float first).
enum class bfloat16_t : uint16_t {};

// --- Pipes, events --------------------------------------------------------------------------------------------------------------------
enum pipe_t {
  PIPE_S = 0,
  PIPE_V = 1,
  PIPE_M = 2,
  PIPE_MTE1 = 3,
  PIPE_MTE2 = 4,
  PIPE_MTE3 = 5,
  PIPE_ALL = 6,
  PIPE_MTE4 = 7,
  PIPE_MTE5 = 8,
  PIPE_V2 = 9,
  PIPE_FIX = 10
};
enum event_t { EVENT_ID0 = 0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
enum mem_dsb_t { DSB_ALL = 0, DSB_DDR = 1, DSB_UB = 2, DSB_SEQ = 3 };
enum cache_line_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1 };
enum dcci_dst_t { CACHELINE_ALL = 0, CACHELINE_UB = 1, CACHELINE_OUT = 2, CACHELINE_ATOMIC = 3 };

namespace AscendC {
enum { MIX = 0, AIC = 1, AIV = 2 };
}
// The emulated cores are vector cores.
constexpr int g_coreType = AscendC::AIV;
#define ASCEND_IS_AIV constexpr(g_coreType == AscendC::AIV)
#define ASCEND_IS_AIC constexpr(g_coreType == AscendC::AIC)

namespace AscendC {

using ::bfloat16_t;
using ::half;
using TEventID = int8_t;
using TBufHandle = uint8_t *;
using TTagType = int32_t;

constexpr int32_t QUE_MAX_EVENT = 8;     // event ids a pair of pipes
constexpr uint32_t ONE_BLK_SIZE = 32;    // bytes of a UB block, the unit of its alignment
constexpr uint32_t ONE_REPEAT_BYTE_SIZE = 256; // bytes that one vector repeat handles

enum class TPosition : uint8_t {
  GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM = VECCALC, SPM, SHM = SPM, TSCM, C2PIPE2GM, C2PIPE2LOCAL, MAX
};
using QuePosition = TPosition;

enum class HardEvent : uint8_t {
  MTE2_MTE1, MTE1_MTE2, MTE1_M, M_MTE1, MTE2_V, V_MTE2, MTE3_V, V_MTE3, M_V, V_M, V_V, MTE3_MTE1, MTE1_MTE3, MTE1_V, MTE2_M,
  M_MTE2, V_MTE1, M_FIX, FIX_M, MTE3_MTE2, MTE2_MTE3, S_V, V_S, S_MTE2, MTE2_S, S_MTE3, MTE3_S, MTE2_FIX, FIX_MTE2, FIX_S, M_S,
  FIX_MTE3, MTE1_FIX, FIX_MTE1, FIX_FIX, MAX
};

enum class CacheLine : uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1 };
enum class DcciDst : uint64_t { CACHELINE_ALL = 0, CACHELINE_UB = 1, CACHELINE_OUT = 2, CACHELINE_ATOMIC = 3 };
enum class MemDsbT : uint64_t { ALL = 0, DDR = 1, UB = 2, SEQ = 3 };
enum class CacheMode { CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL = 1, CACHE_MODE_LAST = 2, CACHE_MODE_PERSISTENT = 4 };
enum class CacheRwMode { READ = 1, WRITE = 2, RW = 3 };
enum class RoundMode { CAST_NONE = 0, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };
enum class Hardware { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

// Type helpers that kernels use in place of <type_traits>.
template <typename A, typename B> struct IsSameType { static constexpr bool value = false; };
template <typename A> struct IsSameType<A, A> { static constexpr bool value = true; };

namespace Std {
template <bool C, typename A, typename B> struct conditional { using type = A; };
template <typename A, typename B> struct conditional<false, A, B> { using type = B; };
template <bool C, typename A, typename B> using conditional_t = typename conditional<C, A, B>::type;
template <typename A, typename B> constexpr bool is_same_v = IsSameType<A, B>::value;
template <typename A, typename B> struct is_same { static constexpr bool value = is_same_v<A, B>; };
template <bool C, typename T = void> struct enable_if {};
template <typename T> struct enable_if<true, T> { using type = T; };
template <bool C, typename T = void> using enable_if_t = typename enable_if<C, T>::type;
}  // namespace Std

}  // namespace AscendC

#endif
