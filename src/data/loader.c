/* SPDX-License-Identifier: Apache-2.0
 * The loader has a ring of slots, one for each queued buffer, and threads that decode the images of
 * the oldest slot that has images left.
 *
 * Images are assigned to threads strictly in order, so all images before a failed one were assigned
 * earlier. When the last image of a slot is done, the smallest failed index in the slot is
 * therefore known, for any number of threads. One lock guards the ring; images are decoded without
 * it. */
#include "data/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/shuffle.h"

enum { MAX_DEPTH = 64, MAX_THREADS = 256, MAX_BATCH = 1 << 24, MAX_STRIDE = 1 << 20 };

/** Memory that a thread needs to decode images. The caller of laci_loader_take_batch decodes, too,
 * and has its own. */
typedef struct worker_scratch {
  laci_preparer *preparer;
  laci_image images[2];
} worker_scratch;

typedef struct slot {
  float *pixels;
  int32_t *labels;
  int64_t first;
  int n, n_given, n_done; /* number of images: in the batch (n), assigned to threads so far
                             (n_given), decoded (n_done) */
  int failed_at;          /* index of the first image that could not be read; n: none so far */
  lac_error error;
} slot;

typedef struct worker {
  laci_loader *loader;
  worker_scratch scratch;
  pthread_t thread;
} worker;

struct laci_loader {
  const laci_dataset *set;
  laci_loader_options options;
  laci_training_order training; /* a copy of *options.training */
  int64_t steps_per_epoch;      /* number of steps in an epoch; used only in training */
  size_t sample;                /* number of floats of a prepared image */
  lac_context *job;             /* context of the thread that created the loader; the workers enter
                                   it */
  worker_scratch scratch;       /* scratch of laci_loader_take_batch */
  pthread_mutex_t lock;
  pthread_cond_t wanted; /* signalled when a slot was queued, or the loader closes */
  pthread_cond_t filled; /* signalled when the last image of a slot is decoded */
  bool closing;
  uint64_t n_put, n_taken, open; /* number of batches: queued so far (n_put), taken so far
                                    (n_taken). open: number of the first batch that may have
                                    unassigned images */
  slot slots[MAX_DEPTH];         /* queued batches: batch number b is in slots[b % depth] */
  int n_workers;
  worker workers[];
};

laci_loader_options laci_loader_options_default(const laci_dataset *set) {
  return (laci_loader_options){
      .preprocessing = laci_dataset_preprocessing(set), .batch = 1, .depth = 2};
}

static slot *slot_of_batch(laci_loader *loader, uint64_t batch) {
  return &loader->slots[batch % (uint64_t)loader->options.depth];
}

/* ---- Decoding ---- */

/** Returns the index, in the set, of the image at a place in the order of loading. */
static int64_t image_number_at(const laci_loader *loader, int64_t place) {
  if (!loader->options.training) {
    return loader->options.order ? loader->options.order[place] : place;
  }
  int64_t an_epoch = loader->steps_per_epoch * loader->options.batch;
  if (!loader->training.shuffle) return place % an_epoch;
  return laci_shuffled_index(loader->training.seed, (uint64_t)(place / an_epoch),
                             laci_dataset_count(loader->set), place % an_epoch);
}

static lac_status read_image_into_slot(laci_loader *loader, worker_scratch *b, slot *s, int at,
                                       lac_error *err) {
  int64_t place = s->first + at;
  float *out = s->pixels + (size_t)at * loader->sample;
  int64_t image = image_number_at(loader, place);
  s->labels[at] = laci_dataset_label(loader->set, image);
  if (!loader->options.training || !loader->training.augmented) {
    return laci_dataset_read_sample(loader->set, image, b->preparer, &b->images[0], out, err);
  }
  laci_sample_change change = {.image = image,
                               .augment = loader->training.augment,
                               .seed = loader->training.seed,
                               .sample = (uint64_t)place};
  return laci_dataset_read_changed_sample(loader->set, &change, b->preparer, b->images, out, err);
}

/** Assigns the next image of the slot to this thread, and decodes it. The lock is held on entry and
 * on return, but not while decoding. */
static void load_next_image(laci_loader *loader, worker_scratch *b, slot *s) {
  int at = s->n_given++;
  bool useless = at > s->failed_at; /* an earlier image of the batch has failed, so this one is not
                                       needed */
  pthread_mutex_unlock(&loader->lock);
  lac_error error = {0};
  lac_status st = useless ? LAC_OK : read_image_into_slot(loader, b, s, at, &error);
  pthread_mutex_lock(&loader->lock);
  if (st && at < s->failed_at) {
    s->failed_at = at;
    s->error = error;
  }
  if (++s->n_done == s->n) pthread_cond_signal(&loader->filled);
}

/** Returns the oldest slot with an unassigned image; NULL: there is none now. */
static slot *find_slot_to_fill(laci_loader *loader) {
  for (; loader->open < loader->n_put; loader->open++) {
    slot *s = slot_of_batch(loader, loader->open);
    if (s->n_given < s->n) return s;
  }
  return NULL;
}

static void *run_worker(void *context) {
  worker *w = context;
  laci_loader *loader = w->loader;
  (void)laci_context_enter(loader->job);
  pthread_mutex_lock(&loader->lock);
  while (!loader->closing) {
    slot *s = find_slot_to_fill(loader);
    if (s) load_next_image(loader, &w->scratch, s);
    else pthread_cond_wait(&loader->wanted, &loader->lock);
  }
  pthread_mutex_unlock(&loader->lock);
  return NULL;
}

/* ---- Creating ---- */

int64_t laci_training_steps_per_epoch(const laci_dataset *set, int batch) {
  return laci_dataset_count(set) / batch;
}

static lac_status check_training_order(const laci_dataset *set, const laci_loader_options *o,
                                       lac_error *err) {
  const laci_training_order *t = o->training;
  if (laci_training_steps_per_epoch(set, o->batch) == 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a batch of %d images, but there are only %lld",
                     o->batch, (long long)laci_dataset_count(set));
  }
  if (t->first_step < 0 || t->first_step > INT64_MAX / 2 / o->batch) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "training from step %lld on", (long long)t->first_step);
  }
  if (t->stride < 0 || t->stride > MAX_STRIDE) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "every batch number %d of a training, wanted 0 to %d",
                     t->stride, MAX_STRIDE);
  }
  if (t->augment.pad < 0 || t->augment.pad > LACI_AUGMENT_MAX_PAD) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d pixels of padding, wanted 0 to %d", t->augment.pad,
                     LACI_AUGMENT_MAX_PAD);
  }
  return laci_preprocessing_check(&o->preprocessing, err);
}

static lac_status check_options(const laci_dataset *set, const laci_loader_options *o,
                                lac_error *err) {
  int64_t count = laci_dataset_count(set);
  if (o->batch < 1 || o->batch > MAX_BATCH) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a batch of %d images, wanted 1 to %d", o->batch,
                     MAX_BATCH);
  }
  if (o->depth < 1 || o->depth > MAX_DEPTH) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d buffers, wanted 1 to %d", o->depth, MAX_DEPTH);
  }
  if (o->training) return check_training_order(set, o, err);
  if (o->first_batch < 0 || o->first_batch > INT64_MAX / 2 / o->batch) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "loading from batch %lld on",
                     (long long)o->first_batch);
  }
  if (!o->order) return laci_preprocessing_check(&o->preprocessing, err);
  if (o->limit <= 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "an order of images needs their number");
  }
  for (int64_t at = 0; at < o->limit; at++) {
    if (o->order[at] >= 0 && o->order[at] < count) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT, "image %lld in the order, wanted 0 to %lld",
                     (long long)o->order[at], (long long)count - 1);
  }
  return laci_preprocessing_check(&o->preprocessing, err);
}

/** Sets *n to the number of threads that the option `threads` stands for. For <= 0 it is the number
 * of cores that this process may use, as the thread pool finds it. */
static lac_status find_thread_count(int threads, int *n, lac_error *err) {
  laci_pool *pool = NULL;
  *n = threads;
  if (threads <= 0) {
    lac_status st = laci_pool_create(0, &pool, err);
    if (st) return st;
    *n = laci_pool_threads(pool);
    laci_pool_destroy(pool);
  }
  if (*n > MAX_THREADS) *n = MAX_THREADS;
  return LAC_OK;
}

/* Starts up to n threads. They block all signals, since the caller's threads handle these. If a
 * thread cannot be started, there are only fewer: laci_loader_take_batch decodes images, too. */
static void start_workers(laci_loader *loader, int n) {
  sigset_t all, old;
  sigfillset(&all);
  bool masked = !pthread_sigmask(SIG_SETMASK, &all, &old);
  for (; loader->n_workers < n; loader->n_workers++) {
    worker *w = &loader->workers[loader->n_workers];
    w->loader = loader;
    if (laci_preparer_create(&loader->options.preprocessing, &w->scratch.preparer, NULL)) break;
    if (pthread_create(&w->thread, NULL, run_worker, w)) {
      laci_preparer_destroy(w->scratch.preparer);
      break;
    }
  }
  if (masked) (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

lac_status laci_loader_create(const laci_dataset *set, const laci_loader_options *options,
                              laci_loader **loader, lac_error *err) {
  int n_threads = 0;
  *loader = NULL;
  lac_status st = check_options(set, options, err);
  if (!st) st = find_thread_count(options->threads, &n_threads, err);
  if (st) return st;
  laci_loader *made = laci_alloc(1, sizeof *made + (size_t)n_threads * sizeof(worker));
  if (!made) return laci_fail_memory(err, "loading images");
  made->set = set;
  made->options = *options;
  made->job = laci_context_current();
  int64_t count = laci_dataset_count(set);
  if (options->training) {
    made->training = *options->training;
    made->steps_per_epoch = laci_training_steps_per_epoch(set, options->batch);
    made->options.order = NULL;
    made->options.first_batch = 0;
    made->options.limit = INT64_MAX;
  }
  bool whole =
      !options->training && !options->order && (options->limit <= 0 || options->limit > count);
  if (whole) made->options.limit = count;
  made->sample = laci_preprocessing_sample_size(&options->preprocessing);
  st = laci_preparer_create(&options->preprocessing, &made->scratch.preparer, err);
  if (st) {
    laci_free(made);
    return st;
  }
  pthread_mutex_init(&made->lock, NULL); /* these three calls never fail with default attributes */
  pthread_cond_init(&made->wanted, NULL);
  pthread_cond_init(&made->filled, NULL);
  start_workers(made, n_threads);
  *loader = made;
  return LAC_OK;
}

void laci_loader_destroy(laci_loader *loader) {
  if (!loader) return;
  pthread_mutex_lock(&loader->lock);
  loader->closing = true;
  pthread_cond_broadcast(&loader->wanted);
  pthread_mutex_unlock(&loader->lock);
  for (int k = 0; k < loader->n_workers; k++) {
    worker *w = &loader->workers[k];
    pthread_join(w->thread, NULL);
    laci_preparer_destroy(w->scratch.preparer);
    for (int i = 0; i < 2; i++) laci_image_clear(&w->scratch.images[i]);
  }
  laci_preparer_destroy(loader->scratch.preparer);
  for (int i = 0; i < 2; i++) laci_image_clear(&loader->scratch.images[i]);
  pthread_cond_destroy(&loader->filled);
  pthread_cond_destroy(&loader->wanted);
  pthread_mutex_destroy(&loader->lock);
  laci_free(loader);
}

int64_t laci_loader_count(const laci_loader *loader) {
  const laci_loader_options *o = &loader->options;
  const int64_t left_out = o->first_batch * o->batch;
  return left_out < o->limit ? o->limit - left_out : 0;
}

/* ---- Queuing buffers and taking batches ---- */

lac_status laci_loader_queue_batch(laci_loader *loader, float *pixels, int32_t *labels,
                                   lac_error *err) {
  const laci_loader_options *o = &loader->options;
  if (loader->n_put - loader->n_taken == (uint64_t)o->depth) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d buffers are out already", o->depth);
  }
  pthread_mutex_lock(&loader->lock);
  slot *s = slot_of_batch(loader, loader->n_put);
  int64_t n_batches = o->limit / o->batch + (o->limit % o->batch != 0);
  int64_t batch = (int64_t)loader->n_put + o->first_batch;
  bool past = batch >= n_batches;
  if (o->training) {
    const laci_training_order *t = &loader->training;
    batch = t->first_step + batch * (t->stride ? t->stride : 1);
  }
  int64_t first = past ? o->limit : batch * o->batch, left = o->limit - first;
  int n = left < o->batch ? (int)left : o->batch;
  *s = (slot){.pixels = pixels, .labels = labels, .first = first, .n = n, .failed_at = n};
  loader->n_put++;
  if (n > 0) pthread_cond_broadcast(&loader->wanted);
  pthread_mutex_unlock(&loader->lock);
  return LAC_OK;
}

lac_status laci_loader_take_batch(laci_loader *loader, laci_batch *batch, lac_error *err) {
  lac_status st = LAC_OK;
  *batch = (laci_batch){0};
  if (loader->n_taken == loader->n_put) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "no buffer is out");
  }
  pthread_mutex_lock(&loader->lock);
  slot *s = slot_of_batch(loader, loader->n_taken);
  while (s->n_done < s->n) {
    if (s->n_given < s->n) load_next_image(loader, &loader->scratch, s);
    else pthread_cond_wait(&loader->filled, &loader->lock);
  }
  loader->n_taken++;
  /* slots that were taken have no images left to assign */
  if (loader->open < loader->n_taken) loader->open = loader->n_taken;
  *batch = (laci_batch){s->first, s->n, s->pixels, s->labels};
  if (s->failed_at < s->n) {
    st = s->error.status;
    if (err) *err = s->error;
  }
  pthread_mutex_unlock(&loader->lock);
  return st;
}
