/* The one table of element types on a device. It makes the typed names of shmem.h (shmem_float_put, shmem_int64_atomic_add, ...).
 *
 * Rows follow the standard RMA types of OpenSHMEM 1.6 (Routines, "Standard RMA Types and Names") and its extended AMO types
 * (Atomic Memory Operations). Who executes an operation on a type:
 *
 *   row           put, get            p, g, wait, test          atomics
 *   1, 2 bytes    MTE copy | NIC      scalar, uncached | NIC    none: the standard has none for these types
 *   4 bytes       MTE copy | NIC      scalar, uncached | NIC    950: core instruction; A2/A3: NIC, compare-and-swap on the
 *                                                               containing 8-byte word, or fetch-add of x << 32 (upper half)
 *   8 bytes       MTE copy | NIC      scalar, uncached | NIC    950: core instruction; A2/A3: NIC, one request, loop for set and swap
 *   double        MTE copy | NIC      none                      none
 *
 * Reductions and scans: the vector unit computes sum, prod, min, max of float, half, 16- and 32-bit signed integers, sum and prod of
 * unsigned ones, and, or of all integers; the scalar unit the rest (8- and 64-bit integers, unsigned min and max, xor). double: host only.
 *
 * double is storage of 8 bytes: the cores have no double registers, so there is no call that takes one by value, and no LocalTensor of it.
 * half, the cores' 16-bit float, is ours beside the standard's types. long double, complex types and atomics on double are host only.
 * Atomics on float are the standard's fetch, set and swap, and ours: add, min, max, compare_swap (which compares bits). On A2/A3 they are
 * compare-and-swap loops on the containing 8-byte word; on 950 core instructions.
 */
#ifndef SHMEM_TYPES_H
#define SHMEM_TYPES_H

#include <stdint.h>

/* X(name, type): types that are passed by value too. */
#define SHMEM_VALUE_TYPES(X) \
  X(float, float)            \
  X(half, half)              \
  X(char, char)              \
  X(schar, signed char)      \
  X(short, short)            \
  X(int, int)                \
  X(long, long)              \
  X(longlong, long long)     \
  X(uchar, unsigned char)    \
  X(ushort, unsigned short)  \
  X(uint, unsigned int)      \
  X(ulong, unsigned long)    \
  X(ulonglong, unsigned long long) \
  X(int8, int8_t)            \
  X(int16, int16_t)          \
  X(int32, int32_t)          \
  X(int64, int64_t)          \
  X(uint8, uint8_t)          \
  X(uint16, uint16_t)        \
  X(uint32, uint32_t)        \
  X(uint64, uint64_t)        \
  X(size, uint64_t)          \
  X(ptrdiff, int64_t)

/* X(name, type): types that only lie in memory. */
#define SHMEM_STORAGE_TYPES(X) X(double, double)

/* X(name, type): all types that put and get take. */
#define SHMEM_RMA_TYPES(X) SHMEM_VALUE_TYPES(X) SHMEM_STORAGE_TYPES(X)

/* X(name, type): types of atomics, wait_until and test. */
#define SHMEM_AMO_TYPES(X) \
  X(int, int)              \
  X(long, long)            \
  X(longlong, long long)   \
  X(uint, unsigned int)    \
  X(ulong, unsigned long)  \
  X(ulonglong, unsigned long long) \
  X(int32, int32_t)        \
  X(int64, int64_t)        \
  X(uint32, uint32_t)      \
  X(uint64, uint64_t)      \
  X(size, uint64_t)        \
  X(ptrdiff, int64_t)

/* X(name, type): types of atomics beside the integers (the standard's extended AMO types). */
#define SHMEM_FLOAT_AMO_TYPES(X) X(float, float)

/* X(name, type): types of atomics that work on bits (the standard's bitwise AMO types). */
#define SHMEM_BITWISE_TYPES(X) \
  X(uint, unsigned int)        \
  X(ulong, unsigned long)      \
  X(ulonglong, unsigned long long) \
  X(int32, int32_t)            \
  X(int64, int64_t)            \
  X(uint32, uint32_t)          \
  X(uint64, uint64_t)

/* X(name, type): integers that reductions by and, or, xor take (the standard's bitwise reduction types, and char). */
#define SHMEM_INTEGER_TYPES(X) \
  X(char, char)                \
  X(schar, signed char)        \
  X(short, short)              \
  X(int, int)                  \
  X(long, long)                \
  X(longlong, long long)       \
  X(uchar, unsigned char)      \
  X(ushort, unsigned short)    \
  X(uint, unsigned int)        \
  X(ulong, unsigned long)      \
  X(ulonglong, unsigned long long) \
  X(int8, int8_t)              \
  X(int16, int16_t)            \
  X(int32, int32_t)            \
  X(int64, int64_t)            \
  X(uint8, uint8_t)            \
  X(uint16, uint16_t)          \
  X(uint32, uint32_t)          \
  X(uint64, uint64_t)          \
  X(size, uint64_t)            \
  X(ptrdiff, int64_t)

/* X(bits, bytes): sized transfers, shmem_put32 and the like. */
#define SHMEM_SIZES(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

#endif
