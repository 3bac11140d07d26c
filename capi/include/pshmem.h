/* pshmem.h: the profiling interface of OpenSHMEM 1.6. A tool defines shmem_X and calls pshmem_X, which is the library's own shmem_X.
 *
 * Where a program or a preloaded tool replaces a routine, the library sees it and programs' inline paths step aside. */
#ifndef NPUSHMEM_PSHMEM_H
#define NPUSHMEM_PSHMEM_H

/* A file that defines shmem_X must not see an inline body of it; include this header before shmem.h. */
#ifndef NPUSHMEM_NO_INLINE
#define NPUSHMEM_NO_INLINE 1
#endif
#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "npushmem/profiling.h"
#ifdef __cplusplus
}
#endif

#endif /* NPUSHMEM_PSHMEM_H */
