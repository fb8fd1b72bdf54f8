/* SPDX-License-Identifier: Apache-2.0
 * Converts ImageNet: lists the images, reads the journal of finished shards, and lets threads write
 * one shard each. imagenet_shard.c writes a shard. */
#include "data/imagenet.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/writer.h"
#include "cpu/pool.h"
#include "data/dataset_in.h"
#include "data/image.h"
#include "data/imagenet_shard.h"
#include "data/journal.h"

enum { MOST_SHARDS = 99999, N_PARTS = 2 };
#define BROKEN_NAME "broken.txt"
static const char *const part_names[N_PARTS] = {"train", "validation"};
static const char *const part_patterns[N_PARTS] = {"train-*-of-*", "validation-*-of-*"};

typedef struct source {
  laci_raw_part raw;
  int n_shards;
  int64_t first; /* index of this part's first shard among the shards of both parts */
} source;

typedef struct conversion {
  const char *folder;
  const laci_imagenet_options *options;
  source parts[N_PARTS];
  laci_arena arena; /* memory of `texts` */
  const char *texts[LACI_IMAGENET_CLASSES];
  laci_journal *journal;
  laci_imagenet_part *results;
  int lock;
  pthread_mutex_t mutex; /* guards the fields below, `results` and the journal */
  int64_t done, total;   /* numbers of images for the progress: converted so far, and in all */
  lac_status status;     /* status of the first failure, whose text is in `error` */
  lac_error error;
} conversion;

/* ---- Listing what is to be converted ---- */

static uint64_t hash_number(uint64_t number, uint64_t seed) {
  return laci_hash64(&number, sizeof number, seed);
}

/** Returns a hash of everything that determines the content of the shards. */
static uint64_t hash_conversion(const conversion *c) {
  uint64_t hash = hash_number(c->options->seed, 1);
  for (int p = 0; p < N_PARTS; p++) {
    const laci_raw_part *raw = &c->parts[p].raw;
    hash = hash_number(raw->n, hash_number((uint64_t)c->parts[p].n_shards, hash));
    for (size_t k = 0; k < raw->n; k++) {
      const laci_raw_image *image = &raw->images[k];
      hash = laci_hash64(image->name, strlen(image->name), hash);
      hash = hash_number((uint64_t)image->label, hash_number(image->n, hash));
    }
  }
  for (int k = 0; k < LACI_IMAGENET_CLASSES; k++) {
    hash = laci_hash64(c->texts[k], strlen(c->texts[k]) + 1, hash);
  }
  return hash;
}

/** Warns of classes without images and of files that were left out, which could otherwise go
 * unnoticed. */
static void warn_of_missing_images(const laci_raw_part *raw, const char *name) {
  bool there[LACI_IMAGENET_CLASSES] = {false};
  int missing = 0;
  for (size_t k = 0; k < raw->n; k++) there[raw->images[k].label] = true;
  for (int k = 0; k < LACI_IMAGENET_CLASSES; k++) missing += !there[k];
  if (missing) {
    laci_log(LAC_LOG_WARNING, "%s: no %s image of %d of ImageNet's %d classes", raw->path, name,
             missing, LACI_IMAGENET_CLASSES);
  }
  if (raw->n_left_out) {
    laci_log(LAC_LOG_WARNING, "%s: %zu file%s left out, by the name no image", raw->path,
             raw->n_left_out, laci_plural((int64_t)raw->n_left_out));
  }
}

static lac_status check_shard_count(const char *what, int n, lac_error *err) {
  if (n >= 1 && n <= MOST_SHARDS) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%d %s shards, wanted 1 to %d", n, what, MOST_SHARDS);
}

/** Fails if this build cannot encode JPEGs, since every image would then count as broken. */
static lac_status check_can_encode_jpeg(lac_error *err) {
  uint8_t black[3] = {0}, *bytes = NULL;
  size_t n;
  const laci_image pixel = {.width = 1, .height = 1, .rgb = black, .capacity_bytes = sizeof black};
  lac_status st = laci_jpeg_encode("the conversion", &pixel, &bytes, &n, err);
  laci_free(bytes);
  return st;
}

static lac_status list_images_of_parts(conversion *c, const char *raw, lac_error *err) {
  const int n_shards[N_PARTS] = {c->options->shards, c->options->val_shards};
  int64_t first = 0;
  lac_status st = laci_raw_read_class_names(raw, &c->arena, c->texts, err);
  for (int p = 0; p < N_PARTS && !st; p++) {
    source *part = &c->parts[p];
    st = check_shard_count(part_names[p], n_shards[p], err);
    if (!st) st = laci_raw_part_open(raw, p == 0, &part->raw, err);
    part->n_shards = part->raw.n ? n_shards[p] : 0;
    part->first = first;
    first += part->n_shards;
    c->total += (int64_t)part->raw.n;
    c->results[p].shards = part->n_shards;
  }
  if (!st && c->total == 0) {
    return laci_fail(
        err, LAC_NOT_FOUND,
        "%s: no images, wanted ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar, or "
        "img_train and img_val",
        raw);
  }
  for (int p = 0; p < N_PARTS && !st; p++) {
    if (c->parts[p].raw.n) warn_of_missing_images(&c->parts[p].raw, part_names[p]);
    else laci_log(LAC_LOG_WARNING, "%s: no %s images", raw, part_names[p]);
  }
  return st;
}

/* ---- The folder ---- */

static lac_status remove_old_shards(const conversion *c, lac_error *err) {
  lac_status st = laci_folder_remove_matching(c->folder, LACI_JOURNAL_NAME, err);
  if (!st) st = laci_folder_remove_matching(c->folder, BROKEN_NAME, err);
  for (int p = 0; p < N_PARTS && !st; p++) {
    st = laci_folder_remove_matching(c->folder, part_patterns[p], err);
  }
  return st;
}

static lac_status lock_and_open_folder(conversion *c, lac_error *err) {
  const uint64_t fingerprint = hash_conversion(c);
  if (mkdir(c->folder, 0777) != 0 && errno != EEXIST) {
    return laci_fail(err, errno == ENOENT ? LAC_NOT_FOUND : LAC_IO, "%s: %s", c->folder,
                     strerror(errno));
  }
  lac_status st = laci_folder_lock(c->folder, &c->lock, err);
  if (st) return st;
  bool has_journal = laci_folder_has_match(c->folder, LACI_JOURNAL_NAME);
  bool has_shards = laci_folder_has_match(c->folder, part_patterns[0]) ||
                    laci_folder_has_match(c->folder, part_patterns[1]);
  if (has_shards && !has_journal) {
    if (!c->options->force) {
      return laci_fail(err, LAC_EXISTS, "%s: it has shards that no conversion of this kind left",
                       c->folder);
    }
    st = remove_old_shards(c, err);
  }
  lac_error other = {0};
  if (!st) st = laci_journal_open(c->folder, fingerprint, &c->journal, &other);
  if (st == LAC_EXISTS && c->options->force) {
    st = remove_old_shards(c, err);
    return st ? st : laci_journal_open(c->folder, fingerprint, &c->journal, err);
  }
  if (st && err && other.status) *err = other;
  return st;
}

/* ---- Shards ---- */

static void describe_shard(const conversion *c, int64_t number, laci_imagenet_shard *shard) {
  const int p = number >= c->parts[1].first ? 1 : 0;
  const source *part = &c->parts[p];
  const int64_t k = number - part->first, n = (int64_t)part->raw.n;
  *shard = (laci_imagenet_shard){.raw = &part->raw,
                                 .texts = c->texts,
                                 .folder = c->folder,
                                 .seed = c->options->seed,
                                 .part = p,
                                 .first = n * k / part->n_shards,
                                 .end = n * (k + 1) / part->n_shards};
  (void)snprintf(shard->name, sizeof shard->name, "%s-%05d-of-%05d", part_names[p], (int)k,
                 part->n_shards);
}

/** Returns the journal's entry of a shard that was finished earlier and whose file still exists;
 * NULL: there is none. Call it only while no thread writes shards. */
static const laci_journal_shard *find_finished_shard(const conversion *c,
                                                     const laci_imagenet_shard *shard) {
  const laci_journal_shard *done = laci_journal_find(c->journal, shard->name);
  return done && laci_folder_has_match(c->folder, shard->name) ? done : NULL;
}

/** Counts an image as written or broken, and reports progress; false: the conversion must end. */
static bool count_image(void *context) {
  conversion *c = context;
  pthread_mutex_lock(&c->mutex);
  c->done++;
  int64_t done = c->done;
  bool goes_on = !c->status;
  pthread_mutex_unlock(&c->mutex);
  laci_progress("convert", done, c->total);
  return goes_on && !laci_interrupted();
}

static lac_status record_finished_shard(conversion *c, const laci_imagenet_shard *shard,
                                        lac_error *err) {
  laci_journal_shard line = {shard->name, shard->images, shard->broken,
                             shard->broken_lines ? shard->broken_lines : ""};
  pthread_mutex_lock(&c->mutex);
  c->results[shard->part].images += shard->images;
  c->results[shard->part].broken += shard->broken;
  lac_status st = laci_journal_add(c->journal, &line, err);
  pthread_mutex_unlock(&c->mutex);
  return st;
}

static void record_first_failure(conversion *c, lac_status st, const lac_error *error) {
  pthread_mutex_lock(&c->mutex);
  if (!c->status) {
    c->status = st;
    c->error = *error;
  }
  pthread_mutex_unlock(&c->mutex);
}

typedef struct todo {
  conversion *c;
  int64_t *numbers; /* [n] indices of the shards that are not finished */
  int64_t n;
} todo;

static void make_shards(int64_t begin, int64_t end, void *context) {
  const todo *t = context;
  for (int64_t k = begin; k < end; k++) {
    laci_imagenet_shard shard;
    lac_error error = {0};
    describe_shard(t->c, t->numbers[k], &shard);
    lac_status st = laci_imagenet_shard_write(&shard, count_image, t->c, &error);
    if (!st) st = record_finished_shard(t->c, &shard, &error);
    if (st) record_first_failure(t->c, st, &error);
    laci_imagenet_shard_clear(&shard);
  }
}

static lac_status list_unfinished_shards(conversion *c, todo *t, lac_error *err) {
  const int64_t n = c->parts[1].first + c->parts[1].n_shards;
  *t = (todo){.c = c, .numbers = laci_alloc((size_t)n, sizeof *t->numbers)};
  if (!t->numbers) return laci_fail_memory(err, c->folder);
  for (int64_t k = 0; k < n; k++) {
    laci_imagenet_shard shard;
    describe_shard(c, k, &shard);
    const laci_journal_shard *done = find_finished_shard(c, &shard);
    if (!done) {
      t->numbers[t->n++] = k;
      continue;
    }
    c->results[shard.part].kept++;
    c->results[shard.part].images += done->images;
    c->results[shard.part].broken += done->broken;
    c->done += done->images + done->broken;
  }
  return LAC_OK;
}

static lac_status make_all_shards(conversion *c, lac_error *err) {
  todo t;
  laci_pool *pool = NULL;
  lac_status st = list_unfinished_shards(c, &t, err);
  if (!st && c->done) {
    laci_log(LAC_LOG_INFO, "%s: %d shards are there already", c->folder,
             c->results[0].kept + c->results[1].kept);
  }
  if (!st) st = laci_pool_create(c->options->threads, &pool, err);
  if (!st) {
    laci_pool_for(pool, t.n, 1, make_shards, &t);
    st = c->status;
    if (st && err) *err = c->error;
  }
  laci_pool_destroy(pool);
  laci_free(t.numbers);
  return st;
}

/* ---- The list of broken images ---- */

static lac_status write_list_of_broken_images(const conversion *c, lac_error *err) {
  laci_arena scratch = {0};
  laci_writer *writer = NULL;
  const laci_write_options replace = {.force = true};
  const int64_t n = c->parts[1].first + c->parts[1].n_shards;
  if (!c->results[0].broken && !c->results[1].broken) return LAC_OK;
  const char *path = laci_path_join(&scratch, c->folder, BROKEN_NAME);
  lac_status st =
      path ? laci_writer_open(path, &replace, &writer, err) : laci_fail_memory(err, c->folder);
  for (int64_t k = 0; k < n && !st; k++) {
    laci_imagenet_shard shard;
    describe_shard(c, k, &shard);
    const laci_journal_shard *done = laci_journal_find(c->journal, shard.name);
    if (done) st = laci_writer_append(writer, done->broken_lines, strlen(done->broken_lines), err);
  }
  if (!st) st = laci_writer_finish(writer, err);
  if (!st) st = laci_writer_commit(writer, err);
  laci_writer_destroy(writer);
  laci_arena_clear(&scratch);
  return st;
}

lac_status laci_imagenet_convert(const char *raw, const char *folder,
                                 const laci_imagenet_options *options, laci_imagenet_part parts[2],
                                 lac_error *err) {
  conversion *c = laci_alloc(1, sizeof *c);
  if (!c) return laci_fail_memory(err, raw);
  memset(parts, 0, N_PARTS * sizeof *parts);
  c->folder = folder;
  c->options = options;
  c->results = parts;
  c->lock = -1;
  pthread_mutex_init(&c->mutex, NULL);
  lac_status st = check_can_encode_jpeg(err);
  if (!st) st = list_images_of_parts(c, raw, err);
  if (!st) st = lock_and_open_folder(c, err);
  if (!st) st = make_all_shards(c, err);
  if (!st) st = write_list_of_broken_images(c, err);
  laci_journal_close(c->journal);
  laci_folder_unlock(c->lock);
  for (int p = 0; p < N_PARTS; p++) laci_raw_part_close(&c->parts[p].raw);
  pthread_mutex_destroy(&c->mutex);
  laci_arena_clear(&c->arena);
  laci_free(c);
  return st;
}
