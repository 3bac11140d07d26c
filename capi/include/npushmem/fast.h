/* fast.h: the inline path of single-element, small and atomic routines, fence and quiet. Included by shmem.h; not for programs.
 *
 * Where every PE's memory is mapped, a put is a store: checking the PE, one load of the PE's distance, one addition, the access. The library
 * publishes what that takes in a table behind the pointer shmemi_fast_v1. The pointer is null before init and after finalize, while calls are
 * checked (SHMEM_DEBUG=1), and while a tool replaces routines: the body then calls the library, as every call that is not inlined does.
 * The pointer is read through the global offset table: a direct reference would make the linker copy it into the program's own data.
 *
 * A body is used where the compiler optimises; a routine's address is always the library's. After each access comes a compiler barrier, as after
 * a call. Ordering is the library's: x86-64 keeps the order of stores; atomics are sequentially consistent. */
#ifndef NPUSHMEM_FAST_H
#define NPUSHMEM_FAST_H

#if defined(__GNUC__) && defined(__OPTIMIZE__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))

/* Followed by n_pes distances: PE's symmetric memory, on the heap or static, is that many bytes from this PE's own. */
struct shmemi_fast_table {
  uint32_t version; /* 1 */
  uint32_t bytes;   /* of the table with the distances */
  uint32_t n_pes;
  uint32_t my_pe;
};

#define SHMEMI_ALWAYS static __inline __attribute__((__always_inline__, __unused__))
/* A body for callers; the symbol stays the library's. */
#define SHMEMI_BODY extern __inline __attribute__((__gnu_inline__, __always_inline__))
/* The library's routine by a second name, so that the body of shmem_X can call shmem_X, whoever defines it. */
#define SHMEMI_CALLED(name) __asm__("shmem_" #name)
#define SHMEMI_BARRIER() __asm__ __volatile__("" ::: "memory")
#define SHMEMI_LIKELY(condition) __builtin_expect(!!(condition), 1)
/* Copies of at most this many bytes are inlined where their size is known when compiling. */
#define SHMEMI_SMALL_BYTES 16
#define SHMEMI_IS_SMALL(bytes) (__builtin_constant_p(bytes) && (bytes) <= SHMEMI_SMALL_BYTES)

SHMEMI_ALWAYS const struct shmemi_fast_table *shmemi_fast(void) {
  const struct shmemi_fast_table *const *slot;
#if defined(__x86_64__)
  __asm__("movq shmemi_fast_v1@GOTPCREL(%%rip), %0" : "=r"(slot));
#else
  __asm__("adrp %0, :got:shmemi_fast_v1\n\tldr %0, [%0, :got_lo12:shmemi_fast_v1]" : "=r"(slot));
#endif
  return *slot;
}

/* Where the symmetric object at addr is on PE pe; null: call the library. */
SHMEMI_ALWAYS void *shmemi_at(const void *addr, int pe) {
  const struct shmemi_fast_table *table = shmemi_fast();
  if (SHMEMI_LIKELY(table != 0) && SHMEMI_LIKELY((uint32_t)pe < table->n_pes))
    return (char *)(uintptr_t)addr + ((const ptrdiff_t *)(table + 1))[pe];
  return 0;
}

#define SHMEMI_INLINE_PUT(name, TYPE, element_bytes)                                                              \
  void shmemi_##name(TYPE *dest, const TYPE *source, size_t nelems, int pe) SHMEMI_CALLED(name);                  \
  SHMEMI_BODY void shmem_##name(TYPE *dest, const TYPE *source, size_t nelems, int pe) {                          \
    void *at;                                                                                                     \
    if (SHMEMI_IS_SMALL(nelems * (element_bytes)) && SHMEMI_LIKELY((at = shmemi_at(dest, pe)) != 0)) {            \
      __builtin_memcpy(at, source, nelems * (element_bytes));                                                     \
      SHMEMI_BARRIER();                                                                                           \
    } else {                                                                                                      \
      shmemi_##name(dest, source, nelems, pe);                                                                    \
    }                                                                                                             \
  }
#define SHMEMI_INLINE_GET(name, TYPE, element_bytes)                                                              \
  void shmemi_##name(TYPE *dest, const TYPE *source, size_t nelems, int pe) SHMEMI_CALLED(name);                  \
  SHMEMI_BODY void shmem_##name(TYPE *dest, const TYPE *source, size_t nelems, int pe) {                          \
    const void *at;                                                                                               \
    if (SHMEMI_IS_SMALL(nelems * (element_bytes)) && SHMEMI_LIKELY((at = shmemi_at(source, pe)) != 0)) {          \
      __builtin_memcpy(dest, at, nelems * (element_bytes));                                                       \
      SHMEMI_BARRIER();                                                                                           \
    } else {                                                                                                      \
      shmemi_##name(dest, source, nelems, pe);                                                                    \
    }                                                                                                             \
  }

/* put, get, their nbi forms, p and g of a type. */
#define SHMEMI_INLINE_RMA(NAME, TYPE)                                                                             \
  SHMEMI_INLINE_PUT(NAME##_put, TYPE, sizeof(TYPE))                                                               \
  SHMEMI_INLINE_PUT(NAME##_put_nbi, TYPE, sizeof(TYPE))                                                           \
  SHMEMI_INLINE_GET(NAME##_get, TYPE, sizeof(TYPE))                                                               \
  SHMEMI_INLINE_GET(NAME##_get_nbi, TYPE, sizeof(TYPE))                                                           \
  void shmemi_##NAME##_p(TYPE *dest, TYPE value, int pe) SHMEMI_CALLED(NAME##_p);                                 \
  SHMEMI_BODY void shmem_##NAME##_p(TYPE *dest, TYPE value, int pe) {                                             \
    void *at = shmemi_at(dest, pe);                                                                               \
    if (SHMEMI_LIKELY(at != 0)) {                                                                                 \
      *(volatile TYPE *)at = value;                                                                               \
      SHMEMI_BARRIER();                                                                                           \
    } else {                                                                                                      \
      shmemi_##NAME##_p(dest, value, pe);                                                                         \
    }                                                                                                             \
  }                                                                                                               \
  TYPE shmemi_##NAME##_g(const TYPE *source, int pe) SHMEMI_CALLED(NAME##_g);                                     \
  SHMEMI_BODY TYPE shmem_##NAME##_g(const TYPE *source, int pe) {                                                 \
    const void *at = shmemi_at(source, pe);                                                                       \
    if (SHMEMI_LIKELY(at != 0)) {                                                                                 \
      TYPE value = *(const volatile TYPE *)at;                                                                    \
      SHMEMI_BARRIER();                                                                                           \
      return value;                                                                                               \
    }                                                                                                             \
    return shmemi_##NAME##_g(source, pe);                                                                         \
  }

/* putSIZE, getSIZE and their nbi forms; SIZE mem counts bytes. */
#define SHMEMI_INLINE_SIZED(SIZE, element_bytes)                                                                  \
  SHMEMI_INLINE_PUT(put##SIZE, void, element_bytes)                                                               \
  SHMEMI_INLINE_PUT(put##SIZE##_nbi, void, element_bytes)                                                         \
  SHMEMI_INLINE_GET(get##SIZE, void, element_bytes)                                                               \
  SHMEMI_INLINE_GET(get##SIZE##_nbi, void, element_bytes)

/* An atomic that gives the old value, and the one that does not. */
#define SHMEMI_INLINE_FETCHING(NAME, TYPE, fetching, plain, builtin)                                              \
  TYPE shmemi_##NAME##_##fetching(TYPE *dest, TYPE value, int pe) SHMEMI_CALLED(NAME##_##fetching);               \
  SHMEMI_BODY TYPE shmem_##NAME##_##fetching(TYPE *dest, TYPE value, int pe) {                                    \
    void *at = shmemi_at(dest, pe);                                                                               \
    if (SHMEMI_LIKELY(at != 0))                                                                                   \
      return builtin((TYPE *)at, value, __ATOMIC_SEQ_CST);                                                        \
    return shmemi_##NAME##_##fetching(dest, value, pe);                                                           \
  }                                                                                                               \
  void shmemi_##NAME##_##plain(TYPE *dest, TYPE value, int pe) SHMEMI_CALLED(NAME##_##plain);                     \
  SHMEMI_BODY void shmem_##NAME##_##plain(TYPE *dest, TYPE value, int pe) {                                       \
    void *at = shmemi_at(dest, pe);                                                                               \
    if (SHMEMI_LIKELY(at != 0))                                                                                   \
      (void)builtin((TYPE *)at, value, __ATOMIC_SEQ_CST);                                                         \
    else                                                                                                          \
      shmemi_##NAME##_##plain(dest, value, pe);                                                                   \
  }

/* Standard AMO types. */
#define SHMEMI_INLINE_AMO(NAME, TYPE)                                                                             \
  SHMEMI_INLINE_FETCHING(NAME, TYPE, atomic_fetch_add, atomic_add, __atomic_fetch_add)                            \
  TYPE shmemi_##NAME##_atomic_fetch_inc(TYPE *dest, int pe) SHMEMI_CALLED(NAME##_atomic_fetch_inc);               \
  SHMEMI_BODY TYPE shmem_##NAME##_atomic_fetch_inc(TYPE *dest, int pe) {                                          \
    void *at = shmemi_at(dest, pe);                                                                               \
    if (SHMEMI_LIKELY(at != 0))                                                                                   \
      return __atomic_fetch_add((TYPE *)at, 1, __ATOMIC_SEQ_CST);                                                 \
    return shmemi_##NAME##_atomic_fetch_inc(dest, pe);                                                            \
  }                                                                                                               \
  void shmemi_##NAME##_atomic_inc(TYPE *dest, int pe) SHMEMI_CALLED(NAME##_atomic_inc);                           \
  SHMEMI_BODY void shmem_##NAME##_atomic_inc(TYPE *dest, int pe) {                                                \
    void *at = shmemi_at(dest, pe);                                                                               \
    if (SHMEMI_LIKELY(at != 0))                                                                                   \
      (void)__atomic_fetch_add((TYPE *)at, 1, __ATOMIC_SEQ_CST);                                                  \
    else                                                                                                          \
      shmemi_##NAME##_atomic_inc(dest, pe);                                                                       \
  }                                                                                                               \
  TYPE shmemi_##NAME##_atomic_compare_swap(TYPE *dest, TYPE cond, TYPE value, int pe)                             \
      SHMEMI_CALLED(NAME##_atomic_compare_swap);                                                                  \
  SHMEMI_BODY TYPE shmem_##NAME##_atomic_compare_swap(TYPE *dest, TYPE cond, TYPE value, int pe) {                \
    void *at = shmemi_at(dest, pe);                                                                               \
    if (SHMEMI_LIKELY(at != 0)) {                                                                                 \
      (void)__atomic_compare_exchange_n((TYPE *)at, &cond, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
      return cond; /* as it was before, whether it was equal or not */                                            \
    }                                                                                                             \
    return shmemi_##NAME##_atomic_compare_swap(dest, cond, value, pe);                                            \
  }

/* Bitwise AMO types. */
#define SHMEMI_INLINE_BITWISE(NAME, TYPE)                                                                         \
  SHMEMI_INLINE_FETCHING(NAME, TYPE, atomic_fetch_and, atomic_and, __atomic_fetch_and)                            \
  SHMEMI_INLINE_FETCHING(NAME, TYPE, atomic_fetch_or, atomic_or, __atomic_fetch_or)                               \
  SHMEMI_INLINE_FETCHING(NAME, TYPE, atomic_fetch_xor, atomic_xor, __atomic_fetch_xor)

/* Extended AMO types; BITS is the integer of the type's size. */
#define SHMEMI_INLINE_EXTENDED(NAME, TYPE, BITS)                                                                  \
  TYPE shmemi_##NAME##_atomic_fetch(const TYPE *source, int pe) SHMEMI_CALLED(NAME##_atomic_fetch);               \
  SHMEMI_BODY TYPE shmem_##NAME##_atomic_fetch(const TYPE *source, int pe) {                                      \
    const void *at = shmemi_at(source, pe);                                                                       \
    if (SHMEMI_LIKELY(at != 0)) {                                                                                 \
      BITS bits = __atomic_load_n((const BITS *)at, __ATOMIC_SEQ_CST);                                            \
      TYPE value;                                                                                                 \
      __builtin_memcpy(&value, &bits, sizeof value);                                                              \
      return value;                                                                                               \
    }                                                                                                             \
    return shmemi_##NAME##_atomic_fetch(source, pe);                                                              \
  }                                                                                                               \
  TYPE shmemi_##NAME##_atomic_swap(TYPE *dest, TYPE value, int pe) SHMEMI_CALLED(NAME##_atomic_swap);             \
  SHMEMI_BODY TYPE shmem_##NAME##_atomic_swap(TYPE *dest, TYPE value, int pe) {                                   \
    void *at = shmemi_at(dest, pe);                                                                               \
    if (SHMEMI_LIKELY(at != 0)) {                                                                                 \
      BITS bits;                                                                                                  \
      __builtin_memcpy(&bits, &value, sizeof bits);                                                               \
      bits = __atomic_exchange_n((BITS *)at, bits, __ATOMIC_SEQ_CST);                                             \
      __builtin_memcpy(&value, &bits, sizeof value);                                                              \
      return value;                                                                                               \
    }                                                                                                             \
    return shmemi_##NAME##_atomic_swap(dest, value, pe);                                                          \
  }                                                                                                               \
  void shmemi_##NAME##_atomic_set(TYPE *dest, TYPE value, int pe) SHMEMI_CALLED(NAME##_atomic_set);               \
  SHMEMI_BODY void shmem_##NAME##_atomic_set(TYPE *dest, TYPE value, int pe) {                                    \
    void *at = shmemi_at(dest, pe);                                                                               \
    if (SHMEMI_LIKELY(at != 0)) {                                                                                 \
      BITS bits;                                                                                                  \
      __builtin_memcpy(&bits, &value, sizeof bits);                                                               \
      __atomic_store_n((BITS *)at, bits, __ATOMIC_RELEASE);                                                       \
      SHMEMI_BARRIER();                                                                                           \
    } else {                                                                                                      \
      shmemi_##NAME##_atomic_set(dest, value, pe);                                                                \
    }                                                                                                             \
  }

/* Orders the puts before against those after: x86-64 keeps stores in order, so only the compiler is told. */
void shmemi_fence(void) SHMEMI_CALLED(fence);
SHMEMI_BODY void shmem_fence(void) {
  if (SHMEMI_LIKELY(shmemi_fast() != 0))
    __atomic_thread_fence(__ATOMIC_RELEASE);
  else
    shmemi_fence();
}

/* Completes the puts before: stores ahead of later loads, which takes an instruction everywhere. A locked one on the own stack orders ordinary
 * memory as mfence does, and costs less. */
void shmemi_quiet(void) SHMEMI_CALLED(quiet);
SHMEMI_BODY void shmem_quiet(void) {
  if (SHMEMI_LIKELY(shmemi_fast() != 0)) {
#if defined(__x86_64__)
    __asm__ __volatile__("lock orl $0, -8(%%rsp)" ::: "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
  } else {
    shmemi_quiet();
  }
}

#include "inline.h"

#endif
#endif /* NPUSHMEM_FAST_H */
