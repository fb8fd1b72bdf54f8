/* SPDX-License-Identifier: Apache-2.0
 * The drawing of curve.h: a frame, ticks at round numbers and a polyline a series for each panel.
 */
#include "report/curve.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum {
  WIDTH = 720,
  HEIGHT = 560,
  LEFT = 64,
  RIGHT = 16,
  TOP = 44,
  PANEL = 210,
  GAP = 44,
  PIXELS = WIDTH - LEFT - RIGHT, /* across, of a panel */
  TICKS = 5,
};

static const char *const colours[LACI_CURVE_MAX_SERIES] = {"#1f6fb4", "#d9661f", "#2e8b57",
                                                           "#8a4fa3"};

/** Text that grows; after a failure it stays as it is. */
typedef struct page {
  char *text;
  size_t n, room;
  bool failed;
} page;

static void put(page *p, const char *format, ...) LAC_PRINTF(2, 3);
static void put(page *p, const char *format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (length < 0 || (size_t)length >= sizeof line) length = (int)sizeof line - 1;
  while (!p->failed && p->n + (size_t)length + 1 > p->room) {
    size_t room = p->room ? 2 * p->room : 1 << 14;
    char *grown = laci_resize(p->text, p->n, room, 1);
    p->failed = !grown;
    if (grown) {
      p->text = grown;
      p->room = room;
    }
  }
  if (p->failed) return;
  memcpy(p->text + p->n, line, (size_t)length + 1);
  p->n += (size_t)length;
}

/** Text inside an element; control characters have no place in XML. */
static void put_text(page *p, const char *text) {
  for (; *text; text++) {
    switch (*text) {
      case '<': put(p, "&lt;"); break;
      case '>': put(p, "&gt;"); break;
      case '&': put(p, "&amp;"); break;
      default:
        if ((unsigned char)*text >= ' ') put(p, "%c", *text);
    }
  }
}

/* ---- Scales ---- */

typedef struct range {
  double low, high;
} range;

typedef struct panel {
  const laci_curve_series *series;
  int n_series;
  const char *what;
  range steps, values;
  double top;  /* y of the frame */
  double tick; /* of the values: the frame begins and ends at one */
} panel;

static void extend(range *r, double x) {
  if (x < r->low) r->low = x;
  if (x > r->high) r->high = x;
}

/** Round numbers are 1, 2 and 5 times powers of ten. */
static double tick_step(range r) {
  double raw = (r.high - r.low) / TICKS, power = pow(10, floor(log10(raw)));
  double digit = raw / power;
  return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static void find_ranges(panel *p) {
  p->values = (range){INFINITY, -INFINITY};
  for (int s = 0; s < p->n_series; s++) {
    for (size_t k = 0; k < p->series[s].n; k++) {
      const laci_curve_point *point = &p->series[s].points[k];
      if (isfinite(point->value)) extend(&p->values, point->value);
    }
  }
  if (!(p->values.low <= p->values.high)) p->values = (range){0, 1};
  double least = fmax(fabs(p->values.high), fabs(p->values.low)) * 1e-6 + 1e-9;
  if (p->values.high - p->values.low < least) {
    p->values.low -= least;
    p->values.high += least;
  }
  p->tick = tick_step(p->values);
  p->values.low = floor(p->values.low / p->tick) * p->tick;
  p->values.high = ceil(p->values.high / p->tick) * p->tick;
}

static double x_of(const panel *p, double step) {
  return LEFT + PIXELS * (step - p->steps.low) / (p->steps.high - p->steps.low);
}

static double y_of(const panel *p, double value) {
  return p->top + PANEL * (p->values.high - value) / (p->values.high - p->values.low);
}

/* ---- Drawing ---- */

static void draw_frame(page *out, const panel *p, bool with_steps) {
  put(out, "<g font-size=\"11\" fill=\"#444\">\n");
  int n = (int)lround((p->values.high - p->values.low) / p->tick);
  for (int k = 0; k <= n; k++) {
    double value = p->values.low + k * p->tick, y = y_of(p, value);
    if (fabs(value) < p->tick / 1e6) value = 0;
    put(out, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>", LEFT, y, WIDTH - RIGHT);
    put(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n", LEFT - 6, y + 4, value);
  }
  double step = tick_step(p->steps);
  for (double at = ceil(p->steps.low / step) * step; at <= p->steps.high; at += step) {
    put(out, "<path d=\"M%.1f %.1fv%d\" stroke=\"#eee\"/>", x_of(p, at), p->top, PANEL);
    if (!with_steps) continue;
    put(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.10g</text>\n", x_of(p, at),
        p->top + PANEL + 16, at);
  }
  put(out, "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n",
      LEFT, p->top, PIXELS, PANEL);
  put(out, "<text x=\"%d\" y=\"%.1f\">%s</text>\n</g>\n", LEFT, p->top - 6, p->what);
}

static void draw_point(page *out, const panel *p, const laci_curve_point *point, bool *is_open) {
  put(out, "%c%.1f %.1f", *is_open ? 'L' : 'M', x_of(p, (double)point->step),
      y_of(p, point->value));
  *is_open = true;
}

/** The points of one column of pixels, from `at` on: the first after them, and the extremes. */
static size_t take_column(const panel *p, const laci_curve_series *s, size_t at, size_t *low,
                          size_t *high) {
  double column = floor(x_of(p, (double)s->points[at].step));
  *low = *high = at;
  for (at++; at < s->n && floor(x_of(p, (double)s->points[at].step)) <= column; at++) {
    if (!isfinite(s->points[at].value)) break;
    if (s->points[at].value < s->points[*low].value) *low = at;
    if (s->points[at].value > s->points[*high].value) *high = at;
  }
  return at;
}

static void draw_series(page *out, const panel *p, int number) {
  const laci_curve_series *s = &p->series[number];
  bool is_open = false;
  put(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" stroke-linecap=\"round\" d=\"",
      colours[number]);
  for (size_t at = 0; at < s->n;) {
    size_t low, high;
    if (!isfinite(s->points[at].value)) {
      is_open = false;
      at++;
      continue;
    }
    at = take_column(p, s, at, &low, &high);
    draw_point(out, p, &s->points[low < high ? low : high], &is_open);
    if (low != high) draw_point(out, p, &s->points[low < high ? high : low], &is_open);
    else if (s->n == 1) put(out, "h0.1"); /* a dot */
  }
  put(out, "\"/>\n");
}

/** Above the frame, where no line runs. */
static void draw_labels(page *out, const panel *p) {
  put(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" font-size=\"11\">", WIDTH - RIGHT,
      p->top - 6);
  for (int k = 0; k < p->n_series; k++) {
    put(out, "<tspan dx=\"%d\" fill=\"%s\">", k ? 12 : 0, colours[k]);
    put_text(out, p->series[k].label);
    put(out, "</tspan>");
  }
  put(out, "</text>\n");
}

static void draw_panel(page *out, panel *p, bool with_steps) {
  find_ranges(p);
  draw_frame(out, p, with_steps);
  draw_labels(out, p);
  for (int k = 0; k < p->n_series; k++) draw_series(out, p, k);
}

static range steps_of(const laci_curve *c) {
  range r = {INFINITY, -INFINITY};
  for (int k = 0; k < c->n_loss + c->n_accuracy; k++) {
    const laci_curve_series *s = k < c->n_loss ? &c->loss[k] : &c->accuracy[k - c->n_loss];
    if (s->n == 0) continue;
    extend(&r, (double)s->points[0].step);
    extend(&r, (double)s->points[s->n - 1].step);
  }
  if (!(r.low <= r.high)) r = (range){0, 1};
  if (r.high - r.low < 1) r.high = r.low + fmax(1, fabs(r.low) * 1e-9); /* above its rounding */
  return r;
}

lac_status laci_curve_svg(const laci_curve *curve, char **svg, size_t *size_bytes, lac_error *err) {
  page out = {0};
  range steps = steps_of(curve);
  panel loss = {curve->loss, curve->n_loss, "loss", steps, {0, 1}, TOP, 1};
  panel accuracy = {
      curve->accuracy, curve->n_accuracy, "accuracy, %", steps, {0, 1}, TOP + PANEL + GAP, 1};
  *svg = NULL;
  put(&out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\""
      " font-family=\"DejaVu Sans, sans-serif\">\n",
      WIDTH, HEIGHT);
  put(&out, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
  put(&out, "<text x=\"%d\" y=\"20\" font-size=\"14\">", LEFT);
  put_text(&out, curve->title);
  put(&out, "</text>\n");
  draw_panel(&out, &loss, false);
  draw_panel(&out, &accuracy, true);
  put(&out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-size=\"11\">step</text>\n</svg>\n",
      LEFT + PIXELS / 2, HEIGHT - 8);
  if (out.failed) {
    laci_free(out.text);
    return laci_fail_memory(err, "a drawing");
  }
  *svg = out.text;
  *size_bytes = out.n;
  return LAC_OK;
}
