/* SPDX-License-Identifier: Apache-2.0
 * Textures: noise whose spectrum falls with a power of the frequency, as in photographs, and
 * gratings.
 *
 * The noise is a sum of octaves. Octave k is a field of normal numbers on a lattice of 2^k pixels,
 * interpolated smoothly in between. Its weight 2^(k (a - 1)) gives an amplitude spectrum of about
 * 1 / f^a. */
#ifndef LACI_SYNTHETIC_TEXTURE_H
#define LACI_SYNTHETIC_TEXTURE_H

#include "synthetic/random.h"

enum { LACI_TEXTURE_OCTAVES = 8, LACI_TEXTURE_SIDE = 64 };

/** Normal numbers on a lattice that repeats; every texture reads them from places of its own. */
typedef struct laci_texture_field {
  float at[LACI_TEXTURE_SIDE][LACI_TEXTURE_SIDE];
} laci_texture_field;

/** How the colours of a surface vary. */
typedef struct laci_texture {
  float weight[LACI_TEXTURE_OCTAVES]; /* of each octave; their squares have the sum amplitude^2 */
  int n_octaves;
  int corner[3][LACI_TEXTURE_OCTAVES][2]; /* where each channel reads each octave, y and x */
  int n_noises;                           /* 1: all channels have the same noise; 3: their own */
  float grating, wave[2], phase;          /* amplitude, radians a pixel (y, x), and offset */
  float shade[2];                         /* brightness a pixel (y, x), from the middle */
  float middle[2];                        /* pixels (y, x); the caller sets it */
} laci_texture;

void laci_texture_field_fill(laci_texture_field *field, uint64_t seed);

/** Draws a texture for pictures whose shorter side has `side` pixels. */
laci_texture laci_texture_draw(laci_random *random, int side);

/** Adds the texture at pixel (y, x) of the picture to colour[3]. */
void laci_texture_add(const laci_texture *texture, const laci_texture_field *field, int y, int x,
                      float *colour);

#endif
