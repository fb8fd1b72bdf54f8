/* SPDX-License-Identifier: Apache-2.0
 * Draws synthetic sounds: noise whose spectrum falls with the frequency, as in rooms and streets,
 * and tones with harmonics that begin, glide and end, as in voices and instruments. */
#ifndef LACI_SYNTHETIC_SOUNDS_H
#define LACI_SYNTHETIC_SOUNDS_H

#include <stdint.h>

/** Draws sound number `at` into to[n]: one channel of n samples, `rate` of them a second, with
 * values from -1 to 1. It is cut out of five seconds, or out of more if n is longer, so that a
 * short one may be in the middle of a tone. The same seed, number, rate and n give the same sound.
 * Any thread may call it. */
void laci_sound_draw(uint64_t seed, uint64_t at, double rate, int64_t n, float *to);

#endif
