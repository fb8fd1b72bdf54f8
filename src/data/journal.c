/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes the journal. Complete lines are appended by one call of write. If the process
 * was killed while it wrote, the last line is incomplete; it is removed when the file is opened
 * again. */
#include "data/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "data/dataset_in.h"

enum { MOST_BYTES = 1 << 28, HEAD = 64, NAME = 64 };

struct laci_journal {
  laci_arena arena;
  const char *path;
  int fd;
  laci_journal_shard *shards;
  size_t n, capacity;
};

static lac_status fail_system(const laci_journal *j, lac_error *err) {
  return laci_fail(err, LAC_IO, "%s: %s", j->path, strerror(errno));
}

static lac_status write_all_bytes(laci_journal *j, const char *bytes, size_t n, lac_error *err) {
  while (n > 0) {
    ssize_t written = write(j->fd, bytes, n);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_system(j, err);
    bytes += written;
    n -= (size_t)written;
  }
  return fdatasync(j->fd) == 0 ? LAC_OK : fail_system(j, err);
}

/* ---- Reading ---- */

static lac_status add_shard_to_list(laci_journal *j, const laci_journal_shard *shard,
                                    lac_error *err) {
  laci_journal_shard copy = *shard;
  copy.name = laci_arena_text(&j->arena, shard->name);
  copy.broken_lines = laci_arena_text(&j->arena, shard->broken_lines);
  if (!copy.name || !copy.broken_lines ||
      !laci_grow((void **)&j->shards, j->n, &j->capacity, sizeof *j->shards)) {
    return laci_fail_memory(err, j->path);
  }
  j->shards[j->n++] = copy;
  return LAC_OK;
}

/** Lines about the broken images of a shard whose own line has not been read yet. */
typedef struct pending {
  char *lines; /* the text of the lines, without "broken SHARD " at the beginning of each */
  size_t n_bytes;
  int64_t n;
} pending;

/** Parses a line of the journal. "broken SHARD NAME<TAB>why" is added to *broken. "shard SHARD
 * IMAGES" becomes a finished shard, and sets *is_shard. Fails LAC_BAD_FILE for other lines. */
static lac_status parse_journal_line(laci_journal *j, char *line, pending *broken, bool *is_shard,
                                     lac_error *err) {
  char name[NAME];
  long long images;
  int used = 0;
  *is_shard = false;
  if (sscanf(line, "broken %63s %n", name, &used) == 1 && used > 0) {
    size_t n = strlen(line + used);
    memmove(broken->lines + broken->n_bytes, line + used, n);
    broken->n_bytes += n;
    broken->lines[broken->n_bytes++] = '\n';
    broken->n++;
    return LAC_OK;
  }
  if (sscanf(line, "shard %63s %lld%n", name, &images, &used) != 2 || line[used] || images < 0) {
    return laci_fail(err, LAC_BAD_FILE, "%s: '%.100s' is no line of a journal", j->path, line);
  }
  broken->lines[broken->n_bytes] = '\0';
  laci_journal_shard shard = {name, images, broken->n, broken->lines};
  broken->n = 0;
  broken->n_bytes = 0;
  *is_shard = true;
  return add_shard_to_list(j, &shard, err);
}

/** Parses the journal's lines after its first `head` bytes. *good: the number of bytes up to the
 * end of the last shard line. */
static lac_status parse_journal_lines(laci_journal *j, char *text, size_t head, size_t *good,
                                      lac_error *err) {
  lac_status st = LAC_OK;
  pending broken = {.lines = laci_alloc(strlen(text) + 1, 1)};
  if (!broken.lines) return laci_fail_memory(err, j->path);
  *good = head;
  for (size_t at = head; !st;) {
    char *end = strchr(text + at, '\n');
    bool is_shard = false;
    if (!end) break; /* an incomplete line: the process was killed while it wrote */
    *end = '\0';
    st = parse_journal_line(j, text + at, &broken, &is_shard, err);
    at = (size_t)(end - text) + 1;
    if (is_shard) *good = at;
  }
  laci_free(broken.lines);
  return st;
}

static lac_status read_journal(laci_journal *j, const char *head, lac_error *err) {
  char *text = NULL;
  size_t good = 0;
  lac_status st = laci_file_read_text(j->path, MOST_BYTES, &text, err);
  if (st) return st;
  size_t n = strlen(text), n_head = strlen(head);
  if (n < n_head && strncmp(text, head, n) == 0) { /* an incomplete first line */
    if (ftruncate(j->fd, 0) != 0) st = fail_system(j, err);
    if (!st) st = write_all_bytes(j, head, n_head, err);
  } else if (strncmp(text, head, n_head) != 0) {
    st = laci_fail(err, LAC_EXISTS,
                   "%s: the folder holds a conversion of other images or with other options",
                   j->path);
  } else {
    st = parse_journal_lines(j, text, n_head, &good, err);
    if (!st && ftruncate(j->fd, (off_t)good) != 0) st = fail_system(j, err);
  }
  laci_free(text);
  return st;
}

/* ---- Opening and adding ---- */

lac_status laci_journal_open(const char *folder, uint64_t fingerprint, laci_journal **journal,
                             lac_error *err) {
  char head[HEAD];
  *journal = NULL;
  laci_journal *j = laci_alloc(1, sizeof *j);
  if (!j) return laci_fail_memory(err, folder);
  j->fd = -1;
  j->path = laci_path_join(&j->arena, folder, LACI_JOURNAL_NAME);
  lac_status st = j->path ? LAC_OK : laci_fail_memory(err, folder);
  (void)snprintf(head, sizeof head, "lacuna imagenet 1 %016" PRIx64 "\n", fingerprint);
  if (!st) {
    j->fd = open(j->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    st = j->fd >= 0 ? read_journal(j, head, err) : fail_system(j, err);
  }
  if (st) laci_journal_close(j);
  else *journal = j;
  return st;
}

void laci_journal_close(laci_journal *journal) {
  if (!journal) return;
  if (journal->fd >= 0) (void)close(journal->fd);
  laci_free(journal->shards);
  laci_arena_clear(&journal->arena);
  laci_free(journal);
}

const laci_journal_shard *laci_journal_find(const laci_journal *journal, const char *shard) {
  for (size_t k = 0; k < journal->n; k++) {
    if (strcmp(journal->shards[k].name, shard) == 0) return &journal->shards[k];
  }
  return NULL;
}

lac_status laci_journal_add(laci_journal *journal, const laci_journal_shard *shard,
                            lac_error *err) {
  const char *broken = shard->broken_lines;
  size_t line = strlen("broken  ") + strlen(shard->name) + HEAD, n = 0;
  size_t capacity = strlen(broken) + (size_t)(shard->broken + 1) * line + 1;
  char *text = laci_alloc(capacity, 1);
  if (!text) return laci_fail_memory(err, journal->path);
  for (const char *end; (end = strchr(broken, '\n')) != NULL; broken = end + 1) {
    n += (size_t)snprintf(text + n, capacity - n, "broken %s %.*s\n", shard->name,
                          (int)(end - broken), broken);
  }
  n += (size_t)snprintf(text + n, capacity - n, "shard %s %" PRId64 "\n", shard->name,
                        shard->images);
  lac_status st = write_all_bytes(journal, text, n, err);
  if (!st) st = add_shard_to_list(journal, shard, err);
  laci_free(text);
  return st;
}
