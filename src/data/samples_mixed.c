/* SPDX-License-Identifier: Apache-2.0
 * Joins samples of the user's data with drawn (synthetic) samples. The drawn ones come first, then
 * the data's samples that are worked on, repeated so that they weigh more. Those that are held back
 * follow, and last those for judging. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/min.h"
#include "data/samples_in.h"

/* About one in SHARE of the samples that are worked on is a sample of the data; the others are
 * drawn. */
enum { SHARE = 3 };

typedef struct mixed_samples {
  laci_samples *data, *drawn;
  int64_t n_drawn;  /* number of drawn samples that are used, the first ones */
  int64_t n_worked; /* number of samples of the data that are worked on; they are at places n_drawn
                       .. */
  int64_t repeats;
} mixed_samples;

/* Neighbouring samples of one source: n samples of `from`, from index `first` on. */
typedef struct run {
  laci_samples *from;
  int64_t first, n;
} run;

static run find_run_of_place(const mixed_samples *m, int64_t first) {
  if (first < m->n_drawn) return (run){m->drawn, first, m->n_drawn - first};
  const int64_t place = first - m->n_drawn;
  if (place >= m->n_worked * m->repeats)
    return (run){m->data, place - m->n_worked * (m->repeats - 1), INT64_MAX};
  return (run){m->data, place % m->n_worked, m->n_worked - place % m->n_worked};
}

static size_t sample_bytes(const laci_samples *s, int input) {
  return (size_t)laci_shape_count(&s->types[input].shape) * lac_dtype_size(s->types[input].dtype);
}

static lac_status read_batch(laci_samples *s, int64_t first, int64_t n, void *const *to,
                             lac_error *err) {
  const mixed_samples *m = s->own;
  void **at = laci_alloc((size_t)s->options.n_inputs + 1, sizeof *at);
  lac_status st = at ? LAC_OK : laci_fail_memory(err, s->path);
  for (int64_t done = 0; done < n && !st;) {
    run r = find_run_of_place(m, first + done);
    r.n = laci_min(r.n, n - done);
    for (int k = 0; k < s->options.n_inputs; k++)
      at[k] = (char *)to[k] + (size_t)done * sample_bytes(s, k);
    st = laci_samples_read_batch(r.from, r.first, r.n, at, err);
    done += r.n;
  }
  laci_free(at);
  return st;
}

static void close_mixed(laci_samples *s) {
  mixed_samples *m = s->own;
  if (!m) return;
  laci_samples_close(m->data);
  laci_samples_close(m->drawn);
  laci_free(m);
}

static const laci_samples_kind laci_samples_of_both = {
    .open = NULL, .label = NULL, .read = read_batch, .close = close_mixed, .noun = NULL};

static lac_status check_same_inputs(const laci_samples *data, const laci_samples *drawn,
                                    lac_error *err) {
  char found[128], wanted[128];
  for (int k = 0; k < data->options.n_inputs; k++) {
    const laci_type *a = &data->types[k], *b = &drawn->types[k];
    if (data->n_shape_sets > 1 || data->axes[k] != 0 || data->constants[k]) {
      return laci_fail(err, LAC_UNSUPPORTED,
                       "%s: drawn samples next to it, wanted samples of one size along the first "
                       "axis of every input",
                       data->path);
    }
    if (a->dtype == b->dtype && laci_shape_equal(&a->shape, &b->shape)) continue;
    return laci_fail(err, LAC_BAD_SHAPE, "%s: samples are %s %s, and drawn ones are %s %s",
                     data->path, lac_dtype_name(a->dtype),
                     laci_shape_text(&a->shape, found, sizeof found), lac_dtype_name(b->dtype),
                     laci_shape_text(&b->shape, wanted, sizeof wanted));
  }
  if (data->held_back > 0) return LAC_OK;
  return laci_fail(err, LAC_BAD_VALUE,
                   "%s: %lld sample%s, wanted 2 or more, of which one judges the drawn ones next "
                   "to it",
                   data->path, (long long)data->count, data->count == 1 ? "" : "s");
}

/* Sets the numbers of samples and of repeats. Drawn samples are left out until all places form
 * whole batches of as many samples as are held back. */
static void choose_counts_and_repeats(mixed_samples *m) {
  const int64_t held = m->data->held_back, wanted = m->drawn->count / (SHARE - 1);
  m->n_worked = m->data->count - held;
  m->repeats = wanted > m->n_worked ? wanted / m->n_worked : 1;
  const int64_t places = m->drawn->count + m->repeats * m->n_worked;
  m->n_drawn = m->drawn->count - laci_min(places % held, m->drawn->count);
}

/* Sets the labels: the classes of the data's samples, and -1 for drawn ones, which have no
 * class. */
static lac_status set_mixed_labels(laci_samples *s, const mixed_samples *m, lac_error *err) {
  if (!m->data->labels) return LAC_OK;
  s->labels = laci_alloc((size_t)(s->count + s->judging), sizeof *s->labels);
  if (!s->labels) return laci_fail_memory(err, s->path);
  for (int64_t place = 0; place < s->count + s->judging; place++) {
    const run r = find_run_of_place(m, place);
    s->labels[place] = r.from == m->data ? m->data->labels[r.first] : -1;
  }
  return LAC_OK;
}

static lac_status write_description(laci_samples *s, const mixed_samples *m, lac_error *err) {
  char text[700];
  (void)snprintf(text, sizeof text, "%.500s, and %lld synthetic ones", m->data->text,
                 (long long)m->n_drawn);
  s->text = laci_arena_text(&s->arena, text);
  s->path = laci_arena_text(&s->arena, m->data->path);
  return s->text && s->path ? LAC_OK : laci_fail_memory(err, m->data->path);
}

/* Sets all fields of the joint samples s except `own`. */
static lac_status set_mixed_fields(laci_samples *s, const mixed_samples *m, lac_error *err) {
  const laci_samples *data = m->data;
  const size_t n = (size_t)data->options.n_inputs;
  s->options.n_inputs = data->options.n_inputs;
  s->is_single = data->is_single;
  s->n_shape_sets = 1;
  s->available = data->available;
  s->taken = data->taken;
  s->count = m->n_drawn + m->repeats * m->n_worked + data->held_back;
  s->held_back = data->held_back;
  s->judging = data->judging;
  s->types = laci_alloc(n + 1, sizeof *s->types);
  s->axes = laci_alloc(n + 1, sizeof *s->axes);
  s->constants = laci_alloc(n + 1, sizeof *s->constants);
  if (!s->types || !s->axes || !s->constants) return laci_fail_memory(err, data->path);
  memcpy(s->types, data->types, n * sizeof *s->types);
  lac_status st = write_description(s, m, err);
  return st ? st : set_mixed_labels(s, m, err);
}

lac_status laci_samples_join_drawn(laci_samples **data, laci_samples **drawn, lac_error *err) {
  lac_status st = check_same_inputs(*data, *drawn, err);
  if (st) return st;
  laci_samples *s = laci_alloc(1, sizeof *s);
  mixed_samples *m = laci_alloc(1, sizeof *m);
  st = s && m ? LAC_OK : laci_fail_memory(err, (*data)->path);
  if (!st) {
    s->kind = &laci_samples_of_both;
    *m = (mixed_samples){.data = *data, .drawn = *drawn};
    choose_counts_and_repeats(m);
    st = set_mixed_fields(s, m, err);
  }
  if (st) {
    if (s && s->kind) laci_samples_close(s);
    else laci_free(s);
    laci_free(m);
    return st;
  }
  s->own = m;
  *data = s;
  *drawn = NULL;
  return LAC_OK;
}

int64_t laci_samples_count_drawn(const laci_samples *s) {
  const mixed_samples *m = s->own;
  return s->kind == &laci_samples_of_both ? m->n_drawn : 0;
}

laci_samples *laci_samples_of_data(const laci_samples *s) {
  return ((const mixed_samples *)s->own)->data;
}

void laci_samples_drop_drawn(laci_samples **samples) {
  mixed_samples *m = (*samples)->own;
  laci_samples *data = m->data;
  m->data = NULL;
  laci_samples_close(*samples);
  *samples = data;
}
