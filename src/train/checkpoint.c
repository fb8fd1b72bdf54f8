/* SPDX-License-Identifier: Apache-2.0
 * Writes, lists and checks checkpoint files; checkpoint.h has the format. */
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/reader.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/temporary.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/writer.h"

enum { VERSION = 1, ALIGNMENT = 64, HASH_BYTES = 8 };

static const char magic[8] = {'L', 'A', 'C', 'U', 'N', 'A', 'c', 'k'};
static const char prefix[] = "checkpoint-", suffix[] = ".lac";

typedef struct header {
  char magic[8];
  uint32_t version, n_sections;
  uint64_t size_bytes;
  int64_t step;
  uint64_t zero;
} header;

typedef struct entry {
  char name[LACI_CHECKPOINT_NAME + 1];
  uint64_t offset, size_bytes;
} entry;

_Static_assert(sizeof(header) == 40 && sizeof(entry) == 48, "as they are in the file");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as they are in the file");

struct laci_checkpoint {
  laci_file_bytes file;
  char *path;
  header head;
  entry entries[LACI_CHECKPOINT_MAX_SECTIONS];
};

static uint64_t align_offset(uint64_t offset) {
  return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t directory_bytes(uint32_t n) { return sizeof(header) + n * sizeof(entry); }

/* ---- Names ---- */

/** Returns the step in the name of a checkpoint's file; -1: it is not such a name. */
static int64_t parse_step_of_file_name(const char *name) {
  const size_t before = sizeof prefix - 1, after = sizeof suffix - 1;
  size_t length = strlen(name);
  if (length <= before + after || length > before + after + 18) return -1;
  if (memcmp(name, prefix, before) != 0 || strcmp(name + length - after, suffix) != 0) return -1;
  int64_t step = 0;
  for (const char *at = name + before; at < name + length - after; at++) {
    if (*at < '0' || *at > '9') return -1;
    step = step * 10 + (*at - '0');
  }
  return step;
}

static lac_status join_path(const char *folder, const char *name, char **path, lac_error *err) {
  size_t capacity = strlen(folder) + strlen(name) + 2;
  *path = laci_alloc(capacity, 1);
  if (!*path) return laci_fail_memory(err, "a checkpoint's name");
  (void)snprintf(*path, capacity, "%s/%s", folder, name);
  return LAC_OK;
}

/** The names of the checkpoints in a folder, the latest step first. */
typedef struct listing {
  char **names;
  size_t n, capacity;
} listing;

static void free_listing(listing *l) {
  for (size_t at = 0; at < l->n; at++) laci_free(l->names[at]);
  laci_free(l->names);
}

static int compare_newest_first(const void *a, const void *b) {
  const char *const *x = a, *const *y = b;
  int64_t first = parse_step_of_file_name(*x), second = parse_step_of_file_name(*y);
  return first != second ? (first < second ? 1 : -1) : strcmp(*x, *y);
}

/** Lists the names in a folder for which the function `wanted` returns true. */
static lac_status list_matching_files(const char *folder, bool (*wanted)(const char *name),
                                      listing *l, lac_error *err) {
  DIR *open = opendir(folder);
  *l = (listing){0};
  if (!open) {
    lac_status st = errno == ENOENT || errno == ENOTDIR ? LAC_NOT_FOUND : LAC_IO;
    return laci_fail(err, st, "%s: %s", folder, strerror(errno));
  }
  lac_status st = LAC_OK;
  for (struct dirent *file; !st && (file = readdir(open)) != NULL;) {
    void *array = l->names;
    if (!wanted(file->d_name)) continue;
    size_t length = strlen(file->d_name);
    char *name = laci_alloc(length + 1, 1);
    if (!name || !laci_grow(&array, l->n, &l->capacity, sizeof *l->names)) {
      laci_free(name);
      st = laci_fail_memory(err, folder);
      break;
    }
    l->names = array;
    memcpy(name, file->d_name, length);
    l->names[l->n++] = name;
  }
  closedir(open);
  if (l->n > 1) qsort(l->names, l->n, sizeof *l->names, compare_newest_first);
  if (st) free_listing(l);
  return st;
}

static bool is_checkpoint_name(const char *name) { return parse_step_of_file_name(name) >= 0; }

/* ---- Writing ---- */

static lac_status check_sections(const char *folder, int64_t step, const laci_section *sections,
                                 int n, lac_error *err) {
  if (step < 0 || n < 0 || n > LACI_CHECKPOINT_MAX_SECTIONS) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: a checkpoint of step %" PRId64 ", %d sections",
                     folder, step, n);
  }
  for (int k = 0; k < n; k++) {
    size_t length = strlen(sections[k].name);
    bool is_new = length > 0 && length <= LACI_CHECKPOINT_NAME;
    for (int other = 0; other < k; other++) {
      is_new &= strcmp(sections[k].name, sections[other].name) != 0;
    }
    if (!is_new)
      return laci_fail(err, LAC_BAD_ARGUMENT, "section '%s' of a checkpoint", sections[k].name);
  }
  return LAC_OK;
}

static lac_status append_padding(laci_writer *writer, uint64_t from, uint64_t to, lac_error *err) {
  static const uint8_t zeros[ALIGNMENT];
  return laci_writer_append(writer, zeros, (size_t)(to - from), err);
}

static lac_status append_checkpoint(laci_writer *writer, int64_t step, const laci_section *sections,
                                    int n, lac_error *err) {
  struct {
    header head;
    entry entries[LACI_CHECKPOINT_MAX_SECTIONS];
  } directory = {.head = {.version = VERSION, .n_sections = (uint32_t)n, .step = step}};
  const size_t directory_size = directory_bytes((uint32_t)n);
  uint64_t end = directory_size;
  memcpy(directory.head.magic, magic, sizeof magic);
  for (int k = 0; k < n; k++) {
    entry *e = &directory.entries[k];
    memcpy(e->name, sections[k].name, strlen(sections[k].name));
    e->offset = align_offset(end);
    e->size_bytes = sections[k].size_bytes;
    end = e->offset + e->size_bytes;
  }
  directory.head.size_bytes = end + HASH_BYTES;
  uint64_t hash = laci_hash64(&directory, directory_size, 0), at = directory_size;
  lac_status st = laci_writer_append(writer, &directory, directory_size, err);
  for (int k = 0; k < n && !st; k++) {
    st = append_padding(writer, at, directory.entries[k].offset, err);
    if (!st) st = laci_writer_append(writer, sections[k].bytes, sections[k].size_bytes, err);
    hash = laci_hash64(sections[k].bytes, sections[k].size_bytes, hash);
    at = directory.entries[k].offset + directory.entries[k].size_bytes;
  }
  if (!st) st = laci_writer_append(writer, &hash, sizeof hash, err);
  return st;
}

/** Removes all checkpoints but the `keep` latest ones. The one that was just written (`written`)
 * always stays. */
static void remove_old_checkpoints(int in, const char *folder, const char *written, int keep) {
  listing l;
  if (!list_matching_files(folder, is_checkpoint_name, &l, NULL)) {
    size_t kept = keep < 1 ? 1 : (size_t)keep;
    for (size_t at = kept; at < l.n; at++) {
      if (strcmp(l.names[at], written) != 0) continue;
      char *spared = l.names[at];
      l.names[at] = l.names[kept - 1];
      l.names[kept - 1] = spared;
    }
    /* a file that cannot be removed does no harm */
    for (size_t at = kept; at < l.n; at++) (void)unlinkat(in, l.names[at], 0);
    free_listing(&l);
  }
  laci_remove_files_of_dead_owners(in);
}

lac_status laci_checkpoint_write(const char *folder, int64_t step, const laci_section *sections,
                                 int n, int keep, lac_error *err) {
  char name[64], *path = NULL;
  laci_writer *writer = NULL;
  int in = -1;
  lac_status st = check_sections(folder, step, sections, n, err);
  if (st) return st;
  (void)snprintf(name, sizeof name, "%s%012" PRId64 "%s", prefix, step, suffix);
  const laci_write_options options = {.force = true};
  st = join_path(folder, name, &path, err);
  if (!st) st = laci_folder_enter(folder, &in, err);
  if (!st) st = laci_writer_open_at(in, name, path, &options, &writer, err);
  if (!st) st = append_checkpoint(writer, step, sections, n, err);
  if (!st) st = laci_writer_finish(writer, err);
  if (!st) st = laci_writer_commit(writer, err);
  laci_writer_destroy(writer);
  if (!st) remove_old_checkpoints(in, folder, name, keep);
  if (in >= 0) (void)close(in);
  laci_free(path);
  return st;
}

/* ---- Reading ---- */

static lac_status fail_damaged_checkpoint(const laci_checkpoint *c, const char *what,
                                          lac_error *err) {
  return laci_fail(err, LAC_BAD_FILE, "%s: damaged: %s", c->path, what);
}

static lac_status read_header(laci_checkpoint *c, lac_error *err) {
  if (c->file.size_bytes < sizeof magic || memcmp(c->file.bytes, magic, sizeof magic) != 0) {
    return laci_fail(err, LAC_BAD_FILE, "%s: not a checkpoint", c->path);
  }
  if (c->file.size_bytes < sizeof c->head + HASH_BYTES) {
    return laci_fail(err, LAC_BAD_FILE, "%s: cut off after %zu bytes", c->path, c->file.size_bytes);
  }
  memcpy(&c->head, c->file.bytes, sizeof c->head);
  if (c->head.version != VERSION) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: a checkpoint of version %" PRIu32 ", wanted %d",
                     c->path, c->head.version, VERSION);
  }
  if (c->head.size_bytes != c->file.size_bytes) {
    return laci_fail(err, LAC_BAD_FILE, "%s: %zu bytes, wanted %" PRIu64 " (cut off?)", c->path,
                     c->file.size_bytes, c->head.size_bytes);
  }
  if (c->head.n_sections > LACI_CHECKPOINT_MAX_SECTIONS || c->head.step < 0 || c->head.zero ||
      directory_bytes(c->head.n_sections) + HASH_BYTES > c->file.size_bytes) {
    return fail_damaged_checkpoint(c, "its header", err);
  }
  memcpy(c->entries, c->file.bytes + sizeof c->head, c->head.n_sections * sizeof(entry));
  return LAC_OK;
}

/** Checks that each section begins at the next multiple of 64, that the padding is zero, and that
 * the hash is right, so that every byte of the file is checked. */
static lac_status check_sections_and_hash(const laci_checkpoint *c, lac_error *err) {
  const size_t last = c->file.size_bytes - HASH_BYTES,
               directory = directory_bytes(c->head.n_sections);
  uint64_t end = directory, hash = laci_hash64(c->file.bytes, directory, 0), wanted;
  for (uint32_t k = 0; k < c->head.n_sections; k++) {
    const entry *e = &c->entries[k];
    uint64_t first = align_offset(end);
    if (e->name[0] == '\0' || e->name[LACI_CHECKPOINT_NAME] != '\0' || e->offset != first ||
        first > last || e->size_bytes > last - first) {
      return fail_damaged_checkpoint(c, "its table of sections", err);
    }
    for (uint64_t at = end; at < first; at++) {
      if (c->file.bytes[at] != 0) return fail_damaged_checkpoint(c, "bytes between sections", err);
    }
    hash = laci_hash64(c->file.bytes + first, (size_t)e->size_bytes, hash);
    end = first + e->size_bytes;
  }
  memcpy(&wanted, c->file.bytes + last, sizeof wanted);
  if (end != last) return fail_damaged_checkpoint(c, "its table of sections", err);
  if (hash != wanted) return fail_damaged_checkpoint(c, "its checksum does not fit", err);
  return LAC_OK;
}

lac_status laci_checkpoint_open(const char *path, laci_checkpoint **checkpoint, lac_error *err) {
  *checkpoint = NULL;
  laci_checkpoint *c = laci_alloc(1, sizeof *c);
  size_t length = strlen(path);
  char *copy = laci_alloc(length + 1, 1);
  if (!c || !copy) {
    laci_free(c);
    laci_free(copy);
    return laci_fail_memory(err, path);
  }
  memcpy(copy, path, length);
  c->path = copy;
  lac_status st = laci_file_bytes_read(path, &c->file, err);
  if (!st) st = read_header(c, err);
  if (!st) st = check_sections_and_hash(c, err);
  if (st) laci_checkpoint_close(c);
  else *checkpoint = c;
  return st;
}

lac_status laci_checkpoint_open_newest(const char *folder, laci_checkpoint **checkpoint,
                                       lac_error *err) {
  listing l;
  lac_error first = {0};
  *checkpoint = NULL;
  lac_status st = list_matching_files(folder, is_checkpoint_name, &l, err);
  if (st) return st;
  st = LAC_NOT_FOUND;
  for (size_t at = 0; at < l.n && st; at++) {
    lac_error error = {0};
    char *path;
    st = join_path(folder, l.names[at], &path, &error);
    if (!st) st = laci_checkpoint_open(path, checkpoint, &error);
    if (st && at == 0) first = error;
    if (st) laci_log(LAC_LOG_WARNING, "%s", error.text);
    if (path) laci_free(path);
  }
  if (st && l.n == 0) st = laci_fail(err, LAC_NOT_FOUND, "%s: no checkpoint", folder);
  else if (st) st = laci_fail(err, first.status, "%s", first.text);
  free_listing(&l);
  return st;
}

void laci_checkpoint_close(laci_checkpoint *checkpoint) {
  if (!checkpoint) return;
  laci_file_bytes_clear(&checkpoint->file);
  laci_free(checkpoint->path);
  laci_free(checkpoint);
}

const char *laci_checkpoint_path(const laci_checkpoint *checkpoint) { return checkpoint->path; }
int64_t laci_checkpoint_step(const laci_checkpoint *checkpoint) { return checkpoint->head.step; }

lac_status laci_checkpoint_find_section(const laci_checkpoint *checkpoint, const char *name,
                                        laci_section *section, lac_error *err) {
  for (uint32_t k = 0; k < checkpoint->head.n_sections; k++) {
    const entry *e = &checkpoint->entries[k];
    if (strcmp(e->name, name) != 0) continue;
    *section = (laci_section){e->name, checkpoint->file.bytes + e->offset, (size_t)e->size_bytes};
    return LAC_OK;
  }
  *section = (laci_section){.name = name};
  return laci_fail(err, LAC_BAD_FILE, "%s: it has no section '%s'", checkpoint->path, name);
}
