/* wait_until and test on many variables: all, any, some, with one value or a value each. Each call looks at its variables in turn, and has
 * one bound for the whole wait (wait.h). Lists that the caller passes may lie in GM, in UB or in the kernel's own storage. Used by kernels.
 */
#ifndef SHMEM_IMPL_MANY_H
#define SHMEM_IMPL_MANY_H

#include "point.h"

namespace shmem_impl {

/* One element of a list, wherever it lies. */
template <typename U>
__aicore__ inline U item(const __gm__ U* list, uint64_t i) {
  return bit_cast<U>(load<bits_of<U>>(address_of(list + i)));
}
template <typename U>
__aicore__ inline U item(const U* list, uint64_t i) {
  return list[i];
}
template <typename U>
__aicore__ inline U item(const AscendC::LocalTensor<U>& list, uint64_t i) {
  return list.GetValue(uint32_t(i));
}
__aicore__ inline void keep(__gm__ uint64_t* list, uint64_t i, uint64_t value) { store<uint64_t>(address_of(list + i), value); }
__aicore__ inline void keep(uint64_t* list, uint64_t i, uint64_t value) { list[i] = value; }
__aicore__ inline void keep(const AscendC::LocalTensor<uint64_t>& list, uint64_t i, uint64_t value) { list.SetValue(uint32_t(i), value); }

/* Whether element i takes part: status is null or 0 there. */
__aicore__ inline bool takes_part(decltype(nullptr), uint64_t) { return true; }
template <typename Status>
__aicore__ inline bool takes_part(Status status, uint64_t i) {
  return item(status, i) == 0;
}
template <typename U>
__aicore__ inline bool takes_part(__gm__ U* status, uint64_t i) {
  return address_of(status) == 0 || item(status, i) == 0;
}

/* The value to compare with: one for all, or one each. */
template <typename T>
struct same_value {
  T value;
  __aicore__ inline T at(uint64_t) const { return value; }
};
template <typename T, typename List>
struct each_value {
  List list;
  __aicore__ inline T at(uint64_t i) const { return item(list, i); }
};

enum quantity { ALL_OF, ANY_OF, SOME_OF };

struct no_list {};
__aicore__ inline void keep(no_list, uint64_t, uint64_t) {}

/* One look at all. Counts who takes part and whose condition holds; `first` is the first of these. Stops early where that decides. */
template <typename T, typename Status, typename Values, typename Indices>
__aicore__ inline void survey(const __gm__ T* ivars, uint64_t n, Status status, int cmp, const Values& values, quantity what,
                              Indices indices, uint64_t& part, uint64_t& held, uint64_t& first) {
  part = 0;
  held = 0;
  first = SHMEM_NONE;
  for (uint64_t i = 0; i < n; ++i) {
    if (!takes_part(status, i)) continue;
    part += 1;
    if (compare<T>(look(ivars + i), cmp, values.at(i))) {
      if (first == SHMEM_NONE) first = i;
      if (what == SOME_OF) keep(indices, held, i);
      held += 1;
      if (what == ANY_OF) return;
    } else if (what == ALL_OF) {
      return;
    }
  }
}

/* The one body of the twelve forms. all: 1 or 0; any: an index or SHMEM_NONE; some: how many indices were kept. */
template <typename T, typename Status, typename Values, typename Indices>
__aicore__ inline uint64_t many(const __gm__ T* ivars, uint64_t n, Status status, int cmp, const Values& values, quantity what,
                                Indices indices, bool wait_for_it) {
  state& s = block_state;
  uint64_t on_error = what == ALL_OF ? 1 : what == ANY_OF ? SHMEM_NONE : 0;
  if (!enter(s, SHMEM_OP_WAIT)) return on_error;
  uint64_t bytes, offset;
  if (!check_count(s, n, sizeof(T), address_of(ivars), s.my_pe, bytes)) return on_error;
  if (n == 0) return on_error;
  if (!check_watched(s, ivars, cmp) || !check_range(s, address_of(ivars), bytes, s.my_pe, offset)) return on_error;
  commit_all(s);
  patience wait;
  while (s.error == SHMEM_OK) {
    uint64_t part, held, first;
    survey(ivars, n, status, cmp, values, what, indices, part, held, first);
    if (part == held || (held > 0 && what != ALL_OF)) {
      acquire_flag();
      looked(s);
      return what == ALL_OF ? 1 : what == ANY_OF ? first : held;
    }
    if (!wait_for_it) {
      /* As shmem_test: a loop around it ends when the host says so, and then the answer is yes (all) or nothing to see (any, some). */
      if (asked_enough(s, s.my_pe, WAIT_VALUE, offset, false)) return on_error;
      return what == ANY_OF ? SHMEM_NONE : 0;
    }
    if (!wait.more(s, s.my_pe, WAIT_VALUE, offset)) break;
  }
  return on_error;
}

}  // namespace shmem_impl

#define SHMEM_DEFINE_MANY(VALUES_TEMPLATE, SUFFIX, VALUES_PARAMETER, VALUES)                                                                \
  template <typename T, typename Status VALUES_TEMPLATE>                                                                                   \
  __aicore__ inline void shmem_wait_until_all##SUFFIX(const __gm__ T* ivars, uint64_t n, Status status, int cmp, VALUES_PARAMETER) { \
    shmem_impl::many(ivars, n, status, cmp, VALUES, shmem_impl::ALL_OF, shmem_impl::no_list(), true);                                      \
  }                                                                                                                                        \
  template <typename T, typename Status VALUES_TEMPLATE>                                                                                   \
  __aicore__ inline uint64_t shmem_wait_until_any##SUFFIX(const __gm__ T* ivars, uint64_t n, Status status, int cmp,                \
                                                          VALUES_PARAMETER) {                                                              \
    return shmem_impl::many(ivars, n, status, cmp, VALUES, shmem_impl::ANY_OF, shmem_impl::no_list(), true);                               \
  }                                                                                                                                        \
  template <typename T, typename Indices, typename Status VALUES_TEMPLATE>                                                                 \
  __aicore__ inline uint64_t shmem_wait_until_some##SUFFIX(const __gm__ T* ivars, uint64_t n, Indices indices,                      \
                                                           Status status, int cmp, VALUES_PARAMETER) {                              \
    return shmem_impl::many(ivars, n, status, cmp, VALUES, shmem_impl::SOME_OF, indices, true);                                            \
  }                                                                                                                                        \
  template <typename T, typename Status VALUES_TEMPLATE>                                                                                   \
  __aicore__ inline int shmem_test_all##SUFFIX(const __gm__ T* ivars, uint64_t n, Status status, int cmp, VALUES_PARAMETER) {       \
    return int(shmem_impl::many(ivars, n, status, cmp, VALUES, shmem_impl::ALL_OF, shmem_impl::no_list(), false));                         \
  }                                                                                                                                        \
  template <typename T, typename Status VALUES_TEMPLATE>                                                                                   \
  __aicore__ inline uint64_t shmem_test_any##SUFFIX(const __gm__ T* ivars, uint64_t n, Status status, int cmp, VALUES_PARAMETER) {  \
    return shmem_impl::many(ivars, n, status, cmp, VALUES, shmem_impl::ANY_OF, shmem_impl::no_list(), false);                              \
  }                                                                                                                                        \
  template <typename T, typename Indices, typename Status VALUES_TEMPLATE>                                                                 \
  __aicore__ inline uint64_t shmem_test_some##SUFFIX(const __gm__ T* ivars, uint64_t n, Indices indices, Status status,      \
                                                     int cmp, VALUES_PARAMETER) {                                                          \
    return shmem_impl::many(ivars, n, status, cmp, VALUES, shmem_impl::SOME_OF, indices, false);                                           \
  }
#define SHMEM_NOTHING
#define SHMEM_MORE_VALUES , typename Values
#define SHMEM_EACH_VALUE (shmem_impl::each_value<T, Values>{values})
SHMEM_DEFINE_MANY(SHMEM_NOTHING, , shmem_same<T> value, shmem_impl::same_value<T>{value})
SHMEM_DEFINE_MANY(SHMEM_MORE_VALUES, _vector, Values values, SHMEM_EACH_VALUE)
#undef SHMEM_DEFINE_MANY
#undef SHMEM_NOTHING
#undef SHMEM_MORE_VALUES
#undef SHMEM_EACH_VALUE

#endif
