/* SPDX-License-Identifier: Apache-2.0
 * Fits synthetic images to the statistics that a network's batch normalizations store. */
#include <string.h>

#include "api/prune/synthetic_in.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "calibrate/images.h"
#include "graph/graph.h"

/* Images of fewer than LEAST_SIDE pixels a side are not fitted: that was not measured. */
enum { BATCH = 32, STEPS = 12, LEAST_NORMS = 4, LEAST_SIDE = 32, SMALL = 64, MOST_FITTED = 128 };
/* Limit for the multiplications of all steps, about a minute on two cores. A step runs the
 * network forward twice and backward once. */
static const double most_work = 2e12;

void laci_synthetic_images_clear(laci_synthetic_images *made) {
  laci_free(made->chosen);
  laci_free(made->fitted);
  laci_free(made->fitted_at);
  *made = (laci_synthetic_images){.chosen = NULL};
}

static int count_batch_norms(const laci_graph *graph) {
  int n = 0;
  for (int id = 0; id < graph->n_nodes; id++)
    n += strcmp(graph->nodes[id].type, "BatchNormalization") == 0;
  return n;
}

static int shorter_side(const laci_synthetic_input *input) {
  return input->height < input->width ? input->height : input->width;
}

bool laci_synthetic_is_small(const laci_synthetic_input *input) {
  return shorter_side(input) < SMALL;
}

int64_t laci_synthetic_count_fitted(const laci_graph *graph, const laci_synthetic_options *options,
                                    const laci_synthetic_input *input) {
  const int least = options->fits_small ? LEAST_SIDE : SMALL;
  const double each = 3 * STEPS * laci_synthetic_multiplications(graph);
  if (shorter_side(input) < least || input->integers || count_batch_norms(graph) < LEAST_NORMS ||
      !(each > 0))
    return 0;
  const int64_t n = laci_clamp_to_int64(most_work / each);
  return (n < MOST_FITTED ? n : MOST_FITTED) / BATCH * BATCH;
}

typedef struct fitting {
  laci_samples *samples;
  laci_fit_images_options how;
  float *images;
} fitting;

static lac_status draw_images(const laci_graph *graph, const laci_synthetic_options *options,
                              int64_t n, const laci_synthetic_input *input, fitting *f,
                              lac_error *err) {
  lac_status st = laci_synthetic_samples_open(graph, options, n, input, &f->samples, err);
  if (st) return st;
  f->how.shape = laci_samples_type(f->samples, 0)->shape;
  f->images = laci_alloc((size_t)(f->how.n * laci_shape_count(&f->how.shape)), sizeof *f->images);
  if (!f->images) return laci_fail_memory(err, "synthetic images");
  return laci_samples_read_batch(f->samples, 0, f->how.n, &(void *){f->images}, err);
}

/* Stores the images as 8-bit pixels: undoes the normalization of each channel, then rounds and
 * clamps to 0 .. 255. */
static lac_status store_as_bytes(const fitting *f, laci_synthetic_input *input,
                                 laci_synthetic_images *made, lac_error *err) {
  const size_t plane = (size_t)input->height * (size_t)input->width;
  const size_t channels = (size_t)input->channels, n = (size_t)f->how.n;
  made->fitted = laci_alloc(n * channels * plane, 1);
  made->fitted_at = laci_alloc(n, sizeof *made->fitted_at);
  if (!made->fitted || !made->fitted_at) return laci_fail_memory(err, "synthetic images");
  for (size_t k = 0; k < n; k++) {
    made->fitted_at[k] = laci_samples_data_index(f->samples, (int64_t)k);
    for (size_t c = 0; c < channels; c++) {
      for (size_t p = 0; p < plane; p++) {
        const size_t at = input->channels_last ? p * channels + c : c * plane + p;
        const float pixel = f->images[k * channels * plane + at] * input->std[c] + input->mean[c];
        made->fitted[(k * channels + c) * plane + p] =
            (uint8_t)(pixel <= 0     ? 0
                      : pixel >= 255 ? 255
                                     : (int)(pixel + 0.5F));
      }
    }
  }
  input->fitted = made->fitted;
  input->fitted_at = made->fitted_at;
  input->n_fitted = (int64_t)n;
  return LAC_OK;
}

lac_status laci_synthetic_fit_images(const laci_graph *graph, const laci_synthetic_options *options,
                                     int64_t n, laci_synthetic_input *input,
                                     laci_synthetic_images *made, lac_error *err) {
  const int64_t most = laci_synthetic_count_fitted(graph, options, input);
  fitting f = {.how = {.channels_last = input->channels_last,
                       .n = (most < n ? most : n) / BATCH * BATCH,
                       .batch = BATCH,
                       .steps = STEPS,
                       .pool = options->pool,
                       .budget = options->budget}};
  laci_fitted_images done;
  lac_error why = {0};
  if (f.how.n < 1) return LAC_OK;
  for (int c = 0; c < input->channels; c++) {
    f.how.low[c] = -input->mean[c] / input->std[c];
    f.how.high[c] = (255 - input->mean[c]) / input->std[c];
  }
  lac_status st = draw_images(graph, options, n, input, &f, err);
  if (!st) {
    st = laci_fit_images(graph, &f.how, f.images, &done, &why);
    if (st && err) *err = why;
  }
  if (!st && done.n_norms >= LEAST_NORMS) {
    const bool nearer = done.held_after < done.held_before;
    laci_log(LAC_LOG_INFO,
             "synthetic images: %lld are fitted to statistics of the network by %d steps: %.2g "
             "from those stored (before: %.2g), and %.2g (before: %.2g) where it was not asked%s",
             (long long)f.how.n, f.how.steps, done.after, done.before, done.held_after,
             done.held_before, nearer ? "" : ": left as they were");
    if (nearer) st = store_as_bytes(&f, input, made, err);
  }
  if (st) laci_log(LAC_LOG_DEBUG, "synthetic images are not fitted: %s", why.text);
  laci_samples_close(f.samples);
  laci_free(f.images);
  return laci_synthetic_is_network_failure(st) || st == LAC_MEMORY_LIMIT ? LAC_OK : st;
}
