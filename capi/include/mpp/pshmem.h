/* mpp/pshmem.h: where older programs look for pshmem.h (deprecated). */
#include "../pshmem.h"
