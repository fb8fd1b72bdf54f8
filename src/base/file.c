/* SPDX-License-Identifier: Apache-2.0
 * Reads text files. */
#include "base/file.h"

#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_STEP_BYTES = 1 << 16, WRITER_WAIT_MS = 1000 };

size_t laci_path_folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return 0;
  return slash == path ? 1 : (size_t)(slash - path);
}

/** Calls read() once for a descriptor that was opened with O_NONBLOCK. For a pipe that has a writer
 * it waits for data. For one without a writer it waits only a while, since a writer may never
 * come. */
static ssize_t read_when_ready(int fd, void *to, size_t size_bytes, bool at_begin) {
  struct pollfd written = {.fd = fd, .events = POLLIN};
  ssize_t got = read(fd, to, size_bytes);
  if (got == 0 && at_begin && poll(&written, 1, WRITER_WAIT_MS) > 0) got = read(fd, to, size_bytes);
  while (got < 0 && (errno == EINTR || errno == EAGAIN)) {
    (void)poll(&written, 1, -1);
    got = read(fd, to, size_bytes);
  }
  return got;
}

/** Reads up to max_bytes + 1 bytes, so that the caller sees when there are more than max_bytes. */
static lac_status read_text_bytes(const char *path, int fd, size_t max_bytes, char **text,
                                  size_t *n, lac_error *err) {
  struct stat info;
  size_t capacity = 0;
  *n = 0;
  const bool pipe = fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
  for (;;) {
    if (capacity - *n < READ_STEP_BYTES) {
      size_t wanted = capacity * 2 + READ_STEP_BYTES;
      char *more = laci_resize(*text, *n, wanted + 1, 1);
      if (!more) return laci_fail_memory(err, path);
      *text = more;
      capacity = wanted;
    }
    ssize_t got = read_when_ready(fd, *text + *n, capacity - *n, pipe && *n == 0);
    if (got < 0) return laci_fail_errno(err, path, "cannot read");
    *n += (size_t)got;
    if (got == 0 && *n == 0 && pipe)
      return laci_fail(err, LAC_BAD_FILE, "%s: a pipe that nobody writes to", path);
    if (got == 0 || *n > max_bytes) return LAC_OK;
  }
}

lac_status laci_file_read_text(const char *path, size_t max_bytes, char **text, lac_error *err) {
  char *bytes = NULL;
  size_t n = 0;
  *text = NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return laci_fail_errno(err, path, "cannot open");
  lac_status st = read_text_bytes(path, fd, max_bytes, &bytes, &n, err);
  if (!st && n > max_bytes) {
    st = laci_fail(err, LAC_BAD_FILE, "%s: longer than %zu bytes", path, max_bytes);
  }
  if (!st && memchr(bytes, 0, n)) {
    st = laci_fail(err, LAC_BAD_FILE, "%s: not a text: it holds a zero byte", path);
  }
  if (!st) {
    bytes[n] = '\0';
    *text = bytes;
    bytes = NULL;
  }
  (void)close(fd);
  laci_free(bytes);
  return st;
}
