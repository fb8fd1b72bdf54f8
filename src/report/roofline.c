/* SPDX-License-Identifier: Apache-2.0
 * Draws the diagram of roofline.h. Operations are those of the dense product: operations that a
 * sparse kernel skips count as done. So the limit of a sparse kernel is M / N times the limit of
 * dense multiply-adds. */
#include "report/roofline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lacuna/bench.h"
#include "report/svg.h"
#include "report/text_width.h"

enum {
  WIDTH = 760,
  HEIGHT = 520,
  LEFT = 64,
  RIGHT = 24,
  TOP = 84,
  BOTTOM = 56,
  ACROSS = WIDTH - LEFT - RIGHT,
  DOWN = HEIGHT - TOP - BOTTOM,
  SIZE = 11,
  TITLE_SIZE = 16,
  DECADE = 10
};
static const double least_radius = 2, most_radius = 11;
/* Attributes of texts with a white outline, which makes them readable over circles. */
static const char over[] =
    "font-size=\"11\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\"";
static const char dense_colour[] = "#1f6fb4", sparse_colour[] = "#d9661f", limit_colour[] = "#555";

typedef struct range {
  double low, high; /* both are above 0 */
} range;

typedef struct roofline {
  const lac_bench_result *result;
  const lac_bench_layer *dense; /* [n_dense] the layers, with the times of dense kernels */
  int n_dense;
  double sparse_peak; /* highest operations per second of sparse kernels; 0: no layer is sparse */
  double longest;     /* time of the slowest layer, in seconds */
  range x, y;         /* ranges of the axes: x is operations per byte, y operations per second */
} roofline;

/* ---- The values that are drawn ---- */

static double bytes_of_layer(const lac_bench_layer *layer) {
  return (double)(layer->bytes_read + layer->bytes_written);
}

static bool is_drawn_layer(const lac_bench_layer *layer) {
  return layer->flops > 0 && layer->seconds > 0 && bytes_of_layer(layer) > 0;
}

static double operations_per_byte(const lac_bench_layer *layer) {
  return (double)layer->flops / bytes_of_layer(layer);
}

static double operations_per_second(const lac_bench_layer *layer) {
  return (double)layer->flops / layer->seconds;
}

static void extend_range(range *r, double value) {
  r->low = fmin(r->low, value);
  r->high = fmax(r->high, value);
}

static void extend_axes_by_layers(roofline *roof, const lac_bench_layer *rows, int n) {
  for (int at = 0; at < n; at++) {
    if (!is_drawn_layer(&rows[at])) continue;
    extend_range(&roof->x, operations_per_byte(&rows[at]));
    extend_range(&roof->y, operations_per_second(&rows[at]));
    roof->longest = fmax(roof->longest, rows[at].seconds);
  }
}

/* Returns the measured peak rate in operations per second. It is at least 1: a measurement gives 0
 * if the clock did not advance. */
static double peak_rate_of(const lac_bench_result *r) { return fmax(r->peak_flops, 1); }
static double memory_rate_of(const lac_bench_result *r) { return fmax(r->read_bytes, 1); }

/* Returns a diagram whose axes include all layers, the point where the limits of memory and of
 * multiply-adds meet, and some space around. */
static roofline fit_axes(const lac_bench_result *r) {
  double ridge = peak_rate_of(r) / memory_rate_of(r);
  roofline roof = {.result = r,
                   .dense = r->has_sparse ? r->dense_layers : r->layers,
                   .n_dense = r->has_sparse ? r->n_dense_layers : r->n_layers,
                   .x = {ridge / 4, ridge * 4},
                   .y = {peak_rate_of(r) / DECADE, peak_rate_of(r)}};
  if (r->has_sparse) roof.sparse_peak = peak_rate_of(r) * r->pattern_m / r->pattern_n;
  extend_range(&roof.y, fmax(roof.sparse_peak, peak_rate_of(r)));
  extend_axes_by_layers(&roof, r->layers, r->n_layers);
  extend_axes_by_layers(&roof, roof.dense, roof.n_dense);
  roof.x = (range){roof.x.low / 1.5, roof.x.high * 1.5};
  roof.y = (range){roof.y.low / 1.5, roof.y.high * 1.5};
  return roof;
}

static double pixel_x_of(const roofline *roof, double x) {
  return LEFT + ACROSS * log(x / roof->x.low) / log(roof->x.high / roof->x.low);
}

static double pixel_y_of(const roofline *roof, double y) {
  return TOP + DOWN * log(roof->y.high / y) / log(roof->y.high / roof->y.low);
}

/* ---- Scales ---- */

/* Returns the smallest of 0.1, 0.2, 0.5, 1, 2, 5, 10 ... that is larger than value, which must be >
 * 0. */
static double find_next_tick(double value) {
  double power = pow(DECADE, floor(log10(value * (1 + 1e-9)))), digit = value / power;
  return power * (digit < 2 - 1e-6 ? 2 : digit < 5 - 1e-6 ? 5 : DECADE);
}

static void draw_scales(laci_svg *out, const roofline *roof) {
  laci_svg_append(out, "<g font-size=\"%d\" fill=\"#444\">\n", SIZE);
  for (double at = find_next_tick(roof->x.low); at < roof->x.high; at = find_next_tick(at)) {
    double x = pixel_x_of(roof, at);
    laci_svg_append(out, "<path d=\"M%.1f %dv%d\" stroke=\"#eee\"/>", x, TOP, DOWN);
    laci_svg_append(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>\n", x,
                    TOP + DOWN + 16, at);
  }
  for (double at = find_next_tick(roof->y.low * 1e-9); at < roof->y.high * 1e-9;
       at = find_next_tick(at)) {
    double y = pixel_y_of(roof, 1e9 * at);
    laci_svg_append(out, "<path d=\"M%d %.1fh%d\" stroke=\"#eee\"/>", LEFT, y, ACROSS);
    laci_svg_append(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n", LEFT - 6,
                    y + 4, at);
  }
  laci_svg_append(out,
                  "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
                  "stroke=\"#888\"/>\n",
                  LEFT, TOP, ACROSS, DOWN);
  laci_svg_append(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-weight=\"bold\">",
                  LEFT + ACROSS / 2, TOP + DOWN + 36);
  laci_svg_append_text(out, "operations of the dense product a byte read or written");
  laci_svg_append(out,
                  "</text>\n<text x=\"%d\" y=\"%d\" font-weight=\"bold\">GFLOP/s</text>\n</g>\n", 8,
                  TOP - 8);
}

/* ---- Limits ---- */

static void draw_peak_line(laci_svg *out, const roofline *roof, double peak, const char *text) {
  double y = pixel_y_of(roof, peak),
         from = pixel_x_of(roof, fmax(peak / memory_rate_of(roof->result), roof->x.low));
  bool is_sparse = peak > peak_rate_of(roof->result);
  laci_svg_append(out, "<path d=\"M%.1f %.1fH%d\" stroke=\"%s\" stroke-width=\"1.5\"%s/>", from, y,
                  WIDTH - RIGHT, is_sparse ? sparse_colour : limit_colour,
                  is_sparse ? " stroke-dasharray=\"6 4\"" : "");
  laci_svg_append(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" %s fill=\"%s\">",
                  WIDTH - RIGHT - 6, y - 5, over, is_sparse ? sparse_colour : limit_colour);
  laci_svg_append_text(out, text);
  laci_svg_append(out, "</text>\n");
}

/* Draws the limit by memory: a slanted line up to the highest limit by multiply-adds, or to the
 * frame. */
static void draw_memory_limit(laci_svg *out, const roofline *roof) {
  const lac_bench_result *r = roof->result;
  double top = fmax(peak_rate_of(r), roof->sparse_peak);
  double low = fmax(roof->x.low, roof->y.low / memory_rate_of(r));
  double high = fmin(roof->x.high, top / memory_rate_of(r));
  if (low >= high) return;
  double x0 = pixel_x_of(roof, low), y0 = pixel_y_of(roof, low * memory_rate_of(r));
  double x1 = pixel_x_of(roof, high), y1 = pixel_y_of(roof, high * memory_rate_of(r));
  laci_svg_append(out, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\" stroke-width=\"1.5\"/>", x0,
                  y0, x1, y1, limit_colour);
  double angle = atan2(y1 - y0, x1 - x0) * 180 / acos(-1);
  laci_svg_append(out,
                  "<text transform=\"translate(%.1f %.1f) rotate(%.1f)\" dx=\"12\" dy=\"-5\" "
                  "%s fill=\"%s\">memory: %.3g GB/s</text>\n",
                  x0, y0, angle, over, limit_colour, 1e-9 * memory_rate_of(r));
}

static void draw_limits(laci_svg *out, const roofline *roof) {
  const lac_bench_result *r = roof->result;
  char text[160];
  draw_memory_limit(out, roof);
  (void)snprintf(text, sizeof text, "multiply-adds: %.4g GFLOP/s (%s)", 1e-9 * peak_rate_of(r),
                 r->peak_kernel);
  draw_peak_line(out, roof, peak_rate_of(r), text);
  if (!r->has_sparse) return;
  (void)snprintf(text, sizeof text, "%d:%d: %.4g GFLOP/s, where those by zeros are left out",
                 r->pattern_n, r->pattern_m, 1e-9 * roof->sparse_peak);
  draw_peak_line(out, roof, roof->sparse_peak, text);
}

/* ---- Layers ---- */

static double radius_of_layer(const roofline *roof, const lac_bench_layer *layer) {
  return least_radius + (most_radius - least_radius) * sqrt(layer->seconds / roof->longest);
}

/* Writes the tooltip of a layer: text that a viewer shows next to the mouse pointer. */
static void write_tooltip(laci_svg *out, const lac_bench_layer *layer) {
  laci_svg_append(out, "<title>");
  laci_svg_append_text(out, layer->name);
  laci_svg_append(out, ": ");
  laci_svg_append_text(out, layer->kernel);
  laci_svg_append(out, ", %.4g ms, %.4g GFLOP/s, %.3g operations a byte</title>",
                  1e3 * layer->seconds, 1e-9 * operations_per_second(layer),
                  operations_per_byte(layer));
}

static void draw_layer(laci_svg *out, const roofline *roof, const lac_bench_layer *layer) {
  laci_svg_append(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" ",
                  pixel_x_of(roof, operations_per_byte(layer)),
                  pixel_y_of(roof, operations_per_second(layer)), radius_of_layer(roof, layer));
  if (layer->sparse) laci_svg_append(out, "fill=\"%s\" fill-opacity=\"0.6\">", sparse_colour);
  else laci_svg_append(out, "fill=\"none\" stroke=\"%s\" stroke-width=\"1.3\">", dense_colour);
  write_tooltip(out, layer);
  laci_svg_append(out, "</circle>\n");
}

static const lac_bench_layer *find_dense_layer(const roofline *roof,
                                               const lac_bench_layer *sparse) {
  for (int at = 0; at < roof->n_dense; at++) {
    const lac_bench_layer *layer = &roof->dense[at];
    if (is_drawn_layer(layer) && strcmp(layer->name, sparse->name) == 0) return layer;
  }
  return NULL;
}

static void draw_line_to_dense(laci_svg *out, const roofline *roof, const lac_bench_layer *sparse) {
  const lac_bench_layer *dense = find_dense_layer(roof, sparse);
  if (!dense) return;
  laci_svg_append(out, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#bbb\" stroke-width=\"0.8\"/>\n",
                  pixel_x_of(roof, operations_per_byte(dense)),
                  pixel_y_of(roof, operations_per_second(dense)),
                  pixel_x_of(roof, operations_per_byte(sparse)),
                  pixel_y_of(roof, operations_per_second(sparse)));
}

static void draw_layers(laci_svg *out, const roofline *roof) {
  const lac_bench_result *r = roof->result;
  for (int at = 0; at < r->n_layers; at++) {
    if (r->layers[at].sparse && is_drawn_layer(&r->layers[at]))
      draw_line_to_dense(out, roof, &r->layers[at]);
  }
  for (int at = 0; at < roof->n_dense; at++) {
    if (is_drawn_layer(&roof->dense[at])) draw_layer(out, roof, &roof->dense[at]);
  }
  for (int at = 0; at < r->n_layers; at++) {
    if (r->layers[at].sparse && is_drawn_layer(&r->layers[at]))
      draw_layer(out, roof, &r->layers[at]);
  }
}

/* ---- Texts ---- */

static void draw_legend(laci_svg *out, const roofline *roof) {
  const char *const texts[] = {"a layer by dense kernels", "by a sparse kernel", "area: its time"};
  double x = LEFT + 8, y = TOP - 14;
  for (int at = 0; at < 3; at++) {
    if (at == 1 && !roof->result->has_sparse) continue;
    if (at < 2) {
      laci_svg_append(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" ", x, y - 4);
      if (at) laci_svg_append(out, "fill=\"%s\" fill-opacity=\"0.6\"/>", sparse_colour);
      else laci_svg_append(out, "fill=\"none\" stroke=\"%s\" stroke-width=\"1.3\"/>", dense_colour);
      x += 10;
    }
    laci_svg_append(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" fill=\"#444\">%s</text>\n",
                    x, y, SIZE, texts[at]);
    x += laci_text_width(texts[at], SIZE, false) + 24;
  }
}

static void draw_title(laci_svg *out, const lac_bench_result *r) {
  const char *slash = strrchr(r->model, '/');
  char text[256];
  laci_svg_append(out, "<text x=\"%d\" y=\"24\" font-size=\"%d\" font-weight=\"bold\">", LEFT,
                  TITLE_SIZE);
  laci_svg_append_shortened_text(out, slash ? slash + 1 : r->model, TITLE_SIZE, true, ACROSS);
  laci_svg_append(out, "</text>\n<text x=\"%d\" y=\"44\" font-size=\"%d\" fill=\"#444\">", LEFT,
                  SIZE);
  int n = snprintf(text, sizeof text, "batch %lld, %s, %d thread%s: dense %.4g ms",
                   (long long)r->batch, lac_dtype_name(r->dtype), r->threads,
                   r->threads == 1 ? "" : "s", 1e3 * r->dense.min);
  if (r->has_sparse)
    (void)snprintf(text + n, sizeof text - (size_t)n, ", with %d sparse layer%s %.4g ms",
                   r->n_sparse, r->n_sparse == 1 ? "" : "s", 1e3 * r->sparse.min);
  laci_svg_append_shortened_text(out, text, SIZE, false, ACROSS);
  laci_svg_append(out, "</text>\n");
}

lac_status laci_roofline_svg(const lac_bench_result *result, char **svg, size_t *size_bytes,
                             lac_error *err) {
  laci_svg out = {0};
  roofline roof = fit_axes(result);
  laci_svg_begin(&out, WIDTH, HEIGHT);
  draw_title(&out, result);
  draw_legend(&out, &roof);
  draw_scales(&out, &roof);
  draw_layers(&out, &roof);
  draw_limits(&out, &roof);
  return laci_svg_end(&out, svg, size_bytes, err);
}
