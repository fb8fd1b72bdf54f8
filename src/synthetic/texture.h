/* SPDX-License-Identifier: Apache-2.0
 * Random textures: gratings, and noise whose spectrum falls with a power of the frequency, as in
 * photographs.
 *
 * The noise is a sum of octaves. Octave k is a field of normal random numbers on a lattice of 2^k
 * pixels, interpolated smoothly in between. Its weight 2^(k (a - 1)) gives an amplitude spectrum of
 * about 1 / f^a. */
#ifndef LACI_SYNTHETIC_TEXTURE_H
#define LACI_SYNTHETIC_TEXTURE_H

#include "synthetic/random.h"

enum { LACI_TEXTURE_OCTAVES = 8, LACI_TEXTURE_SIDE = 64 };

/** Normal random numbers on a lattice that repeats. Each texture reads them from other
 * positions. */
typedef struct laci_texture_field {
  float at[LACI_TEXTURE_SIDE][LACI_TEXTURE_SIDE];
} laci_texture_field;

/** A random texture: how the color varies inside a shape. */
typedef struct laci_texture {
  float weight[LACI_TEXTURE_OCTAVES]; /* weight of each octave; the sum of the squares of all
                                         weights is amplitude^2 */
  int n_octaves;
  int corner[3][LACI_TEXTURE_OCTAVES][2]; /* for each channel and octave, the position (y, x) in the
                                             field at which the octave's numbers begin */
  int n_noises;                           /* number of different noises: 1, which all color channels
                                             share, or 3, one for each channel */
  float grating, wave[2], phase;          /* grating: amplitude. wave: radians per pixel (y, x).
                                             phase: offset in radians */
  float shade[2];                         /* change of brightness per pixel (y, x), counted from the
                                             middle */
  float middle[2];                        /* middle of the shape in pixels (y, x); set by the
                                             caller */
} laci_texture;

void laci_texture_field_fill(laci_texture_field *field, uint64_t seed);

/** Draws a random texture for images whose shorter side has `side` pixels. */
laci_texture laci_texture_draw(laci_random *random, int side);

/** Adds the texture's value at pixel (y, x) of the image to colour[3]. */
void laci_texture_add_to_pixel(const laci_texture *texture, const laci_texture_field *field, int y,
                               int x, float *colour);

#endif
