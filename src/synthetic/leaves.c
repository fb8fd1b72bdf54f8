/* SPDX-License-Identifier: Apache-2.0
 * Draws the images of leaves.h, from the nearest shape to the farthest one. Each pixel gets its
 * color once, from the first shape that covers it. The last shape covers all pixels. */
#include "synthetic/leaves.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "synthetic/random.h"
#include "synthetic/texture.h"

enum { LEAST_SHAPES = 4, MOST_SHAPES = 80 };
/* Numbers of the random streams of an image; the image's number is added to each. */
static const uint64_t stream_shapes = (uint64_t)0x4C454146 << 32,
                      stream_noise = (uint64_t)0x4C454147 << 32;
static const double least_radius = 0.03, most_radius = 0.7; /* smallest and largest radius of a
                                                               shape, as a fraction of the image's
                                                               shorter side */

typedef enum kind { ELLIPSE, RECTANGLE, RHOMBUS, STAR, KINDS } kind;

/* A shape in an image. A point is inside if its distance from the middle is below 1, measured along
 * the shape's own axes. */
typedef struct shape {
  kind kind;
  double radius;                      /* radius in pixels */
  double cy, cx;                      /* coordinates of the middle, in pixels */
  double cosine, sine, along, across; /* cosine and sine of the shape's angle; lengths of its half
                                         axes, in pixels */
  int points;                         /* number of points, if it is a star */
  float colour[3];
  laci_texture texture;
} shape;

struct laci_leaves {
  uint64_t seed;
  int height, width, side;
  laci_texture_field field;
};

lac_status laci_leaves_create(uint64_t seed, int height, int width, laci_leaves **leaves,
                              lac_error *err) {
  laci_leaves *own = laci_alloc(1, sizeof *own);
  *leaves = own;
  if (!own) return laci_fail_memory(err, "synthetic images");
  own->seed = seed;
  own->height = height;
  own->width = width;
  own->side = height < width ? height : width;
  laci_texture_field_fill(&own->field, seed);
  return LAC_OK;
}

void laci_leaves_destroy(laci_leaves *leaves) { laci_free(leaves); }

/* ---- Shapes ---- */

/* Draws a random radius with the density 1 / r^3, which is the distribution of objects' sizes in
 * photographs. */
static double draw_radius(laci_random *random, int side) {
  const double most = 1 / (least_radius * least_radius), least = 1 / (most_radius * most_radius);
  return side / sqrt(laci_random_between(random, least, most));
}

static shape draw_shape(laci_random *random, const laci_leaves *leaves) {
  const double beyond = 0.1;
  shape s = {.kind = (kind)laci_random_below(random, KINDS),
             .radius = draw_radius(random, leaves->side)};
  const double stretch = exp(laci_random_normal(random, 0.6) / 2);
  const double angle = laci_random_between(random, 0, 6.283185307179586);
  s.cy = laci_random_between(random, -beyond, 1 + beyond) * leaves->height;
  s.cx = laci_random_between(random, -beyond, 1 + beyond) * leaves->width;
  s.cosine = cos(angle);
  s.sine = sin(angle);
  s.along = s.radius * stretch;
  s.across = s.radius / stretch;
  s.points = 3 + laci_random_below(random, 5);
  const double brightness = laci_random_brightness(random);
  for (int c = 0; c < 3; c++) s.colour[c] = (float)(brightness + laci_random_normal(random, 0.12));
  s.texture = laci_texture_draw(random, leaves->side);
  s.texture.middle[0] = (float)s.cy;
  s.texture.middle[1] = (float)s.cx;
  return s;
}

static bool is_inside(const shape *s, double y, double x) {
  const double dy = y - s->cy, dx = x - s->cx;
  const double a = (dx * s->cosine + dy * s->sine) / s->along;
  const double b = (dy * s->cosine - dx * s->sine) / s->across;
  switch (s->kind) {
    case RECTANGLE: return fabs(a) < 1 && fabs(b) < 1;
    case RHOMBUS: return fabs(a) + fabs(b) < 1;
    case STAR: {
      const double reach = 1 + 0.3 * sin(s->points * atan2(b, a));
      return a * a + b * b < reach * reach;
    }
    case ELLIPSE:
    default: return a * a + b * b < 1;
  }
}

/* Draws the random shapes of an image, the nearest one first. Returns their number. */
static int draw_shapes(laci_random *random, const laci_leaves *leaves, shape *shapes) {
  const int n = (int)exp(laci_random_between(random, log(LEAST_SHAPES), log(MOST_SHAPES + 1)));
  const bool small_first = laci_random_chance(random, 0.5);
  for (int k = 0; k < n; k++) {
    const shape drawn = draw_shape(random, leaves);
    int place = k;
    for (; small_first && place > 0 && shapes[place - 1].radius > drawn.radius; place--)
      shapes[place] = shapes[place - 1];
    shapes[place] = drawn;
  }
  shapes[n] = draw_shape(random, leaves); /* the last shape is the background */
  return n;
}

/* ---- Pixels ---- */

static int clamp(double at, int most) { return at < 0 ? 0 : at > most ? most : (int)at; }

/* Colors the pixels of a shape that no nearer shape covers. covered: [pixels] not 0 if a nearer
 * shape covers the pixel. ground: the shape is the background. */
static void paint_shape(const laci_leaves *leaves, const shape *s, bool ground, float *covered,
                        float *rgb) {
  const size_t plane = (size_t)leaves->height * (size_t)leaves->width;
  /* a rectangle's corners and a star's points are farther from the middle than the half axes */
  const double reach = 1.42 * (s->along > s->across ? s->along : s->across);
  const int top = ground ? 0 : clamp(s->cy - reach, leaves->height);
  const int left = ground ? 0 : clamp(s->cx - reach, leaves->width);
  const int bottom = ground ? leaves->height : clamp(s->cy + reach + 1, leaves->height);
  const int right = ground ? leaves->width : clamp(s->cx + reach + 1, leaves->width);
  for (int y = top; y < bottom; y++) {
    for (int x = left; x < right; x++) {
      const size_t at = (size_t)y * (size_t)leaves->width + (size_t)x;
      if (covered[at] != 0 || (!ground && !is_inside(s, y + 0.5, x + 0.5))) continue;
      float colour[3] = {s->colour[0], s->colour[1], s->colour[2]};
      laci_texture_add_to_pixel(&s->texture, &leaves->field, y, x, colour);
      covered[at] = 1;
      for (int c = 0; c < 3; c++) rgb[(size_t)c * plane + at] = colour[c];
    }
  }
}

/* Blurs a row or column of n numbers, `stride` apart: each becomes the mean of itself (twice) and
 * its two neighbours. */
static void blur_line(float *line, int n, size_t stride) {
  float before = line[0];
  for (int k = 0; k < n; k++) {
    const float here = line[(size_t)k * stride];
    const float after = k + 1 < n ? line[(size_t)(k + 1) * stride] : here;
    line[(size_t)k * stride] = 0.25F * (before + 2 * here + after);
    before = here;
  }
}

static void blur(const laci_leaves *leaves, float *rgb) {
  const size_t width = (size_t)leaves->width, plane = (size_t)leaves->height * width;
  for (int c = 0; c < 3; c++) {
    float *channel = rgb + (size_t)c * plane;
    for (int y = 0; y < leaves->height; y++)
      blur_line(channel + (size_t)y * width, leaves->width, 1);
    for (int x = 0; x < leaves->width; x++) blur_line(channel + x, leaves->height, width);
  }
}

/* Makes an image look as if taken by a camera: light that falls from one side, blur, noise, and a
 * curve of brightness. */
static void apply_camera_effects(laci_random *random, laci_random *noise, const laci_leaves *leaves,
                                 float *rgb) {
  const int height = leaves->height, width = leaves->width;
  const double light[2] = {laci_random_normal(random, 0.2) / height,
                           laci_random_normal(random, 0.2) / width};
  const int passes = laci_random_chance(random, 0.7) ? 1 + laci_random_below(random, 2) : 0;
  const double gamma = exp(laci_random_normal(random, 0.25));
  const size_t plane = (size_t)height * (size_t)width;
  for (int pass = 0; pass < passes; pass++) blur(leaves, rgb);
  for (int c = 0; c < 3; c++) {
    for (size_t at = 0; at < plane; at++) {
      const double y = (double)(at / (size_t)width) - height / 2.0;
      const double x = (double)(at % (size_t)width) - width / 2.0;
      float *value = &rgb[(size_t)c * plane + at];
      const double lit = *value + light[0] * y + light[1] * x + laci_random_normal(noise, 0.01);
      *value = (float)pow(lit < 0 ? 0 : lit > 1 ? 1 : lit, gamma);
    }
  }
}

void laci_leaves_draw(const laci_leaves *leaves, uint64_t at, float *rgb, float *scratch) {
  shape shapes[MOST_SHAPES + 1];
  laci_random random = {leaves->seed, stream_shapes + at, 0};
  laci_random noise = {leaves->seed, stream_noise + at, 0};
  const int n = draw_shapes(&random, leaves, shapes);
  memset(scratch, 0, (size_t)leaves->height * (size_t)leaves->width * sizeof *scratch);
  for (int k = 0; k <= n; k++) paint_shape(leaves, &shapes[k], k == n, scratch, rgb);
  apply_camera_effects(&random, &noise, leaves, rgb);
}
