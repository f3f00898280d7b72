/* Fails, or kills the process at, the N-th call that changes a file below a folder.  Loaded with LD_PRELOAD.

   fault_arm(n, mode, error, folder) begins to count.  Modes: 0 count only, 1 kill before call n, 2 kill within call n (half
   of a write is done), 3 fail call n, 4 fail call n and all later ones but removals (a full disk lets files be removed). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT, KILL, HALF, ONCE, EVER };
static atomic_long calls, target;
static atomic_int armed;
static int mode, error;
static char folder[1024];

void fault_arm(long n, int how, int what, const char *where) {
  strncpy(folder, where, sizeof folder - 1);
  mode = how, error = what;
  atomic_store(&calls, 0), atomic_store(&target, n), atomic_store(&armed, 1);
}
void fault_disarm(void) { atomic_store(&armed, 0); }
long fault_calls(void) { return atomic_load(&calls); }

static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }
static int below(const char *path) { return strncmp(path, folder, strlen(folder)) == 0; }

static int of_handle(int handle) {
  char link[64], path[1024];
  if (!atomic_load(&armed)) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return below(path);
}
static int of_path(int at, const char *path) {
  char here[1024];
  if (!atomic_load(&armed) || !path) return 0;
  if (path[0] == '/') return below(path);
  if (at != AT_FDCWD) return of_handle(at);
  return getcwd(here, sizeof here) && below(here);
}
/* 0: go on, 1: fail, 2: do half and die */
static int verdict(int removes) {
  long now = atomic_fetch_add(&calls, 1) + 1, n = atomic_load(&target);
  if (mode == KILL && now == n) die();
  if (mode == HALF && now == n) return 2;
  if ((mode == ONCE && now == n) || (mode == EVER && now >= n && !removes)) { errno = error; return 1; }
  return 0;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define PLAIN(type, name, parameters, arguments, ours, removes)                                                        \
  type name parameters {                                                                                               \
    REAL(name);                                                                                                        \
    if (ours) { int v = verdict(removes); if (v == 1) return -1; if (v == 2) die(); }                                  \
    return real arguments;                                                                                             \
  }
#define WRITES(name, parameters, whole, half)                                                                          \
  ssize_t name parameters {                                                                                            \
    REAL(name);                                                                                                        \
    if (of_handle(handle)) { int v = verdict(0); if (v == 1) return -1; if (v == 2) { real half; die(); } }            \
    return real whole;                                                                                                 \
  }
#define OPENS(name)                                                                                                    \
  int name(const char *path, int flags, ...) {                                                                         \
    REAL(name);                                                                                                        \
    va_list rest; va_start(rest, flags); mode_t bits = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; va_end(rest); \
    if ((flags & (O_CREAT | O_TRUNC)) && of_path(AT_FDCWD, path)) { int v = verdict(0); if (v == 1) return -1; if (v == 2) die(); } \
    return real(path, flags, bits);                                                                                    \
  }

WRITES(write, (int handle, const void *b, size_t n), (handle, b, n), (handle, b, n / 2))
WRITES(pwrite, (int handle, const void *b, size_t n, off_t o), (handle, b, n, o), (handle, b, n / 2, o))
WRITES(pwrite64, (int handle, const void *b, size_t n, off64_t o), (handle, b, n, o), (handle, b, n / 2, o))
OPENS(open)
OPENS(open64)
PLAIN(int, rename, (const char *a, const char *b), (a, b), of_path(AT_FDCWD, a), 0)
PLAIN(int, renameat, (int c, const char *a, int d, const char *b), (c, a, d, b), of_path(c, a), 0)
PLAIN(int, unlink, (const char *a), (a), of_path(AT_FDCWD, a), 1)
PLAIN(int, unlinkat, (int d, const char *a, int f), (d, a, f), of_path(d, a), 1)
PLAIN(int, rmdir, (const char *a), (a), of_path(AT_FDCWD, a), 1)
PLAIN(int, mkdir, (const char *a, mode_t m), (a, m), of_path(AT_FDCWD, a), 0)
PLAIN(int, fsync, (int handle), (handle), of_handle(handle), 0)
PLAIN(int, ftruncate, (int handle, off_t n), (handle, n), of_handle(handle), 0)
PLAIN(int, ftruncate64, (int handle, off64_t n), (handle, n), of_handle(handle), 0)
