// What makes a shared object of kernels: the trampoline of each kernel and npusim_bind. Included only by the translation unit that
// npushmem-build generates, after the kernel source.
#ifndef NPUSIM_KERNEL_H
#define NPUSIM_KERNEL_H

#include <dlfcn.h>

#include <new>
#include <type_traits>
#include <utility>

#include "../kernel_operator.h"

namespace npusim {

// Runs one block: prepares the state, calls, checks what a kernel must leave behind.
inline int run_block(npusim_block *block, void (*call)(const void *), const void *arguments) {
  if (block->magic != NPUSIM_MAGIC || block->version != NPUSIM_VERSION || block->size < sizeof(npusim_block)) return NPUSIM_FAULT_RULE;
  State *s = static_cast<State *>(aligned_alloc(alignof(State), sizeof(State)));
  if (s == nullptr) {
    block->fault.code = NPUSIM_FAULT_MEMORY;
    __builtin_snprintf(block->fault.message, sizeof(block->fault.message), "no memory for the state of a block (%zu bytes)", sizeof(State));
    return block->fault.code;
  }
  reset(*s, block);
  block->kernel_side = s;
  current = s;
  // The signal mask is kept too: the emulator's fault handler comes here with SIGSEGV blocked.
  if (sigsetjmp(s->env, 1) == 0) {
    call(arguments);
    finish(*s);
  }
  current = nullptr;
  block->kernel_side = nullptr;
  free(s);
  return block->fault.code;
}

// Offsets of a packed argument block with natural alignment, as the vendor's launch calls pass it.
template <class... A> struct Packed {
  static constexpr uint32_t count = sizeof...(A);
  static constexpr uint32_t sizes[count + 1] = {sizeof(A)..., 0};
  static constexpr uint32_t aligns[count + 1] = {alignof(A)..., 1};
  static constexpr uint32_t offset(uint32_t index) {
    uint32_t at = 0;
    for (uint32_t i = 0; i <= index; ++i) {
      at = (at + aligns[i] - 1) / aligns[i] * aligns[i];
      if (i < index) at += sizes[i];
    }
    return at;
  }
  static constexpr uint32_t size() { return count == 0 ? 0 : offset(count - 1) + sizes[count - 1]; }
};

template <class T> inline T argument(const void *block, uint32_t offset) {
  static_assert(std::is_trivially_copyable<T>::value, "a kernel's parameter must be a number, a __gm__ pointer or a plain structure");
  alignas(T) unsigned char bytes[sizeof(T)];
  memcpy(bytes, static_cast<const uint8_t *>(block) + offset, sizeof(T));
  return *std::launder(reinterpret_cast<T *>(bytes));
}

template <auto K> struct Entry;
template <class... A, void (*K)(A...)> struct Entry<K> {
  using Layout = Packed<A...>;
  template <size_t... I> static void spread(const void *arguments, std::index_sequence<I...>) {
    K(argument<A>(arguments, Layout::offset(I))...);
    (void)arguments;
  }
  static void call(const void *arguments) { spread(arguments, std::make_index_sequence<sizeof...(A)>()); }
  static int run(npusim_block *block, const void *arguments) { return run_block(block, &call, arguments); }
  // The name that the vendor's loader would know the kernel by: the linker's, plain for extern "C", mangled for C++.
  static npusim_kernel describe(const char *name) {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void *>(K), &info) != 0 && info.dli_sname != nullptr &&
        info.dli_saddr == reinterpret_cast<const void *>(K))
      name = info.dli_sname;
    return npusim_kernel{name, Layout::count, Layout::size(), Layout::sizes, &run};
  }
};

inline int bind(const npusim_services *given, npusim_module *module, const npusim_kernel *kernels, uint32_t count) {
  if (given == nullptr || module == nullptr) return 1;
  if (given->magic != NPUSIM_MAGIC || given->version != NPUSIM_VERSION || given->size < sizeof(npusim_services)) return 2;
  services = given;
  *module = npusim_module{NPUSIM_MAGIC, NPUSIM_VERSION, sizeof(npusim_module), __NPU_ARCH__, count, kernels, &leave};
  return 0;
}

}  // namespace npusim

#define NPUSIM_MODULE_BEGIN                                                                                                  \
  extern "C" __attribute__((visibility("default"))) int npusim_bind(const npusim_services *services, npusim_module *module) { \
    static npusim_kernel kernels[] = {
#define NPUSIM_KERNEL(path) ::npusim::Entry<&::path>::describe(#path),
#define NPUSIM_MODULE_END                                                                              \
  }                                                                                                    \
  ;                                                                                                    \
  return ::npusim::bind(services, module, kernels, sizeof(kernels) / sizeof(kernels[0]));              \
  }

#endif
