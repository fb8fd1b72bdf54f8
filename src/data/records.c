/* SPDX-License-Identifier: Apache-2.0
 * Data sets of ImageNet's TFRecords: shards PART-00000-of-01024, each a file of Examples. Opening a
 * set reads only the lengths and labels of the records, several shards at a time. An image is read
 * on request: its checksum and its label are then compared, so that an image never gets the label
 * of another one. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/reader.h"
#include "cpu/pool.h"
#include "data/dataset_in.h"
#include "data/example.h"
#include "data/tfrecord.h"

enum { MOST_SHARDS = 99999, MOST_OPEN = 64, IMAGENET_CLASSES = 1000, NAME = 64 };

typedef struct record {
  laci_tfrecord place;
  int32_t label; /* class of the image, 0..999 */
} record;

typedef struct shard {
  const char *path;
  laci_reader *reader;
  record *records;
  size_t n, capacity;
  int64_t first;    /* index, in the set, of the shard's first image */
  bool has_synsets; /* every Example has a synset of ImageNet */
  lac_status status;
} shard;

typedef struct records {
  int n;
  shard *shards;     /* [n] shards of the part, in order */
  lac_error *errors; /* [n] error of each shard, only while the set is opened */
} records;

static const char *shard_name_of_part(laci_dataset_part part) {
  return part == LACI_PART_TRAIN ? "train" : "validation";
}

/* ---- Images ---- */

static shard *find_shard_of_image(const laci_dataset *set, int64_t at) {
  const records *r = set->own;
  int low = 0, high = r->n - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (r->shards[middle].first <= at) low = middle;
    else high = middle - 1;
  }
  return &r->shards[low];
}

static void write_image_name(const laci_dataset *set, int64_t at, char *text, size_t size_bytes) {
  const shard *s = find_shard_of_image(set, at);
  (void)snprintf(text, size_bytes, "%s: the record at byte %zu", s->path,
                 s->records[at - s->first].place.at);
}

static lac_status read_checked_image(const laci_dataset *set, int64_t at, laci_encoded *encoded,
                                     lac_error *err) {
  const shard *s = find_shard_of_image(set, at);
  const record *r = &s->records[at - s->first];
  laci_example_view view;
  lac_status st = laci_tfrecord_read(s->path, s->reader, &r->place, &encoded->memory, err);
  if (st) return st;
  laci_example_source source = {
      .name = s->path, .at = r->place.at, .n = r->place.n, .bytes = encoded->memory};
  st = laci_example_find_features(&source, &view, err);
  if (st) return st;
  if (view.label - 1 != r->label) {
    return laci_fail(err, LAC_IO, "%s: byte %zu: the label is another one than before", s->path,
                     r->place.at);
  }
  encoded->bytes = encoded->memory + view.encoded;
  encoded->size_bytes = view.encoded_bytes;
  return LAC_OK;
}

static void close_shards(laci_dataset *set) {
  records *r = set->own;
  if (!r) return;
  for (int k = 0; k < r->n; k++) {
    laci_reader_close(r->shards[k].reader);
    laci_free(r->shards[k].records);
  }
  laci_free(r->shards);
  laci_free(r->errors);
  laci_free(r);
  set->own = NULL;
}

static const laci_dataset_kind kind = {
    .encoded = read_checked_image, .name = write_image_name, .close = close_shards};

/* ---- The index ---- */

/** Checks the label of an Example: it is in range, and agrees with the synset if the Example has
 * one of ImageNet's. */
static lac_status check_label(shard *s, const laci_tfrecord *place, const laci_example_view *view,
                              lac_error *err) {
  if (view->label < 1 || view->label > IMAGENET_CLASSES) {
    return laci_fail(err, LAC_BAD_FILE, "%s: byte %zu: label %" PRId64 ", wanted 1 to %d", s->path,
                     place->at, view->label, IMAGENET_CLASSES);
  }
  int by_synset = laci_imagenet_class_of_synset(view->synset);
  if (by_synset < 0) s->has_synsets = false;
  if (by_synset < 0 || by_synset == view->label - 1) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE, "%s: byte %zu: label %" PRId64 ", but %s is %d", s->path,
                   place->at, view->label, view->synset, by_synset + 1);
}

static lac_status add_record(shard *s, const laci_tfrecord *place, lac_error *err) {
  laci_example_source source = {
      .name = s->path, .at = place->at, .n = place->n, .reader = s->reader, .offset = place->data};
  laci_example_view view;
  if (!laci_grow((void **)&s->records, s->n, &s->capacity, sizeof *s->records)) {
    return laci_fail_memory(err, s->path);
  }
  lac_status st = laci_example_find_features(&source, &view, err);
  if (!st) st = check_label(s, place, &view, err);
  if (!st) s->records[s->n++] = (record){*place, (int32_t)view.label - 1};
  return st;
}

/** Explains a failure to parse a record. If st is LAC_BAD_FILE and the record's checksum is wrong,
 * too, *err then says instead that the record is damaged. Returns the status. */
static lac_status explain_by_checksum(const shard *s, const laci_tfrecord *place, lac_status st,
                                      lac_error *err) {
  uint8_t *bytes = NULL;
  lac_error damage = {0};
  if (st != LAC_BAD_FILE) return st;
  if (laci_tfrecord_read(s->path, s->reader, place, &bytes, &damage) == LAC_BAD_FILE && err) {
    *err = damage;
  }
  laci_free(bytes);
  return st;
}

static lac_status index_records_of_shard(shard *s, lac_error *err) {
  lac_status st = laci_reader_open(s->path, &s->reader, err);
  s->has_synsets = true;
  for (size_t at = 0; !st && at < laci_reader_size(s->reader);) {
    laci_tfrecord place;
    st = laci_tfrecord_find(s->path, s->reader, at, &place, err);
    if (st) break;
    st = add_record(s, &place, err);
    if (st) st = explain_by_checksum(s, &place, st, err);
    at = place.next;
  }
  return st;
}

static void index_shards(int64_t begin, int64_t end, void *context) {
  records *r = context;
  for (int64_t k = begin; k < end; k++) {
    r->shards[k].status = index_records_of_shard(&r->shards[k], &r->errors[k]);
    if (r->n > MOST_OPEN && r->shards[k].reader) laci_reader_close_descriptor(r->shards[k].reader);
  }
}

/** Merges the indices of all shards into the set: numbers the images, one shard after the other,
 * and sets labels and classes. Fails with the error of the first shard that failed. */
static lac_status merge_shards(laci_dataset *set, lac_error *err) {
  records *r = set->own;
  bool has_synsets = true;
  for (int k = 0; k < r->n; k++) {
    shard *s = &r->shards[k];
    if (s->status && err) *err = r->errors[k];
    if (s->status) return s->status;
    s->first = set->count;
    set->count += (int64_t)s->n;
    has_synsets = has_synsets && s->has_synsets;
  }
  if (set->count == 0) {
    return laci_fail(err, LAC_BAD_FILE, "%s: no record in any shard", set->folder);
  }
  set->labels = laci_alloc((size_t)set->count, sizeof *set->labels);
  if (!set->labels) return laci_fail_memory(err, set->folder);
  for (int k = 0; k < r->n; k++) {
    const shard *s = &r->shards[k];
    for (size_t at = 0; at < s->n; at++) set->labels[s->first + (int64_t)at] = s->records[at].label;
  }
  set->n_classes = IMAGENET_CLASSES;
  set->numbering = LACI_NUMBERED_BY_DATA;
  return has_synsets ? laci_imagenet_set_classes(set, err) : LAC_OK;
}

/* ---- The shards ---- */

/** Returns the number N of shards that a name PART-00000-of-N states; 0 for any other name. */
static int parse_shard_count(const char *name, const char *part) {
  int at, of, length = 0;
  size_t n = strlen(part);
  if (strncmp(name, part, n) != 0 || strlen(name) != n + strlen("-00000-of-00000")) return 0;
  if (sscanf(name + n, "-%5d-of-%5d%n", &at, &of, &length) != 2 || name[n + (size_t)length]) {
    return 0;
  }
  char same[NAME];
  (void)snprintf(same, sizeof same, "%s-%05d-of-%05d", part, at, of);
  return at >= 0 && at < of && strcmp(same, name) == 0 ? of : 0;
}

/** Returns the number of shards that the names of the part's files in the folder state. 0: there
 * are no shards; -1: names state different numbers. */
static int find_shard_count(const char *folder, const char *part) {
  int found = 0;
  DIR *files = opendir(folder);
  for (struct dirent *file; files && found >= 0 && (file = readdir(files));) {
    int n = parse_shard_count(file->d_name, part);
    if (n && found && n != found) found = -1;
    else if (n) found = n;
  }
  if (files) (void)closedir(files);
  return found;
}

bool laci_records_exist_in(const char *folder) {
  return find_shard_count(folder, shard_name_of_part(LACI_PART_TRAIN)) != 0 ||
         find_shard_count(folder, shard_name_of_part(LACI_PART_TEST)) != 0;
}

static lac_status set_shard_paths(laci_dataset *set, const char *part, lac_error *err) {
  records *r = set->own;
  int n = find_shard_count(set->folder, part);
  if (n == 0) {
    return laci_fail(err, LAC_NOT_FOUND, "%s: it has TFRecords, but no %s-00000-of-...",
                     set->folder, part);
  }
  if (n < 0 || n > MOST_SHARDS) {
    return laci_fail(err, LAC_BAD_FILE, "%s: shards %s-..., but not all of one number of shards",
                     set->folder, part);
  }
  r->shards = laci_alloc((size_t)n, sizeof *r->shards);
  r->errors = laci_alloc((size_t)n, sizeof *r->errors);
  if (!r->shards || !r->errors) return laci_fail_memory(err, set->folder);
  r->n = n;
  for (int k = 0; k < n; k++) {
    char name[NAME];
    (void)snprintf(name, sizeof name, "%s-%05d-of-%05d", part, k, n);
    r->shards[k].path = laci_path_join(&set->arena, set->folder, name);
    if (!r->shards[k].path) return laci_fail_memory(err, set->folder);
  }
  return LAC_OK;
}

lac_status laci_records_open(laci_dataset *set, const laci_dataset_options *options,
                             lac_error *err) {
  laci_pool *pool = NULL;
  if (options->classes_path) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: labels of TFRecords are numbers, not names of classes",
                     options->classes_path);
  }
  records *r = laci_alloc(1, sizeof *r);
  if (!r) return laci_fail_memory(err, set->folder);
  set->kind = &kind;
  set->own = r;
  set->format = "tfrecords";
  set->augment = (laci_augment){.flip = true, .resized = true};
  set->preprocessing = laci_preprocessing_default();
  lac_status st = set_shard_paths(set, shard_name_of_part(options->part), err);
  if (!st) st = laci_pool_create(0, &pool, err);
  if (st) return st;
  laci_pool_for(pool, r->n, 1, index_shards, r);
  laci_pool_destroy(pool);
  st = merge_shards(set, err);
  laci_free(r->errors);
  r->errors = NULL;
  return st;
}
