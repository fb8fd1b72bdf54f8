/* SPDX-License-Identifier: Apache-2.0 */
#include "synthetic/sounds.h"

#include <math.h>

#include "synthetic/random.h"

/* OCTAVES: number of octaves of the noise; the slowest changes take 2^(OCTAVES - 1) samples. */
enum { OCTAVES = 12, MOST_TONES = 11, MOST_HARMONICS = 19, RANDOMS_OF_A_NORMAL = 2 };
/* Numbers of random streams: stream_sounds + at for the settings of a sound, stream_noise + at *
 * OCTAVES + k for octave k of its noise. */
static const uint64_t stream_sounds = (uint64_t)0x534F554E << 32,
                      stream_noise = (uint64_t)0x534F554F << 32;
static const double pi = 3.141592653589793;
static const double usual_seconds = 5; /* length of the sound that a part is cut out of */
/* Share of the variance of the lattice's random numbers that is left after interpolation, on
 * average. */
static const double kept_variance = 0.74;

static double log_uniform(laci_random *random, double low, double high) {
  return exp(laci_random_between(random, log(low), log(high)));
}

/* ---- Noise ---- */

static double smooth_step(double t) { return t * t * (3 - 2 * t); }

static double lattice_number(uint64_t seed, uint64_t stream, int64_t index) {
  laci_random random = {seed, stream, RANDOMS_OF_A_NORMAL * (uint64_t)index};
  return laci_random_normal(&random, 1);
}

/* Adds octave k of the noise: normal random numbers every 2^k samples, interpolated smoothly. */
static void add_octave(uint64_t seed, uint64_t at, int k, double weight, int64_t n, float *to) {
  const uint64_t stream = stream_noise + at * OCTAVES + (uint64_t)k;
  const int64_t step = (int64_t)1 << k;
  double left = 0, right = lattice_number(seed, stream, 0);
  for (int64_t i = 0; i < n; i++) {
    if (i % step == 0) {
      left = right;
      right = lattice_number(seed, stream, i / step + 1);
    }
    const double part = smooth_step((double)(i % step) / (double)step);
    to[i] += (float)(weight * (left + part * (right - left)));
  }
}

/* Adds noise with an amplitude spectrum of about 1 / f^a, a from 0 (white) to 1. */
static void add_noise(uint64_t seed, uint64_t at, laci_random *random, int64_t n, float *to) {
  const double exponent = laci_random_between(random, 0, 1);
  const double level = log_uniform(random, 3e-4, 0.1);
  double weight[OCTAVES], squares = 0;
  for (int k = 0; k < OCTAVES; k++) {
    weight[k] = pow(2, k * (exponent - 0.5));
    squares += weight[k] * weight[k] * (k ? kept_variance : 1);
  }
  for (int k = 0; k < OCTAVES; k++)
    add_octave(seed, at, k, weight[k] * level / sqrt(squares), n, to);
}

/* ---- Tones ---- */

typedef struct tone {
  double begin, length;      /* in seconds */
  double frequency, octaves; /* frequency at the begin, in Hz, and by how many octaves it glides */
  double phase;
  int n_harmonics;
  double amplitude[MOST_HARMONICS + 1]; /* of each harmonic; the first one has index 1 */
} tone;

static tone draw_tone(laci_random *random, double seconds) {
  tone t;
  t.length = laci_random_between(random, 0.05, 0.6);
  t.begin = laci_random_between(random, -t.length, seconds);
  t.frequency = log_uniform(random, 80, 2000);
  t.octaves = laci_random_between(random, -1, 1);
  t.n_harmonics = 1 + laci_random_below(random, MOST_HARMONICS);
  const double falloff = laci_random_between(random, 0.5, 1.5);
  const double level = log_uniform(random, 0.01, 0.5);
  t.phase = laci_random_between(random, 0, 2 * pi);
  double squares = 0;
  for (int h = 1; h <= t.n_harmonics; h++) squares += pow(h, -2 * falloff);
  for (int h = 1; h <= t.n_harmonics; h++)
    t.amplitude[h] = level * pow(h, -falloff) / sqrt(squares);
  return t;
}

/* Returns the cycles of the tone's lowest harmonic until `time` seconds after its begin. */
static double count_cycles(const tone *t, double time) {
  const double bend = t->octaves * log(2) / t->length;
  return fabs(bend) < 1e-6 ? t->frequency * time : t->frequency * expm1(bend * time) / bend;
}

/* Adds the tone to a part of the sound that begins `start` seconds after the sound. Harmonics that
 * the rate cannot hold are left out. */
static void add_tone(const tone *t, double start, double rate, int64_t n, float *to) {
  for (int64_t i = 0; i < n; i++) {
    const double time = start + (double)i / rate - t->begin;
    if (time < 0) continue;
    if (time > t->length) return;
    const double cycles = count_cycles(t, time);
    const double now = t->frequency * pow(2, t->octaves * time / t->length);
    double sum = 0;
    for (int h = 1; h <= t->n_harmonics && h * now < rate / 2; h++)
      sum += t->amplitude[h] * sin(2 * pi * h * cycles + h * t->phase);
    to[i] += (float)(sin(pi * time / t->length) * sum);
  }
}

/* ---- The sound ---- */

void laci_sound_draw(uint64_t seed, uint64_t at, double rate, int64_t n, float *to) {
  laci_random random = {.seed = seed, .stream = stream_sounds + at};
  const double length = (double)n / rate;
  const double seconds = length > usual_seconds ? length : usual_seconds;
  const double start = laci_random_between(&random, 0, seconds - length);
  const int n_tones = (int)(laci_random_below(&random, MOST_TONES + 1) * seconds / usual_seconds);
  for (int64_t i = 0; i < n; i++) to[i] = 0;
  add_noise(seed, at, &random, n, to);
  for (int k = 0; k < n_tones; k++) {
    const tone t = draw_tone(&random, seconds);
    add_tone(&t, start, rate, n, to);
  }
  for (int64_t i = 0; i < n; i++) to[i] = to[i] < -1 ? -1 : to[i] > 1 ? 1 : to[i];
}
