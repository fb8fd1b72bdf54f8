/* SPDX-License-Identifier: Apache-2.0
 * Draws the curves of curve.h. Each panel has a frame, ticks at round numbers, and a polyline for
 * each series. Texts do not overlap: values next to the frame are moved apart, and legends and long
 * titles are laid out with the widths of the widest font (text_width.h). */
#include "report/curve.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "report/svg.h"
#include "report/text_width.h"

enum {
  WIDTH = 760,
  LEFT = 64,
  RIGHT = 96,  /* width of the right margin, for the last values of the series */
  START = 72,  /* width of a margin inside the frame for the first values of the series, if they are
                  printed */
  HEAD = 62,   /* height of the title and the line about the data, above the first panel's legend */
  LEGEND = 16, /* height of one line of the legend */
  PANEL = 210,
  LARGE = 300, /* height of a panel if the drawing has only one */
  GAP = 26,
  FOOT = 46,
  PIXELS = WIDTH - LEFT - RIGHT, /* width of a panel in pixels */
  TICKS = 5,
  SIZE = 11, /* font size */
  TITLE_SIZE = 16,
  MOST_MARKS = 60
};

static const char *const colours[LACI_CURVE_MAX_SERIES] = {"#1f6fb4", "#d9661f", "#2e8b57",
                                                           "#8a4fa3"};
static const char dense_colour[] = "#555555";

/* ---- Scales ---- */

typedef struct range {
  double low, high;
} range;

typedef struct panel {
  const laci_curve *curve;
  const laci_curve_series *series;
  int n_series;
  const char *what, *unit;
  double dense; /* accuracy of the dense network; 0: this panel does not draw it */
  bool has_starts;
  double height;
  range steps, values;
  double top;  /* y coordinate of the frame's upper edge */
  double tick; /* distance between ticks; the frame begins and ends at a tick */
} panel;

static void extend_range(range *r, double x) {
  if (x < r->low) r->low = x;
  if (x > r->high) r->high = x;
}

/** Returns a round distance between ticks for a range of values: 1, 2 or 5 times a power of ten. */
static double find_tick_distance(range r) {
  double raw = (r.high - r.low) / TICKS, power = pow(10, floor(log10(raw)));
  double digit = raw / power;
  return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static void compute_axis_ranges(panel *p) {
  p->values = (range){INFINITY, -INFINITY};
  for (int s = 0; s < p->n_series; s++) {
    for (size_t k = 0; k < p->series[s].n; k++) {
      const laci_curve_point *point = &p->series[s].points[k];
      if (isfinite(point->value)) extend_range(&p->values, point->value);
    }
  }
  if (p->dense > 0) extend_range(&p->values, p->dense);
  if (!(p->values.low <= p->values.high)) p->values = (range){0, 1};
  double least = fmax(fabs(p->values.high), fabs(p->values.low)) * 1e-6 + 1e-9;
  if (p->values.high - p->values.low < least) {
    p->values.low -= least;
    p->values.high += least;
  }
  p->tick = find_tick_distance(p->values);
  p->values.low = floor(p->values.low / p->tick) * p->tick;
  p->values.high = ceil(p->values.high / p->tick) * p->tick;
}

static double pixel_x_of(const panel *p, double step) {
  double from = LEFT + (p->has_starts ? START : 0), pixels = LEFT + PIXELS - from;
  return from + pixels * (step - p->steps.low) / (p->steps.high - p->steps.low);
}

static double pixel_y_of(const panel *p, double value) {
  return p->top + p->height * (p->values.high - value) / (p->values.high - p->values.low);
}

/* ---- Drawing ---- */

static void draw_value_axis(laci_svg *out, const panel *p) {
  int n = (int)lround((p->values.high - p->values.low) / p->tick);
  for (int k = 0; k <= n; k++) {
    double value = p->values.low + k * p->tick, y = pixel_y_of(p, value);
    if (fabs(value) < p->tick / 1e6) value = 0;
    laci_svg_append(out, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>", LEFT, y, WIDTH - RIGHT);
    laci_svg_append(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n", LEFT - 6,
                    y + 4, value);
  }
}

/** Draws the names of the horizontal axis, epoch and step, to the right of its last number. */
static void draw_axis_names(laci_svg *out, const panel *p, double y) {
  char last[32];
  bool has_epochs = p->curve->steps_per_epoch > 0;
  (void)snprintf(last, sizeof last, "%.10g", p->steps.high);
  double x = WIDTH - RIGHT + laci_text_width(last, SIZE, false) / 2 + 8;
  laci_svg_append(out, "<text x=\"%.1f\" y=\"%.1f\" font-weight=\"bold\">%s</text>\n", x, y,
                  has_epochs       ? "epoch"
                  : p->curve->axis ? p->curve->axis
                                   : "step");
  if (!has_epochs) return;
  laci_svg_append(out, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#888\">step</text>\n", x, y + 15);
}

/** Draws the horizontal axis: in epochs if these are known, with the step of each tick. */
static void draw_step_axis(laci_svg *out, const panel *p, bool with_numbers) {
  double unit = p->curve->steps_per_epoch > 0 ? p->curve->steps_per_epoch : 1;
  range units = {p->steps.low / unit, p->steps.high / unit};
  double tick = find_tick_distance(units), y = p->top + p->height + 16;
  bool has_epochs = p->curve->steps_per_epoch > 0;
  if (!has_epochs) tick = fmax(tick, 1);
  for (double k = ceil(units.low / tick - 1e-9); k * tick <= units.high * (1 + 1e-9); k++) {
    double x = pixel_x_of(p, k * tick * unit);
    laci_svg_append(out, "<path d=\"M%.1f %.1fv%.0f\" stroke=\"#eee\"/>", x, p->top, p->height);
    if (!with_numbers) continue;
    laci_svg_append(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.10g</text>\n", x, y,
                    k == 0 ? 0 : k * tick);
    if (!has_epochs) continue;
    laci_svg_append(
        out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"#888\">%.10g</text>\n", x,
        y + 15, fmax(round(k * tick * unit), 0));
  }
  if (with_numbers) draw_axis_names(out, p, y);
}

static void draw_frame(laci_svg *out, const panel *p, bool with_steps) {
  laci_svg_append(out, "<g font-size=\"%d\" fill=\"#444\">\n", SIZE);
  draw_value_axis(out, p);
  draw_step_axis(out, p, with_steps);
  laci_svg_append(
      out,
      "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.0f\" fill=\"none\" stroke=\"#888\"/>\n",
      LEFT, p->top, PIXELS, p->height);
  if (p->dense > 0) {
    laci_svg_append(
        out,
        "<path d=\"M%d %.1fH%d\" stroke=\"%s\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>\n",
        LEFT, pixel_y_of(p, p->dense), WIDTH - RIGHT, dense_colour);
  }
  laci_svg_append(out, "</g>\n");
}

static void append_path_point(laci_svg *out, const panel *p, const laci_curve_point *point,
                              bool *is_open) {
  laci_svg_append(out, "%c%.1f %.1f", *is_open ? 'L' : 'M', pixel_x_of(p, (double)point->step),
                  pixel_y_of(p, point->value));
  *is_open = true;
}

/** Points of a series that fall into one column of pixels, beginning with point `at`: finds the
 * indices of the lowest and the highest. Returns the index of the first point after them. */
static size_t find_column_extremes(const panel *p, const laci_curve_series *s, size_t at,
                                   size_t *low, size_t *high) {
  double column = floor(pixel_x_of(p, (double)s->points[at].step));
  *low = *high = at;
  for (at++; at < s->n && floor(pixel_x_of(p, (double)s->points[at].step)) <= column; at++) {
    if (!isfinite(s->points[at].value)) break;
    if (s->points[at].value < s->points[*low].value) *low = at;
    if (s->points[at].value > s->points[*high].value) *high = at;
  }
  return at;
}

static void draw_series(laci_svg *out, const panel *p, int number) {
  const laci_curve_series *s = &p->series[number];
  bool is_open = false;
  laci_svg_append(
      out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" stroke-linecap=\"round\" d=\"",
      colours[number]);
  for (size_t at = 0; at < s->n;) {
    size_t low, high;
    if (!isfinite(s->points[at].value)) {
      is_open = false;
      at++;
      continue;
    }
    at = find_column_extremes(p, s, at, &low, &high);
    append_path_point(out, p, &s->points[low < high ? low : high], &is_open);
    if (low != high) append_path_point(out, p, &s->points[low < high ? high : low], &is_open);
    else if (s->n == 1) laci_svg_append(out, "h0.1"); /* a single point is drawn as a dot */
  }
  laci_svg_append(out, "\"/>\n");
}

/** Draws how much pruning reduced the accuracy: a vertical line at the first step, from the dense
 * network's accuracy down. */
static void draw_accuracy_drop(laci_svg *out, const panel *p) {
  double least = p->dense;
  for (int k = 0; k < p->n_series; k++) {
    const laci_curve_series *s = &p->series[k];
    if (s->n > 0 && isfinite(s->points[0].value)) least = fmin(least, s->points[0].value);
  }
  if (!p->has_starts || !(least < p->dense)) return;
  double x = pixel_x_of(p, p->steps.low);
  laci_svg_append(out, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\" stroke-dasharray=\"2 3\"/>", x,
                  pixel_y_of(p, p->dense), pixel_y_of(p, least), dense_colour);
  laci_svg_append(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.8\" fill=\"%s\"/>\n", x,
                  pixel_y_of(p, p->dense), dense_colour);
}

static void draw_point_marks(laci_svg *out, const panel *p, int number) {
  const laci_curve_series *s = &p->series[number];
  if (!s->is_marked || s->n > MOST_MARKS) return;
  for (size_t at = 0; at < s->n; at++) {
    if (!isfinite(s->points[at].value)) continue;
    laci_svg_append(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.8\" fill=\"%s\"/>\n",
                    pixel_x_of(p, (double)s->points[at].step), pixel_y_of(p, s->points[at].value),
                    colours[number]);
  }
}

/* ---- Texts ---- */

/** Draws the legend: for each series a short line in its style, and its name. It continues on a new
 * line if one is full. Returns the number of lines. out NULL: nothing is drawn. */
static int draw_legend(laci_svg *out, const panel *p, double y) {
  double x = LEFT + laci_text_width(p->what, SIZE, true) + 24;
  const double from = x;
  int n_lines = 1, n = p->n_series + (p->dense > 0);
  for (int k = 0; k < n; k++) {
    bool is_dense = k == p->n_series;
    const char *label = is_dense ? "dense" : p->series[k].label;
    double width = fmin(laci_text_width(label, SIZE, false), WIDTH - 40 - from);
    if (x > from && x + 24 + width > WIDTH - 8) {
      x = from;
      n_lines++;
    }
    double line_y = y + (n_lines - 1) * LEGEND;
    if (out) {
      laci_svg_append(out, "<path d=\"M%.1f %.1fh18\" stroke=\"%s\" stroke-width=\"2\"%s/>", x,
                      line_y - 4, is_dense ? dense_colour : colours[k],
                      is_dense ? " stroke-dasharray=\"6 4\"" : "");
      laci_svg_append(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" fill=\"%s\">", x + 24,
                      line_y, SIZE, is_dense ? dense_colour : colours[k]);
      laci_svg_append_shortened_text(out, label, SIZE, false, width + 0.01);
      laci_svg_append(out, "</text>\n");
    }
    x += 24 + width + 18;
  }
  if (out) {
    laci_svg_append(
        out,
        "<text x=\"%d\" y=\"%.1f\" font-size=\"%d\" font-weight=\"bold\" fill=\"#444\">%s</text>\n",
        LEFT, y, SIZE, p->what);
  }
  return n_lines;
}

/** The text of a value that is printed next to the curve, at its height or near it. */
typedef struct value_text {
  double value, y;
  const char *colour, *name;
} value_text;

/** Sorts n texts by height. Moves them apart so that they do not overlap, but stay within the
 * frame. */
static void move_texts_apart(const panel *p, value_text *texts, int n) {
  const double apart = SIZE + 3;
  for (int k = 1; k < n; k++) {
    for (int at = k; at > 0 && texts[at].y < texts[at - 1].y; at--) {
      value_text other = texts[at];
      texts[at] = texts[at - 1];
      texts[at - 1] = other;
    }
  }
  for (int k = 1; k < n; k++) texts[k].y = fmax(texts[k].y, texts[k - 1].y + apart);
  double floor_y = p->top + p->height - 2;
  for (int k = n - 1; k >= 0 && texts[k].y > floor_y; k--) {
    texts[k].y = floor_y;
    floor_y -= apart;
  }
}

/** Makes the texts for the first (or last) finite value of each series, and sets their positions.
 * Returns the number of texts. */
static int list_end_values(const panel *p, bool are_last, value_text *texts) {
  int n = 0;
  for (int k = 0; k < p->n_series; k++) {
    const laci_curve_series *s = &p->series[k];
    for (size_t step = 0; step < s->n; step++) {
      double value = s->points[are_last ? s->n - 1 - step : step].value;
      if (!isfinite(value)) continue;
      texts[n++] = (value_text){value, pixel_y_of(p, value) + 4, colours[k], ""};
      break;
    }
  }
  if (are_last && p->dense > 0)
    texts[n++] = (value_text){p->dense, pixel_y_of(p, p->dense) + 4, dense_colour, "dense "};
  move_texts_apart(p, texts, n);
  return n;
}

static void draw_end_values(laci_svg *out, const panel *p, bool are_last) {
  value_text texts[LACI_CURVE_MAX_SERIES + 1];
  int n = list_end_values(p, are_last, texts);
  double x = are_last ? WIDTH - RIGHT + 8 : pixel_x_of(p, p->steps.low) - 8;
  for (int k = 0; k < n; k++) {
    laci_svg_append(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" fill=\"%s\"%s>%s", x,
                    texts[k].y, SIZE, texts[k].colour, are_last ? "" : " text-anchor=\"end\"",
                    texts[k].name);
    laci_svg_append(out, *p->unit ? "%.2f%s</text>\n" : "%.4g%s</text>\n", texts[k].value, p->unit);
  }
}

/* ---- The whole drawing ---- */

/** Draws a panel whose upper end is at y. Returns the y coordinate of its lower end. */
static double draw_panel(laci_svg *out, panel *p, double y, bool with_steps) {
  p->top = y + (draw_legend(NULL, p, 0) - 1) * LEGEND + 8;
  compute_axis_ranges(p);
  draw_frame(out, p, with_steps);
  (void)draw_legend(out, p, y);
  draw_accuracy_drop(out, p);
  for (int k = 0; k < p->n_series; k++) draw_series(out, p, k);
  for (int k = 0; k < p->n_series; k++) draw_point_marks(out, p, k);
  draw_end_values(out, p, true);
  if (p->has_starts) draw_end_values(out, p, false);
  return p->top + p->height;
}

static range find_step_range(const laci_curve *c) {
  range r = {INFINITY, -INFINITY};
  for (int k = 0; k < c->n_loss + c->n_accuracy; k++) {
    const laci_curve_series *s = k < c->n_loss ? &c->loss[k] : &c->accuracy[k - c->n_loss];
    if (s->n == 0) continue;
    extend_range(&r, (double)s->points[0].step);
    extend_range(&r, (double)s->points[s->n - 1].step);
  }
  if (!(r.low <= r.high)) r = (range){0, 1};
  if (r.low > 0 && r.low < 0.05 * r.high) r.low = 0;
  /* widens a range that would be as small as the rounding error of r.low */
  if (r.high - r.low < 1) r.high = r.low + fmax(1, fabs(r.low) * 1e-9);
  return r;
}

static void draw_title(laci_svg *out, const laci_curve *curve) {
  laci_svg_append(out, "<text x=\"%d\" y=\"22\" font-size=\"%d\" font-weight=\"bold\">", LEFT,
                  TITLE_SIZE);
  laci_svg_append_shortened_text(out, curve->title, TITLE_SIZE, true, WIDTH - LEFT - 8);
  laci_svg_append(out, "</text>\n");
  if (!curve->data) return;
  laci_svg_append(out, "<text x=\"%d\" y=\"40\" font-size=\"%d\" fill=\"#444\">", LEFT, SIZE);
  laci_svg_append_shortened_text(out, curve->data, SIZE, false, WIDTH - LEFT - 8);
  laci_svg_append(out, "</text>\n");
}

/** Draws the panels, and sets *height to the height of the whole drawing. This is known only
 * afterwards. So the caller draws the panels first, and writes the beginning of the file before
 * them. */
static void draw_panels(laci_svg *out, const laci_curve *curve, double *height) {
  range steps = find_step_range(curve);
  panel loss = {.curve = curve,
                .series = curve->loss,
                .n_series = curve->n_loss,
                .what = curve->loss_name ? curve->loss_name : "loss",
                .unit = curve->loss_name ? " %" : "",
                .height = PANEL,
                .steps = steps,
                .has_starts = curve->has_starts};
  panel accuracy = loss;
  accuracy.series = curve->accuracy;
  accuracy.n_series = curve->n_accuracy;
  accuracy.what = "accuracy, %";
  accuracy.unit = " %";
  accuracy.dense = curve->dense;
  double y = HEAD;
  if (curve->loss_name && curve->n_accuracy == 0) {
    loss.height = LARGE;
    *height = draw_panel(out, &loss, y, true) + FOOT;
    return;
  }
  if (curve->n_loss > 0) y = draw_panel(out, &loss, y, false) + GAP;
  else accuracy.height = LARGE;
  *height = draw_panel(out, &accuracy, y, true) + FOOT;
}

lac_status laci_curve_svg(const laci_curve *curve, char **svg, size_t *size_bytes, lac_error *err) {
  laci_svg out = {0}, panels = {0};
  double height = 0;
  draw_panels(&panels, curve, &height);
  laci_svg_begin(&out, WIDTH, height);
  draw_title(&out, curve);
  laci_svg_append_svg(&out, &panels);
  laci_free(panels.text);
  return laci_svg_end(&out, svg, size_bytes, err);
}
