/* SPDX-License-Identifier: Apache-2.0
 * Synthetic sounds: the same for the same seed and number, of any length; values within -1 and 1,
 * some loud and some quiet; spectra that fall with the frequency. */
#include "synthetic/sounds.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N = 4096, MANY = 100, RATE = 16000 };

static void a_sound_depends_on_seed_and_number_alone(void **state) {
  (void)state;
  static float first[N], again[N];
  laci_sound_draw(1, 7, RATE, N, first);
  laci_sound_draw(1, 8, RATE, N, again);
  assert_memory_not_equal(first, again, sizeof first);
  laci_sound_draw(1, 7, RATE, N, again);
  assert_memory_equal(first, again, sizeof first);
  laci_sound_draw(2, 7, RATE, N, again);
  assert_memory_not_equal(first, again, sizeof first);
}

static void sounds_are_loud_and_quiet(void **state) {
  (void)state;
  static float sound[N];
  int loud = 0, quiet = 0;
  for (uint64_t at = 0; at < MANY; at++) {
    double squares = 0;
    laci_sound_draw(3, at, RATE, N, sound);
    for (int i = 0; i < N; i++) {
      assert_true(sound[i] >= -1 && sound[i] <= 1);
      squares += sound[i] * sound[i];
    }
    loud += squares > 0.03 * 0.03 * N;
    quiet += squares < 0.003 * 0.003 * N;
    assert_true(squares > 0);
  }
  assert_in_range(loud, 15, 85);
  assert_in_range(quiet, 5, 60);
}

/* Differences of neighbours would be 1.41 deviations in white noise, and next to nothing in a sound
 * of low frequencies alone. */
static void most_of_a_sound_is_at_low_frequencies(void **state) {
  (void)state;
  static float sound[N];
  double ratios = 0;
  for (uint64_t at = 0; at < MANY; at++) {
    double steps = 0, squares = 0;
    laci_sound_draw(4, at, RATE, N, sound);
    for (int i = 1; i < N; i++) {
      squares += sound[i] * sound[i];
      steps += (sound[i] - sound[i - 1]) * (sound[i] - sound[i - 1]);
    }
    ratios += sqrt(steps / squares) / MANY;
  }
  assert_true(ratios > 0.2 && ratios < 0.9);
}

static void any_length_and_rate_has_a_sound(void **state) {
  (void)state;
  static float sound[6 * RATE];
  const int lengths[] = {1, 2, 255, 6 * RATE};
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
    memset(sound, 0x7f, sizeof sound);
    laci_sound_draw(5, 1, 8000, lengths[k], sound);
    for (int i = 0; i < lengths[k]; i++) assert_true(fabsf(sound[i]) <= 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sound_depends_on_seed_and_number_alone),
      cmocka_unit_test(sounds_are_loud_and_quiet),
      cmocka_unit_test(most_of_a_sound_is_at_low_frequencies),
      cmocka_unit_test(any_length_and_rate_has_a_sound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
