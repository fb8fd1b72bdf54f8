/* SPDX-License-Identifier: Apache-2.0 */
#include "synthetic/texture.h"

#include <math.h>

/* Number of this file's random stream. Other uses of the same seed have other streams. */
enum { STREAM_FIELD = 0x54455846 };

/* Share of the variance of the lattice's random numbers that is left after interpolation, on
 * average. */
static const double kept_variance = 0.55;

void laci_texture_field_fill(laci_texture_field *field, uint64_t seed) {
  laci_random random = {.seed = seed, .stream = STREAM_FIELD};
  for (int y = 0; y < LACI_TEXTURE_SIDE; y++)
    for (int x = 0; x < LACI_TEXTURE_SIDE; x++)
      field->at[y][x] = (float)laci_random_normal(&random, 1);
}

static void draw_noise_settings(laci_random *random, int side, laci_texture *t) {
  const double exponent = laci_random_between(random, 0.4, 1.6);
  const double amplitude = fabs(laci_random_normal(random, 0.12));
  double squares = 0;
  t->n_noises = laci_random_chance(random, 0.6) ? 1 : 3;
  while (t->n_octaves < LACI_TEXTURE_OCTAVES && 1 << t->n_octaves <= side) t->n_octaves++;
  for (int k = 0; k < t->n_octaves; k++) {
    const double weight = pow(2, k * (exponent - 1));
    t->weight[k] = (float)weight;
    squares += weight * weight * (k ? kept_variance : 1);
    for (int c = 0; c < t->n_noises; c++)
      for (int axis = 0; axis < 2; axis++)
        t->corner[c][k][axis] = laci_random_below(random, LACI_TEXTURE_SIDE);
  }
  for (int k = 0; k < t->n_octaves; k++) t->weight[k] *= (float)(amplitude / sqrt(squares));
}

static void draw_grating_settings(laci_random *random, laci_texture *t) {
  const double pi = 3.141592653589793;
  const double period = exp(laci_random_between(random, log(2.5), log(16)));
  const double angle = laci_random_between(random, 0, pi);
  t->grating = (float)fabs(laci_random_normal(random, 0.12));
  t->wave[0] = (float)(2 * pi / period * sin(angle));
  t->wave[1] = (float)(2 * pi / period * cos(angle));
  t->phase = (float)laci_random_between(random, 0, 2 * pi);
}

laci_texture laci_texture_draw(laci_random *random, int side) {
  laci_texture t = {.n_noises = 1};
  draw_noise_settings(random, side, &t);
  if (laci_random_chance(random, 0.3)) draw_grating_settings(random, &t);
  for (int axis = 0; axis < 2; axis++)
    t.shade[axis] = (float)(laci_random_normal(random, 0.2) / side);
  return t;
}

static float smooth_step(float t) { return t * t * (3 - 2 * t); }

/* Returns the noise of octave k at pixel (y, x). corner: position in the field at which the
 * octave's numbers begin. */
static float noise_of_octave(const laci_texture_field *field, const int *corner, int k, int y,
                             int x) {
  const int mask = LACI_TEXTURE_SIDE - 1;
  const int top = (corner[0] + (y >> k)) & mask, left = (corner[1] + (x >> k)) & mask;
  if (k == 0) return field->at[top][left];
  const int bottom = (top + 1) & mask, right = (left + 1) & mask, fraction = (1 << k) - 1;
  const float scale = 1.0F / (float)(1 << k);
  const float v = smooth_step((float)(y & fraction) * scale),
              u = smooth_step((float)(x & fraction) * scale);
  const float *upper = field->at[top], *lower = field->at[bottom];
  const float above = upper[left] + u * (upper[right] - upper[left]);
  const float below = lower[left] + u * (lower[right] - lower[left]);
  return above + v * (below - above);
}

void laci_texture_add_to_pixel(const laci_texture *t, const laci_texture_field *field, int y, int x,
                               float *colour) {
  float same = t->shade[0] * ((float)y - t->middle[0]) + t->shade[1] * ((float)x - t->middle[1]);
  if (t->grating > 0)
    same += t->grating * sinf(t->wave[0] * (float)y + t->wave[1] * (float)x + t->phase);
  float noise[3] = {0};
  for (int c = 0; c < t->n_noises; c++)
    for (int k = 0; k < t->n_octaves; k++)
      noise[c] += t->weight[k] * noise_of_octave(field, t->corner[c][k], k, y, x);
  for (int c = 0; c < 3; c++) colour[c] += same + noise[t->n_noises == 1 ? 0 : c];
}
