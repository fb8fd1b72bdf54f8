/* SPDX-License-Identifier: Apache-2.0
 * A library to preload: one call to the system fails, or the process dies there.
 *
 *     LAC_FAULT=KIND:N[+|!|?] LD_PRELOAD=libfaults.so lacuna ...
 *
 * KIND is malloc, mmap, open, read, write, fsync, rename, close, truncate, thread or fork; the N-th
 * call of that kind (from 1) fails; with + so do all later ones; with ! the process is killed just
 * before it, as by kill -9. With ? nothing fails. LAC_FAULT_COUNT=FILE gets the number of calls at
 * the end. malloc, mmap and thread count the calls of the program itself and of jansson and
 * protobuf-c, not those of oneDNN, OpenMP, graphviz and the C++ run time, which end the process
 * when memory or threads do (see SECURITY.md); calls of a kind are counted in all threads together.
 *
 * LAC_FAULT_LIBRARIES=1 leaves the program itself out: Python, which has a library loaded early. It
 * may call faults_begin("KIND:N") at any time, which begins to count anew.
 *
 *     LAC_CUT=N:SHARE:FILE
 *
 * Just before the N-th call that reads (open, read, mmap together) FILE is cut to this share of its
 * length, as by a program that writes it anew in place. With @ before N: just after the N-th call
 * that reads FILE itself or asks for its size (read, pread, mmap, fstat), which tests/cli/cut.py
 * tries for every N. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

typedef enum kind {
  KIND_malloc,
  KIND_mmap,
  KIND_open,
  KIND_read,
  KIND_write,
  KIND_fsync,
  KIND_rename,
  KIND_close,
  KIND_truncate,
  KIND_thread,
  KIND_fork,
  KIND_COUNT
} kind;

static const char *const kind_names[KIND_COUNT] = {"malloc",   "mmap",   "open",   "read",
                                                   "write",    "fsync",  "rename", "close",
                                                   "truncate", "thread", "fork"};

/* The memory of the program and of these libraries ends. */
static const char *const callers[] = {"libjansson", "libprotobuf-c", "liblacuna"};

enum { MOST_RANGES = 32 };

static struct {
  kind kind; /* KIND_COUNT: none */
  long at;
  bool goes_on, kills, counts_only;
  atomic_long n;
  struct {
    uintptr_t begin, end;
  } ranges[MOST_RANGES]; /* of code whose malloc counts */
  int n_ranges;
  const char *count_file;
} fault = {.kind = KIND_COUNT};

static int add_object(struct dl_phdr_info *info, size_t size, void *context) {
  bool *first = context, counts = *first && !getenv("LAC_FAULT_LIBRARIES");
  (void)size;
  *first = false;
  for (size_t k = 0; k < sizeof callers / sizeof callers[0]; k++)
    counts = counts || strstr(info->dlpi_name, callers[k]);
  for (int k = 0; counts && k < info->dlpi_phnum; k++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[k];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || fault.n_ranges == MOST_RANGES)
      continue;
    uintptr_t begin = info->dlpi_addr + part->p_vaddr;
    fault.ranges[fault.n_ranges].begin = begin;
    fault.ranges[fault.n_ranges++].end = begin + part->p_memsz;
  }
  return 0;
}

/* ---- Files that shrink ---- */

static struct {
  long at;
  double share;
  const char *path; /* NULL: none */
  bool own;         /* calls on this file count, and no others */
  atomic_long n;
} cut;

static void read_cut(void) {
  const char *text = getenv("LAC_CUT");
  char *end;
  if (!text) return;
  cut.own = *text == '@';
  if (cut.own) text++;
  cut.at = strtol(text, &end, 10);
  cut.share = strtod(end + 1, &end);
  cut.path = end + 1;
}

static void count_read(void) {
  struct stat found;
  if (atomic_fetch_add(&cut.n, 1) + 1 != cut.at) return;
  if (stat(cut.path, &found) == 0)
    (void)!truncate(cut.path, (off_t)(cut.share * (double)found.st_size));
}

static void cut_now(void) {
  if (cut.path && !cut.own) count_read();
}

/** After a call on fd. */
static void cut_after(int fd) {
  struct stat wanted, found;
  int cause = errno;
  if (cut.path && cut.own && fd >= 0 && syscall(SYS_fstat, fd, &found) == 0 &&
      stat(cut.path, &wanted) == 0 && found.st_dev == wanted.st_dev &&
      found.st_ino == wanted.st_ino) {
    count_read();
  }
  errno = cause;
}

static void read_kind(const char *text) {
  const char *colon = strchr(text, ':');
  fault.kind = KIND_COUNT;
  if (!colon) return;
  atomic_store(&fault.n, 0);
  char *end;
  fault.at = strtol(colon + 1, &end, 10);
  fault.goes_on = *end == '+';
  fault.kills = *end == '!';
  fault.counts_only = *end == '?';
  for (int k = 0; k < KIND_COUNT; k++) {
    size_t n = strlen(kind_names[k]);
    if (n == (size_t)(colon - text) && strncmp(text, kind_names[k], n) == 0) fault.kind = (kind)k;
  }
}

/** Returns how many calls there were since the last time. */
long faults_begin(const char *text);
long faults_begin(const char *text) {
  long n = atomic_load(&fault.n);
  read_kind(text);
  return n;
}

/* Runs before main; until then nothing fails. */
__attribute__((constructor)) static void read_fault(void) {
  const char *text = getenv("LAC_FAULT");
  bool first = true;
  read_cut();
  fault.count_file = getenv("LAC_FAULT_COUNT");
  if (!text || !strchr(text, ':')) return;
  (void)dl_iterate_phdr(add_object, &first);
  read_kind(text);
}

__attribute__((destructor)) static void write_count(void) {
  char text[32];
  if (!fault.count_file) return;
  int n = snprintf(text, sizeof text, "%ld\n", atomic_load(&fault.n));
  int fd = (int)syscall(SYS_openat, AT_FDCWD, fault.count_file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd >= 0) (void)!syscall(SYS_write, fd, text, (size_t)n);
}

static bool fails(kind kind) {
  if (fault.kind != kind) return false;
  long n = atomic_fetch_add(&fault.n, 1) + 1;
  if (fault.counts_only || n < fault.at || (n > fault.at && !fault.goes_on)) return false;
  if (fault.kills) (void)raise(SIGKILL);
  return true;
}

/** Of what other libraries call, nothing fails. */
static bool own_fails(kind kind, void *caller) {
  uintptr_t at = (uintptr_t)caller;
  for (int k = 0; k < fault.n_ranges; k++) {
    if (at >= fault.ranges[k].begin && at < fault.ranges[k].end) return fails(kind);
  }
  return false;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_IF(kind, cause, value) \
  if (fails(kind)) {                \
    errno = cause;                  \
    return value;                   \
  }
#define FAIL_OWN(kind, cause, value)                  \
  if (own_fails(kind, __builtin_return_address(0))) { \
    errno = cause;                                    \
    return value;                                     \
  }
#define FAIL_MEMORY FAIL_OWN(KIND_malloc, ENOMEM, NULL)

/* ---- Memory: glibc's own names, since dlsym itself allocates ---- */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t n) {
  FAIL_MEMORY
  return __libc_malloc(n);
}
void *calloc(size_t n, size_t size) {
  FAIL_MEMORY
  return __libc_calloc(n, size);
}
void *realloc(void *old, size_t n) {
  FAIL_MEMORY
  return __libc_realloc(old, n);
}
void *aligned_alloc(size_t alignment, size_t n) {
  FAIL_MEMORY
  return __libc_memalign(alignment, n);
}
int posix_memalign(void **to, size_t alignment, size_t n) {
  if (own_fails(KIND_malloc, __builtin_return_address(0))) return ENOMEM;
  *to = __libc_memalign(alignment, n);
  return *to ? 0 : ENOMEM;
}
void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
  cut_now();
  FAIL_OWN(KIND_mmap, ENOMEM, MAP_FAILED)
  void *mapped = NEXT(mmap)(at, n, protection, flags, fd, offset);
  cut_after(fd);
  return mapped;
}

/* ---- Files ---- */

static mode_t mode_of(int flags, va_list list) {
  return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = mode_of(flags, list);
  va_end(list);
  cut_now();
  FAIL_IF(KIND_open, EMFILE, -1)
  return NEXT(open)(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = mode_of(flags, list);
  va_end(list);
  cut_now();
  FAIL_IF(KIND_open, EMFILE, -1)
  return NEXT(openat)(folder, path, flags, mode);
}
FILE *fopen(const char *path, const char *mode) {
  cut_now();
  FAIL_IF(KIND_open, EMFILE, NULL)
  return NEXT(fopen)(path, mode);
}
int mkstemps(char *path, int n) {
  cut_now();
  FAIL_IF(KIND_open, EMFILE, -1)
  return NEXT(mkstemps)(path, n);
}
char *mkdtemp(char *path) {
  cut_now();
  FAIL_IF(KIND_open, ENOSPC, NULL)
  return NEXT(mkdtemp)(path);
}
ssize_t read(int fd, void *to, size_t n) {
  cut_now();
  FAIL_IF(KIND_read, EIO, -1)
  ssize_t got = NEXT(read)(fd, to, n);
  cut_after(fd);
  return got;
}
ssize_t pread(int fd, void *to, size_t n, off_t at) {
  cut_now();
  FAIL_IF(KIND_read, EIO, -1)
  ssize_t got = NEXT(pread)(fd, to, n, at);
  cut_after(fd);
  return got;
}
int fstat(int fd, struct stat *info) {
  int result = NEXT(fstat)(fd, info);
  cut_after(fd);
  return result;
}
ssize_t write(int fd, const void *from, size_t n) {
  FAIL_IF(KIND_write, ENOSPC, -1)
  return NEXT(write)(fd, from, n);
}
ssize_t pwrite(int fd, const void *from, size_t n, off_t at) {
  FAIL_IF(KIND_write, ENOSPC, -1)
  return NEXT(pwrite)(fd, from, n, at);
}
size_t fwrite(const void *from, size_t size, size_t n, FILE *to) {
  FAIL_IF(KIND_write, ENOSPC, 0)
  return NEXT(fwrite)(from, size, n, to);
}
int fsync(int fd) {
  FAIL_IF(KIND_fsync, EIO, -1)
  return NEXT(fsync)(fd);
}
int close(int fd) {
  if (fails(KIND_close)) {
    (void)NEXT(close)(fd); /* it is closed all the same, as on Linux */
    errno = EIO;
    return -1;
  }
  return NEXT(close)(fd);
}
int ftruncate(int fd, off_t n) {
  FAIL_IF(KIND_truncate, EIO, -1)
  return NEXT(ftruncate)(fd, n);
}
int rename(const char *from, const char *to) {
  FAIL_IF(KIND_rename, EIO, -1)
  return NEXT(rename)(from, to);
}
int renameat(int folder, const char *from, int other, const char *to) {
  FAIL_IF(KIND_rename, EIO, -1)
  return NEXT(renameat)(folder, from, other, to);
}
int renameat2(int folder, const char *from, int other, const char *to, unsigned flags) {
  FAIL_IF(KIND_rename, EIO, -1)
  return NEXT(renameat2)(folder, from, other, to, flags);
}
int link(const char *from, const char *to) {
  FAIL_IF(KIND_rename, EIO, -1)
  return NEXT(link)(from, to);
}
int linkat(int folder, const char *from, int other, const char *to, int flags) {
  FAIL_IF(KIND_rename, EIO, -1)
  return NEXT(linkat)(folder, from, other, to, flags);
}

/* ---- Threads and processes ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *),
                   void *context) {
  if (own_fails(KIND_thread, __builtin_return_address(0))) return EAGAIN;
  return NEXT(pthread_create)(thread, how, body, context);
}
pid_t fork(void) {
  FAIL_IF(KIND_fork, EAGAIN, -1)
  return NEXT(fork)();
}
