/* SPDX-License-Identifier: Apache-2.0
 * Where the values of sparse layers lie, so that one writes what the next one reads.
 *
 * With many images lanes are images, and a value has the widest border that its readers want. With
 * few, lanes are pixels: planes with a border where a reader's window has more than one pixel,
 * panels where it does not. All values of the same height and width have their rows equally far
 * apart then, so that a layer's results make one long row as what it reads does. */
#include "engine/cpu/lower/pictures.h"
#include "engine/cpu/lower/sparse.h"
#include "base/divide.h"

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static laci_sparse_place *place_of(const laci_net *net, int value) {
  laci_sparse_place *places = net->sparse->places;
  while (places[value].same_as != value) value = places[value].same_as;
  return &places[value];
}

/* ---- Rows ---- */

/** How far apart the rows of all pictures of one height and width are. */
typedef struct rows {
  int64_t h, w, stride;
} rows;

typedef struct row_table {
  rows *list; /* two a layer at most */
  int n;
} row_table;

static int64_t *stride_of(row_table *table, int64_t h, int64_t w) {
  int at = 0;
  while (at < table->n && (table->list[at].h != h || table->list[at].w != w)) at++;
  if (at == table->n) table->list[table->n++] = (rows){h, w, w};
  return &table->list[at].stride;
}

/** Of one phase, without what stands between rows. */
static int64_t phase_stride(const laci_sparse_window *g) {
  const laci_sparse_border b = laci_sparse_border_of(g);
  return laci_ceil_div(b.left + g->w + b.right, g->stride_w);
}

/** Does it read what lies around its input as if that were pixels? */
static bool reads_around(const laci_sparse_layer *layer) {
  return layer->reading == LACI_SPARSE_AS_IT_LIES && layer->kind != LACI_SPARSE_POOL;
}

static void want_rows(row_table *table, const laci_sparse_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const laci_sparse_border b = laci_sparse_border_of(g);
  int64_t *in = stride_of(table, g->h, g->w);
  if (reads_around(layer)) *in = most(*in, g->w + most(b.left, b.right));
  int64_t *out = stride_of(table, g->out_h, g->out_w);
  if (layer->reading == LACI_SPARSE_PHASES) *out = most(*out, phase_stride(g));
}

/* ---- Places ---- */

static void join(laci_net *net, int value, int with) {
  laci_sparse_place *a = place_of(net, value), *b = place_of(net, with);
  b->same_as = a->same_as;
}

static void widen(laci_sparse_border *border, const laci_sparse_border *b) {
  border->top = most(border->top, b->top);
  border->left = most(border->left, b->left);
  border->bottom = most(border->bottom, b->bottom);
  border->right = most(border->right, b->right);
}

/** Quads are made where floats are, and only then reordered for a window that strides. */
static void use(laci_net *net, const laci_sparse_layer *layer) {
  laci_sparse_place *out = place_of(net, layer->output);
  laci_sparse_place *in = place_of(net, layer->input);
  out->used = true;
  out->rows = layer->rows;
  if (layer->bytes) net->sparse->places[layer->input].bytes = true;
  if (layer->bytes && layer->bytes->residual) net->sparse->places[layer->residual].bytes = true;
  if (layer->bytes || layer->reading == LACI_SPARSE_AS_IT_LIES) {
    in->used = true;
    in->rows = layer->rows;
  }
  in->planes = in->planes || layer->kind == LACI_SPARSE_POOL; /* walks along one channel's rows */
  if (!reads_around(layer)) return;
  const laci_sparse_border b = laci_sparse_border_of(&layer->window);
  in->planes = in->planes || !laci_sparse_is_pixel(&layer->window);
  widen(&in->border, &b);
}

/** Panels are written where rows are as far apart as those that are read, or by who walks along
 * results; else it is planes. */
static void check_panels(laci_net *net, row_table *table, const laci_sparse_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  if (layer->reading != LACI_SPARSE_AS_IT_LIES || layer->kind != LACI_SPARSE_PRODUCT) return;
  if (*stride_of(table, g->h, g->w) != *stride_of(table, g->out_h, g->out_w)) {
    place_of(net, layer->output)->planes = true;
  }
}

static void set_layout(laci_net *net, row_table *table, int value) {
  laci_sparse_place *place = place_of(net, value);
  const laci_shape *shape = laci_plan_shape(&net->plan, value);
  const laci_sparse_size size = laci_pictures_size(net, shape, place->rows);
  laci_sparse_border border = place->border;
  border.stride_h = border.stride_w = 1;
  laci_sparse_lanes lanes = LACI_SPARSE_IMAGES;
  if (!laci_pictures_by_images(size.n_images)) {
    lanes = place->planes ? LACI_SPARSE_PLANES : LACI_SPARSE_PANELS;
    border.right = most(border.right, *stride_of(table, size.h, size.w) - size.w);
  }
  place->layout = laci_sparse_layout_of(lanes, size.channels, size.h, size.w, border);
  place->of_quads = laci_sparse_layout_of(
      lanes, laci_sparse_channels(size.channels, LACI_SPARSE_S8), size.h, size.w, border);
}

void laci_sparse_lay_out(laci_net *net) {
  laci_sparse_net *sparse = net->sparse;
  laci_sparse_place *places = sparse->places;
  row_table table = {
      .list = laci_plan_new(&net->plan, (size_t)sparse->n_layers * 2, sizeof *table.list)};
  if (!table.list) return;
  for (int v = 0; v < net->plan.graph->n_values; v++) places[v] = (laci_sparse_place){.same_as = v};
  for (int at = 0; at < sparse->n_layers; at++) {
    const laci_sparse_layer *layer = &sparse->layers[at];
    if (!layer->chosen) continue;
    if (layer->residual >= 0) join(net, layer->output, layer->residual);
    if (layer->kind == LACI_SPARSE_SUM) join(net, layer->output, layer->input);
    want_rows(&table, layer);
  }
  for (int at = 0; at < sparse->n_layers; at++) {
    if (sparse->layers[at].chosen) use(net, &sparse->layers[at]);
  }
  for (int at = 0; at < sparse->n_layers; at++) {
    if (sparse->layers[at].chosen) check_panels(net, &table, &sparse->layers[at]);
  }
  for (int v = 0; v < net->plan.graph->n_values; v++) {
    if (places[v].same_as == v && places[v].used) set_layout(net, &table, v);
  }
}

const laci_sparse_layout *laci_sparse_layout_at(const laci_net *net, int value) {
  return &place_of(net, value)->layout;
}

bool laci_sparse_has_place(const laci_net *net, int value) {
  return net->sparse && net->sparse->places && place_of(net, value)->used;
}

bool laci_sparse_wants_bytes(const laci_net *net, int value) {
  return net->sparse && net->sparse->places && net->sparse->places[value].bytes;
}

laci_pictures laci_sparse_pictures_at(const laci_net *net, int value,
                                      const laci_fake_quantised *bytes) {
  const laci_sparse_place *place = place_of(net, value);
  return (laci_pictures){.layout = bytes ? place->of_quads : place->layout,
                         .rows = place->rows,
                         .bytes = bytes,
                         .as_floats = place->layout};
}

laci_sparse_layout laci_sparse_layer_out(const laci_net *net, const laci_sparse_layer *layer) {
  const laci_fake_quantised *bytes = layer->bytes ? layer->bytes->y : NULL;
  laci_sparse_layout out = laci_sparse_pictures_at(net, layer->output, bytes).layout;
  if (layer->scatter > 1) {
    out.row_stride *= layer->scatter;
    out.pixel_stride *= layer->scatter;
    out.top = out.left = 0;
  }
  return out;
}

laci_sparse_layout laci_sparse_layer_in(const laci_net *net, const laci_sparse_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const int64_t channels = laci_sparse_channels(g->channels_in, g->values);
  const int64_t rows_out = laci_sparse_layout_at(net, layer->output)->row_stride;
  if (layer->reading == LACI_SPARSE_AS_IT_LIES) {
    return laci_sparse_pictures_at(net, layer->input, layer->bytes ? layer->bytes->x : NULL).layout;
  }
  if (layer->reading == LACI_SPARSE_THINNED) {
    const laci_sparse_border between = {.right = rows_out - g->out_w};
    return laci_sparse_layout_of(LACI_SPARSE_PANELS, channels, g->out_h, g->out_w, between);
  }
  if (layer->reading == LACI_SPARSE_PLAINLY) {
    return laci_sparse_layout_contiguous(LACI_SPARSE_PLANES, channels, g->h, g->w);
  }
  laci_sparse_border border = laci_sparse_border_of(g);
  const int64_t less = rows_out - phase_stride(g);
  if (less > 0) border.right += less * g->stride_w;
  return laci_sparse_layout_of(LACI_SPARSE_PLANES, channels, g->h, g->w, border);
}
