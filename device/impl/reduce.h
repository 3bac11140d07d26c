/* Collectives that compute: reductions, reduce-scatter, scans. Called by all communicating cores of each launch. Used by kernels.
 *
 * Member b owns block b of the elements: it alone reads that block of everybody's source, and it alone writes that block of everybody's
 * dest, after having read it. So dest may be source, no scratch memory but UB is needed, each element is computed once (all members get the
 * same bits), and the order is that of the members: ((x0 op x1) op x2) ... The cores of a PE share its block.
 *
 * The vector unit computes: sum, prod, min, max of half, float, 16- and 32-bit signed integers (sum and prod of unsigned ones too, which
 * have the same bits), and, or of all integers. The rest (8- and 64-bit arithmetic, unsigned extremes, xor) is the scalar unit's.
 */
#ifndef SHMEM_IMPL_REDUCE_H
#define SHMEM_IMPL_REDUCE_H

#include "team_data.h"

namespace shmem_impl {

enum reduction { REDUCE_SUM, REDUCE_PROD, REDUCE_MIN, REDUCE_MAX, REDUCE_AND, REDUCE_OR, REDUCE_XOR };

/* Who gets what the owner of a block computes. */
enum yield { TO_ALL, TO_OWNER, PREFIX_WITH, PREFIX_BEFORE };

/* The type that stands for all types of its size and kind. */
template <uint32_t size, bool is_signed>
struct plain_integer;
template <>
struct plain_integer<1, true> { using type = int8_t; };
template <>
struct plain_integer<2, true> { using type = int16_t; };
template <>
struct plain_integer<4, true> { using type = int32_t; };
template <>
struct plain_integer<8, true> { using type = int64_t; };
template <>
struct plain_integer<1, false> { using type = uint8_t; };
template <>
struct plain_integer<2, false> { using type = uint16_t; };
template <>
struct plain_integer<4, false> { using type = uint32_t; };
template <>
struct plain_integer<8, false> { using type = uint64_t; };
template <typename T>
struct plain { using type = typename plain_integer<sizeof(T), (T(-1) < T(0))>::type; };
template <>
struct plain<float> { using type = float; };
template <>
struct plain<half> { using type = half; };

/* The type whose vector arithmetic serves C, void where there is none: the same bits for sum and prod, the same order for min and max. */
template <typename C>
struct vector_types { using sum = void; using order = void; };
template <>
struct vector_types<float> { using sum = float; using order = float; };
template <>
struct vector_types<half> { using sum = half; using order = half; };
template <>
struct vector_types<int16_t> { using sum = int16_t; using order = int16_t; };
template <>
struct vector_types<int32_t> { using sum = int32_t; using order = int32_t; };
template <>
struct vector_types<uint16_t> { using sum = int16_t; using order = void; };
template <>
struct vector_types<uint32_t> { using sum = int32_t; using order = void; };

/* into = into op with, by the vector unit; false where it has no such operation. Never instantiated for void. */
template <typename V>
struct vector_unit {
  static __aicore__ inline bool arithmetic(const AscendC::LocalTensor<uint8_t>& into, const AscendC::LocalTensor<uint8_t>& with, reduction op,
                                           uint32_t n) {
    AscendC::LocalTensor<V> a = into.ReinterpretCast<V>(), b = with.ReinterpretCast<V>();
    if (op == REDUCE_SUM) AscendC::Add(a, a, b, int32_t(n));
    if (op == REDUCE_PROD) AscendC::Mul(a, a, b, int32_t(n));
    return op == REDUCE_SUM || op == REDUCE_PROD;
  }
  static __aicore__ inline bool extremes(const AscendC::LocalTensor<uint8_t>& into, const AscendC::LocalTensor<uint8_t>& with, reduction op,
                                         uint32_t n) {
    AscendC::LocalTensor<V> a = into.ReinterpretCast<V>(), b = with.ReinterpretCast<V>();
    if (op == REDUCE_MIN) AscendC::Min(a, a, b, int32_t(n));
    if (op == REDUCE_MAX) AscendC::Max(a, a, b, int32_t(n));
    return op == REDUCE_MIN || op == REDUCE_MAX;
  }
};
template <>
struct vector_unit<void> {
  static __aicore__ inline bool arithmetic(const AscendC::LocalTensor<uint8_t>&, const AscendC::LocalTensor<uint8_t>&, reduction, uint32_t) {
    return false;
  }
  static __aicore__ inline bool extremes(const AscendC::LocalTensor<uint8_t>&, const AscendC::LocalTensor<uint8_t>&, reduction, uint32_t) {
    return false;
  }
};

/* Sums and products wrap, as the vector unit's do: in unsigned arithmetic of at least 32 bits, so that no promotion overflows. */
template <typename C>
__aicore__ inline C wrapped(C a, C b, bool product) {
  uint64_t x = uint64_t(a), y = uint64_t(b);
  return C(product ? x * y : x + y);
}
template <>
__aicore__ inline float wrapped<float>(float a, float b, bool product) {
  return product ? a * b : a + b;
}

/* Operations on bits exist for integers only. */
template <typename C>
__aicore__ inline C on_bits(C a, C b, reduction op) {
  return op == REDUCE_AND ? C(a & b) : op == REDUCE_OR ? C(a | b) : C(a ^ b);
}
template <>
__aicore__ inline float on_bits<float>(float a, float, reduction) {
  return a;
}

template <typename C>
__aicore__ inline void scalar_combine(const AscendC::LocalTensor<uint8_t>& into, const AscendC::LocalTensor<uint8_t>& with, reduction op,
                                      uint32_t n) {
  AscendC::LocalTensor<C> a = into.ReinterpretCast<C>(), b = with.ReinterpretCast<C>();
  for (uint32_t i = 0; i < n; ++i) {
    C x = a.GetValue(i), y = b.GetValue(i);
    switch (op) {
      case REDUCE_SUM: x = wrapped<C>(x, y, false); break;
      case REDUCE_PROD: x = wrapped<C>(x, y, true); break;
      case REDUCE_MIN: x = y < x ? y : x; break;
      case REDUCE_MAX: x = y > x ? y : x; break;
      default: x = on_bits<C>(x, y, op); break;
    }
    a.SetValue(i, x);
  }
}
/* half has no scalar arithmetic; the vector unit has all that is done with it. */
template <>
__aicore__ inline void scalar_combine<half>(const AscendC::LocalTensor<uint8_t>&, const AscendC::LocalTensor<uint8_t>&, reduction, uint32_t) {}

/* into = into op with, n elements. The data has arrived; on return it is ready for copies and for the next step. */
template <typename C>
__aicore__ inline void combine(const state& s, const AscendC::LocalTensor<uint8_t>& into, const AscendC::LocalTensor<uint8_t>& with,
                               reduction op, uint32_t n) {
  bool vector = vector_unit<typename vector_types<C>::sum>::arithmetic(into, with, op, n) ||
                vector_unit<typename vector_types<C>::order>::extremes(into, with, op, n);
  if (!vector && (op == REDUCE_AND || op == REDUCE_OR)) {
    AscendC::LocalTensor<uint16_t> a = into.ReinterpretCast<uint16_t>(), b = with.ReinterpretCast<uint16_t>();
    int32_t words = int32_t((n * uint32_t(sizeof(C)) + 1) / 2);
    if (op == REDUCE_AND) AscendC::And(a, a, b, words);
    if (op == REDUCE_OR) AscendC::Or(a, a, b, words);
    vector = true;
  }
  if (vector) {
    vector_done(s.event0);
  } else {
    scalar_combine<C>(into, with, op, n);
    scalar_done(s.event0);
  }
}

/* Two tiles of UB: what is added up, and what comes next. */
struct workspace {
  AscendC::LocalTensor<uint8_t> sum, next;
  uint32_t bytes; /* of each, a multiple of 32 */
};

__aicore__ inline workspace own_workspace(state& s) {
  retire_tiles(s);
  return {ub_tensor<uint8_t>(s.tile[0], s.tile_bytes), ub_tensor<uint8_t>(s.tile[1], s.tile_bytes), s.tile_bytes};
}
template <typename T>
__aicore__ inline workspace given_workspace(const AscendC::LocalTensor<T>& scratch) {
  uint32_t bytes = uint32_t(scratch.GetSize() * sizeof(T)) / 2 / UB_ALIGN * UB_ALIGN;
  AscendC::LocalTensor<uint8_t> all = scratch.template ReinterpretCast<uint8_t>();
  return {all, all[bytes], bytes};
}

/* n elements from a member's memory to UB; on return they are there. */
__aicore__ inline void fetch_tile(state& s, const AscendC::LocalTensor<uint8_t>& tile, uint64_t from, uint32_t bytes, int pe) {
  if (pe == s.my_pe) {
    copy_gm_to_ub(s, tile, from, bytes);
    copies_in_done(s.event0);
  } else {
    get_ub(s, tile, from, bytes, pe, true);
  }
}

/* UB to a member's memory; drain_tile says when the tile may be changed. */
__aicore__ inline void send_tile(state& s, uint64_t to, const AscendC::LocalTensor<uint8_t>& tile, uint32_t bytes, int pe) {
  if (pe == s.my_pe) {
    copy_ub_to_gm(s, to, tile, bytes);
  } else {
    put_ub(s, to, tile, bytes, pe, false);
  }
}
__aicore__ inline void drain_tile(state& s) {
  commit_all(s); /* requests from UB have left through the bounce ring when they are rung */
  copies_out_done(s.event0);
}

/* The identity of sum, for what comes before the first member. */
__aicore__ inline void zero_tile(state& s, const AscendC::LocalTensor<uint8_t>& tile, uint32_t bytes) {
  AscendC::LocalTensor<uint32_t> words = tile.ReinterpretCast<uint32_t>();
  AscendC::Duplicate(words, uint32_t(0), int32_t((bytes + 3) / 4));
  vector_done(s.event0);
}

/* The owner's work on elements at byte `at` of the sources, which fit into a tile: those of dest lie at `to`. */
template <typename C>
__aicore__ inline void reduce_tile(state& s, const team& t, const workspace& w, uint64_t dst, uint64_t src, uint32_t n, reduction op,
                                   yield what) {
  uint32_t bytes = n * uint32_t(sizeof(C));
  if (what == PREFIX_BEFORE) zero_tile(s, w.sum, bytes);
  for (int32_t i = 0; i < t.n && s.error == SHMEM_OK; ++i) {
    int pe = member(t, i);
    bool first = i == 0 && what != PREFIX_BEFORE;
    fetch_tile(s, first ? w.sum : w.next, src, bytes, pe);
    if (what == PREFIX_BEFORE) {
      send_tile(s, dst, w.sum, bytes, pe);
      drain_tile(s);
    }
    if (!first && s.error == SHMEM_OK) combine<C>(s, w.sum, w.next, op, n);
    if (what == PREFIX_WITH) {
      send_tile(s, dst, w.sum, bytes, pe);
      drain_tile(s);
    }
  }
  if (what == TO_OWNER) send_tile(s, dst, w.sum, bytes, s.my_pe);
  if (what == TO_ALL) {
    for (int32_t k = 0; k < t.n && s.error == SHMEM_OK; ++k) send_tile(s, dst, w.sum, bytes, member(t, (t.me + k) % t.n));
  }
  drain_tile(s);
}

template <typename C>
__aicore__ inline void reduce_elements(int32_t id, uint64_t dst, uint64_t src, uint64_t n, reduction op, yield what, uint32_t call,
                                       const workspace* given) {
  state& s = block_state;
  const team* t = begin_collective(s, call, id, true);
  if (t == nullptr || n == 0) return;
  uint64_t blocks = what == TO_OWNER ? uint64_t(t->n) : 1;
  if (!check_array(s, dst, n, 1, sizeof(C)) || !check_array(s, src, n, blocks, sizeof(C))) return;
  workspace w = given != nullptr ? *given : own_workspace(s);
  if (w.bytes < UB_ALIGN) {
    fail(s, SHMEM_E_SPACE, s.my_pe, w.bytes, 2 * UB_ALIGN);
    return;
  }
  /* My block, and of it this core's part. reduce_scatter: the blocks are n elements each, and dest holds just mine. */
  slice block = what == TO_OWNER ? slice{n * uint64_t(t->me), n} : part_of(n, uint64_t(t->n), uint64_t(t->me));
  slice part = part_of(block.count, s.cores, s.core);
  uint64_t from = block.begin + part.begin, to = what == TO_OWNER ? part.begin : from;
  uint32_t fit = w.bytes / uint32_t(sizeof(C));
  while (part.count > 0 && s.error == SHMEM_OK) {
    uint32_t now_n = part.count < fit ? uint32_t(part.count) : fit;
    reduce_tile<C>(s, *t, w, dst + to * sizeof(C), src + from * sizeof(C), now_n, op, what);
    from += now_n;
    to += now_n;
    part.count -= now_n;
  }
  end_collective(s, *t);
}

template <typename T>
__aicore__ inline void reduce_on(int32_t id, __gm__ T* dst, const __gm__ T* src, uint64_t n, reduction op, yield what, uint32_t call) {
  reduce_elements<typename plain<T>::type>(id, address_of(dst), address_of(src), n, op, what, call, nullptr);
}
template <typename T>
__aicore__ inline void reduce_on(int32_t id, __gm__ T* dst, const __gm__ T* src, uint64_t n, reduction op, yield what, uint32_t call,
                                 const AscendC::LocalTensor<T>& scratch) {
  workspace given = given_workspace(scratch);
  reduce_elements<typename plain<T>::type>(id, address_of(dst), address_of(src), n, op, what, call, &given);
}

}  // namespace shmem_impl

/* Each in two forms: with the library's UB range, and with the caller's. */
#define SHMEM_DEFINE_REDUCTION(NAME, OP, WHAT, CALL)                                                                        \
  template <typename T>                                                                                                     \
  __aicore__ inline void NAME(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n) {                          \
    shmem_impl::reduce_on(team, dst, src, n, shmem_impl::OP, shmem_impl::WHAT, CALL);                                       \
  }                                                                                                                         \
  template <typename T>                                                                                                     \
  __aicore__ inline void NAME(shmem_team_t team, __gm__ T* dst, const __gm__ T* src, uint64_t n,                            \
                              const AscendC::LocalTensor<T>& scratch) {                                                     \
    shmem_impl::reduce_on(team, dst, src, n, shmem_impl::OP, shmem_impl::WHAT, CALL, scratch);                              \
  }
#define SHMEM_DEFINE_REDUCTIONS(NAME, OP)                                                  \
  SHMEM_DEFINE_REDUCTION(shmem_##NAME##_reduce, OP, TO_ALL, SHMEM_OP_REDUCE)               \
  SHMEM_DEFINE_REDUCTION(shmem_##NAME##_reduce_scatter, OP, TO_OWNER, SHMEM_OP_REDUCE)
SHMEM_DEFINE_REDUCTIONS(sum, REDUCE_SUM)
SHMEM_DEFINE_REDUCTIONS(prod, REDUCE_PROD)
SHMEM_DEFINE_REDUCTIONS(min, REDUCE_MIN)
SHMEM_DEFINE_REDUCTIONS(max, REDUCE_MAX)
SHMEM_DEFINE_REDUCTIONS(and, REDUCE_AND)
SHMEM_DEFINE_REDUCTIONS(or, REDUCE_OR)
SHMEM_DEFINE_REDUCTIONS(xor, REDUCE_XOR)
SHMEM_DEFINE_REDUCTION(shmem_sum_inscan, REDUCE_SUM, PREFIX_WITH, SHMEM_OP_SCAN)
SHMEM_DEFINE_REDUCTION(shmem_sum_exscan, REDUCE_SUM, PREFIX_BEFORE, SHMEM_OP_SCAN)
#undef SHMEM_DEFINE_REDUCTIONS
#undef SHMEM_DEFINE_REDUCTION

#endif
