/* SPDX-License-Identifier: Apache-2.0
 * data: JPEG files of every kind become the same image; broken, cut-off and lying ones become an
 * error that names them. The image is described in tests/fixtures/data. */
#include "data/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jpeglib.h>

#include "base/reader.h"
#include "base/memory.h"
#include "base/rng.h"

#define FOLDER LAC_SOURCE_DIR "/tests/fixtures/data/"
static const char *const kinds[] = {"colour.jpg", "subsampled.jpg", "progressive.jpg",
                                    "grey.jpg",   "cmyk.jpg",       "rotated.jpg"};
enum { N_KINDS = sizeof kinds / sizeof *kinds, WIDTH = 48, HEIGHT = 40, MAX_BYTES = 4096 };

typedef struct file {
  size_t n;
  uint8_t bytes[MAX_BYTES];
} file;

static file read_file(const char *name) {
  char path[512];
  file f = {0};
  laci_file_bytes map;
  (void)snprintf(path, sizeof path, FOLDER "%s", name);
  assert_int_equal(laci_file_bytes_read(path, &map, NULL), LAC_OK);
  assert_in_range(map.size_bytes, 1, MAX_BYTES);
  memcpy(f.bytes, map.bytes, map.size_bytes);
  f.n = map.size_bytes;
  laci_file_bytes_clear(&map);
  return f;
}

/** From a block of exactly the file's size, for the sanitizer. */
static lac_status decode(const file *f, laci_image *image, lac_error *err) {
  uint8_t *exact = malloc(f->n + !f->n);
  assert_non_null(exact);
  memcpy(exact, f->bytes, f->n);
  lac_status st = laci_jpeg_decode("x.jpg", exact, f->n, image, err);
  free(exact);
  return st;
}

/** Where the segment with this marker begins; 0: there is none. */
static size_t find_marker(const file *f, int marker) {
  for (size_t at = 2; at + 4 <= f->n && f->bytes[at] == 0xFF;) {
    if (f->bytes[at + 1] == marker) return at;
    at += 2 + (size_t)(f->bytes[at + 2] << 8 | f->bytes[at + 3]);
  }
  return 0;
}

/** The header claims another size. */
static void set_size(file *f, int width, int height) {
  size_t at = find_marker(f, 0xC0);
  if (!at) at = find_marker(f, 0xC2);
  assert_int_not_equal(at, 0);
  f->bytes[at + 5] = (uint8_t)(height >> 8);
  f->bytes[at + 6] = (uint8_t)height;
  f->bytes[at + 7] = (uint8_t)(width >> 8);
  f->bytes[at + 8] = (uint8_t)width;
}

static void expect_pixel(const laci_image *image, int x, int y, const int want[3], int tolerance) {
  const uint8_t *got = image->rgb + (y * image->width + x) * 3;
  for (int c = 0; c < 3; c++) {
    if (abs(got[c] - want[c]) > tolerance) {
      fail_msg("(%d, %d) channel %d: got %d, want %d", x, y, c, got[c], want[c]);
    }
  }
}

static void every_kind_shows_the_same_picture(void **state) {
  (void)state;
  static const int red[3] = {200, 30, 20}, blue[3] = {20, 40, 220}, white[3] = {255, 255, 255};
  static const int grey_of_red[3] = {80, 80, 80}, grey_of_blue[3] = {55, 55, 55};
  laci_image image = {0};
  for (int k = 0; k < N_KINDS; k++) {
    char path[512];
    bool grey = strcmp(kinds[k], "grey.jpg") == 0;
    (void)snprintf(path, sizeof path, FOLDER "%s", kinds[k]);
    assert_int_equal(laci_image_read(path, &image, NULL), LAC_OK);
    assert_int_equal(image.width, WIDTH);
    assert_int_equal(image.height, HEIGHT);
    expect_pixel(&image, 4, 3, white, 6);
    expect_pixel(&image, 4, 30, grey ? grey_of_red : red, 6);
    expect_pixel(&image, 43, 30, grey ? grey_of_blue : blue, 6);
  }
  laci_image_clear(&image);
}

static void a_file_cut_off_anywhere_is_refused(void **state) {
  (void)state;
  laci_image image = {0};
  for (int k = 0; k < N_KINDS; k++) {
    file whole = read_file(kinds[k]);
    for (size_t n = 0; n < whole.n - 2; n++) { /* without the end marker alone nothing is lost */
      file cut = whole;
      lac_error err = {0};
      cut.n = n;
      lac_status st = decode(&cut, &image, &err);
      if (st != LAC_BAD_FILE) fail_msg("%s, %zu bytes: status %d", kinds[k], n, st);
      assert_memory_equal(err.text, "x.jpg: ", 7);
    }
  }
  laci_image_clear(&image);
}

static void other_files_are_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"\x89PNG\r\n\x1a\n", "GIF89a", "", "\xFF\xD8\xFF\xD9",
                                      "\xFF"};
  laci_image image = {0};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    file f = {.n = strlen(texts[k])};
    lac_error err = {0};
    memcpy(f.bytes, texts[k], f.n);
    assert_int_equal(decode(&f, &image, &err), LAC_BAD_FILE);
    assert_memory_equal(err.text, "x.jpg: ", 7);
  }
  assert_int_equal(laci_image_read("/nowhere.jpg", &image, NULL), LAC_NOT_FOUND);
  assert_int_equal(laci_image_read(FOLDER, &image, NULL), LAC_BAD_FILE);
  laci_image_clear(&image);
}

static void wrong_sizes_are_refused_before_memory_is_taken(void **state) {
  (void)state;
  laci_image image = {0};
  static const int sizes[][2] = {{65500, 65500}, {10000, 6000}, {65500, 100}};
  for (int k = 0; k < N_KINDS; k++) {
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      file f = read_file(kinds[k]);
      lac_error err = {0};
      set_size(&f, sizes[s][0], sizes[s][1]);
      laci_memory_fail_from(1);
      assert_int_equal(decode(&f, &image, &err), LAC_BAD_FILE);
      laci_memory_fail_from(0);
      assert_non_null(strstr(err.text, "pixels in"));
      assert_null(image.rgb);
    }
  }
}

static void images_beyond_the_limit_are_refused(void **state) {
  (void)state;
  laci_image image = {0};
  file small = read_file("colour.jpg");
  set_size(&small, 65500, 1100); /* 72 million pixels, in as many bytes as that could take */
  size_t n = 1 << 20;
  uint8_t *bytes = calloc(n, 1);
  assert_non_null(bytes);
  memcpy(bytes, small.bytes, small.n);
  lac_error err = {0};
  assert_int_equal(laci_jpeg_decode("x.jpg", bytes, n, &image, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text,
                      "x.jpg: 65500 x 1100 pixels, wanted at least one and at most 67108864");
  free(bytes);
  assert_null(image.rgb);
}

/** A grey ramp, each component in a scan of its own; *bytes is the caller's (free). */
static size_t encode_in_scans(bool arithmetic, unsigned char **bytes) {
  static const jpeg_scan_info scans[3] = {
      {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  struct jpeg_compress_struct jpeg;
  struct jpeg_error_mgr messages;
  unsigned long n = 0;
  *bytes = NULL;
  jpeg.err = jpeg_std_error(&messages);
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, bytes, &n);
  jpeg.image_width = WIDTH;
  jpeg.image_height = HEIGHT;
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 95, TRUE);
  jpeg.scan_info = scans;
  jpeg.num_scans = 3;
  jpeg.arith_code = arithmetic;
  jpeg_start_compress(&jpeg, TRUE);
  for (int y = 0; y < HEIGHT; y++) {
    uint8_t row[WIDTH * 3], *rows[1] = {row};
    memset(row, 5 * y, sizeof row);
    (void)jpeg_write_scanlines(&jpeg, rows, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  return n;
}

static void arithmetic_coding_is_read(void **state) {
  (void)state;
  laci_image image = {0};
  unsigned char *bytes;
  size_t n = encode_in_scans(true, &bytes);
  assert_int_equal(laci_jpeg_decode("x.jpg", bytes, n, &image, NULL), LAC_OK);
  expect_pixel(&image, 7, 21, (const int[3]){105, 105, 105}, 3);
  free(bytes);
  laci_image_clear(&image);
}

/** Every scan is a walk over the whole image, however few bytes it has. */
static void endless_scans_are_refused(void **state) {
  (void)state;
  enum { TIMES = 1000 };
  laci_image image = {0};
  unsigned char *few;
  size_t n_few = encode_in_scans(false, &few), last = 0;
  for (size_t at = 0; at + 1 < n_few; at++) {
    if (few[at] == 0xFF && few[at + 1] == 0xDA) last = at;
  }
  size_t n_scan = n_few - 2 - last, n = last + TIMES * n_scan + 2;
  uint8_t *many = malloc(n);
  assert_non_null(many);
  memcpy(many, few, last);
  for (size_t k = 0; k < TIMES; k++) memcpy(many + last + k * n_scan, few + last, n_scan);
  memcpy(many + n - 2, "\xFF\xD9", 2);
  lac_error err = {0};
  assert_int_equal(laci_jpeg_decode("x.jpg", few, n_few, &image, NULL), LAC_OK);
  assert_int_equal(laci_jpeg_decode("x.jpg", many, n, &image, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text, "x.jpg: a JPEG of more than 100 scans");
  free(few);
  free(many);
  laci_image_clear(&image);
}

static void damaged_files_never_crash(void **state) {
  (void)state;
  laci_image image = {0};
  for (int k = 0; k < N_KINDS; k++) {
    file whole = read_file(kinds[k]);
    for (uint64_t round = 0; round < 1500; round++) {
      file f = whole;
      uint64_t n = 1 + laci_rng_integer_below(1, (uint64_t)k, 8 * round, 4);
      for (uint64_t hit = 0; hit < n; hit++) {
        uint64_t where = laci_rng_integer_below(2, (uint64_t)k, 8 * round + hit, f.n);
        f.bytes[where] = (uint8_t)laci_rng(3, (uint64_t)k, 8 * round + hit);
      }
      lac_error err = {0};
      lac_status st = decode(&f, &image, &err);
      if (st && st != LAC_BAD_FILE && st != LAC_UNSUPPORTED) fail_msg("%s", err.text);
    }
  }
  laci_image_clear(&image);
}

static void one_image_serves_for_many_sizes(void **state) {
  (void)state;
  laci_image image = {0};
  assert_int_equal(laci_image_set_size(&image, "x", 10, 10, NULL), LAC_OK);
  const uint8_t *block = image.rgb;
  assert_int_equal(laci_image_set_size(&image, "x", 3, 5, NULL), LAC_OK);
  assert_ptr_equal(image.rgb, block);
  assert_int_equal(laci_image_set_size(&image, "x", 0, 5, NULL), LAC_UNSUPPORTED);
  assert_int_equal(laci_image_set_size(&image, "x", 70000, 1, NULL), LAC_UNSUPPORTED);
  laci_memory_fail_from(1);
  assert_int_equal(laci_image_set_size(&image, "x", 100, 100, NULL), LAC_NO_MEMORY);
  laci_memory_fail_from(0);
  assert_null(image.rgb);
  laci_image_clear(&image);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_shows_the_same_picture),
      cmocka_unit_test(a_file_cut_off_anywhere_is_refused),
      cmocka_unit_test(other_files_are_refused),
      cmocka_unit_test(wrong_sizes_are_refused_before_memory_is_taken),
      cmocka_unit_test(images_beyond_the_limit_are_refused),
      cmocka_unit_test(arithmetic_coding_is_read),
      cmocka_unit_test(endless_scans_are_refused),
      cmocka_unit_test(damaged_files_never_crash),
      cmocka_unit_test(one_image_serves_for_many_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
