/* deprecated.h: names from before OpenSHMEM 1.2 that do not begin with shmem_. Included by shmem.h; not for programs.
 *
 * They are functions of the header alone: the library exports nothing outside its own prefix. */

static inline void start_pes(int npes) {
  (void)npes; /* the launcher says how many */
  shmem_init();
}
static inline int _my_pe(void) { return shmem_my_pe(); }
static inline int _num_pes(void) { return shmem_n_pes(); }
static inline void *shmalloc(size_t size) { return shmem_malloc(size); }
static inline void *shmemalign(size_t alignment, size_t size) { return shmem_align(alignment, size); }
static inline void *shrealloc(void *ptr, size_t size) { return shmem_realloc(ptr, size); }
static inline void shfree(void *ptr) { shmem_free(ptr); }
