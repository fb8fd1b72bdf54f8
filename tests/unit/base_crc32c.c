/* SPDX-License-Identifier: Apache-2.0
 * base: CRC-32C against its published values and against the definition, bit by bit. */
#include "base/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

/** The values of RFC 3720, B.4, and the usual one. */
static void published_values_come_out(void **state) {
  (void)state;
  uint8_t bytes[32] = {0};
  assert_int_equal(laci_crc32c("123456789", 9), 0xE3069283U);
  assert_int_equal(laci_crc32c("", 0), 0);
  assert_int_equal(laci_crc32c(bytes, 32), 0x8A9136AAU);
  memset(bytes, 0xFF, sizeof bytes);
  assert_int_equal(laci_crc32c(bytes, 32), 0x62A8AB43U);
  for (int k = 0; k < 32; k++) bytes[k] = (uint8_t)k;
  assert_int_equal(laci_crc32c(bytes, 32), 0x46DD794EU);
}

static uint32_t bit_by_bit(const uint8_t *bytes, size_t n) {
  uint32_t crc = UINT32_MAX;
  for (size_t k = 0; k < n; k++) {
    crc ^= bytes[k];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78U : 0);
  }
  return ~crc;
}

static void every_length_and_start_is_as_defined(void **state) {
  (void)state;
  uint8_t bytes[100];
  for (size_t k = 0; k < sizeof bytes; k++) bytes[k] = (uint8_t)laci_rng(1, 2, k);
  for (size_t from = 0; from < 9; from++) {
    for (size_t n = 0; from + n <= sizeof bytes; n++) {
      assert_int_equal(laci_crc32c(bytes + from, n), bit_by_bit(bytes + from, n));
    }
  }
}

/** Of an empty record of TensorFlow's: eight zero bytes. */
static void masked_is_rotated_and_moved(void **state) {
  (void)state;
  uint32_t crc = laci_crc32c("\0\0\0\0\0\0\0\0", 8);
  assert_int_equal(crc, 0x8C28B28AU);
  assert_int_equal(laci_crc32c_masked("\0\0\0\0\0\0\0\0", 8),
                   (uint32_t)((crc >> 15 | crc << 17) + 0xA282EAD8U));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(published_values_come_out),
      cmocka_unit_test(every_length_and_start_is_as_defined),
      cmocka_unit_test(masked_is_rotated_and_moved),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
