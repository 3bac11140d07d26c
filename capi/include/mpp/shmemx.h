/* mpp/shmemx.h: where older programs look for shmemx.h (deprecated). */
#include "../shmemx.h"
