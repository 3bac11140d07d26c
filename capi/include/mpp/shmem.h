/* mpp/shmem.h: where older programs look for shmem.h (deprecated). */
#include "../shmem.h"
