// AscendC for the emulated NPU: the subset that communication kernels use, on the CPU, in C++17 headers for clang.
//
// The name is the vendor's, so that one kernel source compiles for both: bisheng finds the toolkit's header, npushmem-build's clang
// finds this one. Rules of AscendC are checked where they are cheap to check; a broken one stops the block with the kernel's file and
// line and a sentence. What is where:
//
//   npusim/types.h       qualifiers, address spaces, numbers, enumerations
//   npusim/runtime.h     the running block: faults, polling, address checks
//   npusim/cache.h       scalar access to global memory: data cache model, dcci, ld_dev, st_dev
//   npusim/tensor.h      LocalTensor, GlobalTensor
//   npusim/atomic.h      SetAtomicAdd and its kin; on 950 the scalar atomics
//   npusim/mte.h         how copies move bytes, late copies
//   npusim/copy.h        DataCopy, DataCopyPad
//   npusim/sync.h        flags, barriers, SyncAll
//   npusim/queue.h       TPipe, TBuf, TQue
//   npusim/vector.h      vector operations, count form; cast.h, reduce.h; repeat.h has the repeat form
//   npusim/intrinsics.h  raw intrinsics
//   npusim/system.h      indices, system counter, printf, assertions
//   npusim/kernel.h      the trampoline; only for the generated translation unit
#ifndef NPUSIM_KERNEL_OPERATOR_H
#define NPUSIM_KERNEL_OPERATOR_H

#include "npusim/cast.h"
#include "npusim/copy.h"
#include "npusim/intrinsics.h"
#include "npusim/queue.h"
#include "npusim/reduce.h"
#include "npusim/repeat.h"
#include "npusim/sync.h"
#include "npusim/system.h"
#include "npusim/vector.h"

#endif
