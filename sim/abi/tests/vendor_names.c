/* A program that knows nothing of npushmem: it opens the vendor's libraries by name, as torch or a peer's library does, and uses them a little.
 * tests/vendor_names.rs compiles it and puts the emulator in the way. Prints "good" when everything went well, else what did not. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *open_or_die(const char *name) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    printf("%s\n", dlerror());
    exit(1);
  }
  return library;
}

static void *find_or_die(void *library, const char *name) {
  void *function = dlsym(library, name);
  if (!function) {
    printf("no symbol %s\n", name);
    exit(1);
  }
  return function;
}

#define CHECK(what)                                                                    \
  do {                                                                                 \
    int code = (int)(what);                                                            \
    if (code != 0) {                                                                   \
      const char *text = recent();                                                     \
      printf("%s: %d: %s\n", #what, code, text ? text : "no text");                    \
      return 1;                                                                        \
    }                                                                                  \
  } while (0)

struct ra_config {
  uint32_t device, position;
  int32_t channel;
  uint32_t later;
};

int main(void) {
  void *acl = open_or_die("libascendcl.so");
  void *rt = open_or_die("libacl_rt.so");
  void *ra = open_or_die("libra.so");
  void *tsd = open_or_die("libtsdclient.so");

  const char *(*recent)(void) = find_or_die(acl, "aclGetRecentErrMsg");
  int (*init)(const char *) = find_or_die(acl, "aclInit");
  int (*finalize)(void) = find_or_die(acl, "aclFinalize");
  int (*set_device)(int32_t) = find_or_die(rt, "aclrtSetDevice");
  int (*allocate)(void **, size_t, int) = find_or_die(rt, "aclrtMalloc");
  int (*release)(void *) = find_or_die(rt, "aclrtFree");
  int (*copy)(void *, size_t, const void *, size_t, int) = find_or_die(acl, "aclrtMemcpy");
  uint32_t (*tsd_open)(uint32_t, uint32_t) = find_or_die(tsd, "TsdOpen");
  int (*ra_init)(const struct ra_config *) = find_or_die(ra, "ra_init");
  int (*RaInit)(const struct ra_config *) = find_or_die(ra, "RaInit");
  int (*get_handle)(uint32_t, void **) = find_or_die(ra, "RaRdevGetHandle");

  CHECK(init(NULL));
  CHECK(set_device(0));
  char there[4096], back[4096];
  for (size_t i = 0; i < sizeof there; i++) there[i] = (char)(i * 7);
  memset(back, 0, sizeof back);
  void *device = NULL;
  CHECK(allocate(&device, sizeof there, 0));
  CHECK(copy(device, sizeof there, there, sizeof there, 1));
  CHECK(copy(back, sizeof back, device, sizeof back, 2));
  if (memcmp(there, back, sizeof there) != 0) {
    printf("the bytes came back changed\n");
    return 1;
  }
  CHECK(release(device));

  /* One emulator behind all names: what TsdOpen of one library did, ra_init of another knows, under both of its names. */
  struct ra_config config = {0, 1, 6, 0};
  if (RaInit(&config) == 0) {
    printf("RaInit before TsdOpen went well\n");
    return 1;
  }
  CHECK(tsd_open(0, 1));
  CHECK(ra_init(&config));
  void *handle = NULL;
  if (get_handle(0, &handle) == 0 || !strstr(recent(), "ra_rdev_init_v2")) {
    printf("a NIC that was not opened has a handle\n");
    return 1;
  }
  CHECK(finalize());
  printf("good\n");
  return 0;
}
