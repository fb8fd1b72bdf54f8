/* SPDX-License-Identifier: Apache-2.0
 * data: WebP files, lossless and lossy, become their image; broken and cut-off ones an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <webp/encode.h>

#include "data/image.h"

enum { WIDTH = 40, HEIGHT = 24, N_BYTES = WIDTH * HEIGHT * 3 };

static void paint(uint8_t rgb[N_BYTES]) {
  for (int at = 0; at < N_BYTES; at++) {
    int x = at / 3 % WIDTH, y = at / 3 / WIDTH;
    rgb[at] = (uint8_t)(at % 3 == 0 ? x * 6 : at % 3 == 1 ? y * 10 : 90);
  }
}

/** Bytes to free with WebPFree. */
static size_t encode(bool lossless, uint8_t **bytes) {
  uint8_t rgb[N_BYTES];
  paint(rgb);
  size_t n = lossless ? WebPEncodeLosslessRGB(rgb, WIDTH, HEIGHT, WIDTH * 3, bytes)
                      : WebPEncodeRGB(rgb, WIDTH, HEIGHT, WIDTH * 3, 95, bytes);
  assert_true(n > 0);
  return n;
}

/** From a block of exactly the file's size, for the sanitizer. */
static lac_status decode(const uint8_t *bytes, size_t n, laci_image *image, lac_error *err) {
  uint8_t *exact = malloc(n + !n);
  assert_non_null(exact);
  memcpy(exact, bytes, n);
  lac_status st = laci_image_decode("x.jpg", exact, n, image, err);
  free(exact);
  return st;
}

static void both_kinds_are_read(void **state) {
  (void)state;
  uint8_t want[N_BYTES];
  paint(want);
  laci_image image = {0};
  for (int lossless = 0; lossless < 2; lossless++) {
    uint8_t *bytes;
    size_t n = encode(lossless, &bytes);
    lac_error err = {0};
    if (decode(bytes, n, &image, &err)) fail_msg("%s", err.text);
    WebPFree(bytes);
    assert_int_equal(image.width, WIDTH);
    assert_int_equal(image.height, HEIGHT);
    for (int at = 0; at < N_BYTES; at++) {
      int apart = abs(image.rgb[at] - want[at]);
      if (apart > (lossless ? 0 : 12)) {
        fail_msg("byte %d: got %d, want %d", at, image.rgb[at], want[at]);
      }
    }
  }
  laci_image_clear(&image);
}

static void a_file_cut_off_anywhere_is_refused(void **state) {
  (void)state;
  laci_image image = {0};
  for (int lossless = 0; lossless < 2; lossless++) {
    uint8_t *bytes;
    size_t n = encode(lossless, &bytes);
    for (size_t cut = 0; cut + 2 < n; cut++) { /* a byte of padding may follow */
      lac_error err = {0};
      lac_status st = decode(bytes, cut, &image, &err);
      if (st != LAC_BAD_FILE) fail_msg("%zu of %zu bytes: status %d", cut, n, st);
      assert_memory_equal(err.text, "x.jpg: ", 7);
    }
    WebPFree(bytes);
  }
  laci_image_clear(&image);
}

/** A canvas of 16383 x 16383, in its header only. */
static void a_size_beyond_the_limit_takes_no_memory(void **state) {
  (void)state;
  static const uint8_t bytes[] =
      "RIFF\x1E\0\0\0WEBPVP8L\x11\0\0\0\x2F\xFE\xBF\xFF\x0F\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0";
  laci_image image = {0};
  lac_error err = {0};
  assert_int_equal(decode(bytes, sizeof bytes - 1, &image, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text,
                      "x.jpg: 16383 x 16383 pixels, wanted at least one and at most 67108864");
  assert_int_equal(image.capacity_bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_kinds_are_read),
      cmocka_unit_test(a_file_cut_off_anywhere_is_refused),
      cmocka_unit_test(a_size_beyond_the_limit_takes_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
