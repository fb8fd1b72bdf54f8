/* SPDX-License-Identifier: Apache-2.0
 * data: ImageNet to TFRecords. Archives and folders give the same shards; a run that ended early
 * and went on gives them, too; what is broken is listed and left out, what is cut off is refused,
 * and no image ever gets another one's label. */
#include "data/imagenet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/temporary.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/raw.h"
#include "unit/data_folder.h"

#define FIXTURES LAC_SOURCE_DIR "/tests/fixtures/data/"
enum { SECTOR = 512, N_TRAIN = 14, N_VALIDATION = 5, SHARDS = 4, VAL_SHARDS = 2 };

/* ---- Raw data ---- */

typedef struct item {
  const char *folder, *name, *file; /* file: of the fixtures; starts with "!": its bytes */
} item;

static const char *const synsets[] = {"n01440764", "n02099601", "n15075141"};

/** Distinct sizes would be better labels than none: each class has files of its own. */
static const item train[N_TRAIN] = {{"n02099601", "n02099601_1.JPEG", "colour.jpg"},
                                    {"n01440764", "n01440764_9.JPEG", "grey.jpg"},
                                    {"n01440764", "n01440764_10.JPEG", "cmyk.jpg"},
                                    {"n15075141", "n15075141_1.JPEG", "progressive.jpg"},
                                    {"n15075141", "n15075141_2.JPEG", "!\xFF\xD8 no JPEG"},
                                    {"n15075141", "n15075141_3.JPEG", "subsampled.jpg"},
                                    {"n02099601", "n02099601_2.JPEG", "rotated.jpg"},
                                    {"n02099601", "n02099601_3.JPEG", "colour.jpg"},
                                    {"n02099601", "n02099601_4.JPEG", "!"},
                                    {"n01440764", "n01440764_1.JPEG", "colour.jpg"},
                                    {"n01440764", "n01440764_2.JPEG", "progressive.jpg"},
                                    {"n01440764", "n01440764_3.JPEG", "subsampled.jpg"},
                                    {"n15075141", "n15075141_9.JPEG", "grey.jpg"},
                                    {"n15075141", "n15075141_8.JPEG", "colour.jpg"}};
static const item validation[N_VALIDATION] = {{"", "ILSVRC2012_val_00000003.JPEG", "grey.jpg"},
                                              {"", "ILSVRC2012_val_00000001.JPEG", "colour.jpg"},
                                              {"", "ILSVRC2012_val_00000002.JPEG", "cmyk.jpg"},
                                              {"", "ILSVRC2012_val_00000005.JPEG", "colour.jpg"},
                                              {"", "ILSVRC2012_val_00000004.JPEG", "colour.jpg"}};
#define LABELS "n01440764\nn02099601\nn15075141\nn02099601\nn01440764\n"

typedef struct bytes {
  size_t n, capacity;
  uint8_t *at;
} bytes;

static void add(bytes *b, const void *more, size_t n) {
  if (n == 0) return;
  if (b->n + n > b->capacity) {
    b->capacity = 2 * (b->n + n);
    b->at = realloc(b->at, b->capacity);
    assert_non_null(b->at);
  }
  memcpy(b->at + b->n, more, n);
  b->n += n;
}

static bytes contents(const item *what) {
  bytes b = {0};
  char path[FOLDER_PATH];
  laci_file_bytes file;
  if (what->file[0] == '!') {
    add(&b, what->file + 1, strlen(what->file + 1));
    return b;
  }
  (void)snprintf(path, sizeof path, FIXTURES "%s", what->file);
  assert_int_equal(laci_file_bytes_read(path, &file, NULL), LAC_OK);
  add(&b, file.bytes, file.size_bytes);
  laci_file_bytes_clear(&file);
  return b;
}

/** A member of a tar archive, as POSIX has it. */
static void add_member(bytes *tar, const char *name, const bytes *file) {
  static const uint8_t zeros[SECTOR];
  char head[SECTOR] = {0};
  unsigned sum = 0;
  (void)snprintf(head, 100, "%s", name);
  memcpy(head + 100, "0000644", 8);
  memcpy(head + 108, "0000000", 8);
  memcpy(head + 116, "0000000", 8);
  (void)snprintf(head + 124, 12, "%011zo", file->n);
  memcpy(head + 136, "00000000000", 12);
  memset(head + 148, ' ', 8);
  head[156] = '0';
  memcpy(head + 257, "ustar\00000", 8);
  for (int k = 0; k < SECTOR; k++) sum += (unsigned char)head[k];
  (void)snprintf(head + 148, 8, "%06o", sum);
  add(tar, head, SECTOR);
  if (file->n) add(tar, file->at, file->n);
  add(tar, zeros, (SECTOR - file->n % SECTOR) % SECTOR);
}

static void end_archive(bytes *tar) {
  static const uint8_t zeros[2 * SECTOR];
  add(tar, zeros, sizeof zeros);
}

static bytes archive_of(const item *items, int n, const char *synset) {
  bytes tar = {0};
  for (int k = 0; k < n; k++) {
    if (strcmp(items[k].folder, synset) != 0) continue;
    bytes file = contents(&items[k]);
    add_member(&tar, items[k].name, &file);
    free(file.at);
  }
  end_archive(&tar);
  return tar;
}

static bytes train_archive(void) {
  bytes tar = {0};
  for (int k = 2; k >= 0; k--) {
    char name[32];
    (void)snprintf(name, sizeof name, "%s.tar", synsets[k]);
    bytes inner = archive_of(train, N_TRAIN, synsets[k]);
    add_member(&tar, name, &inner);
    free(inner.at);
  }
  end_archive(&tar);
  return tar;
}

static folder make_archives(void) {
  folder f = make_folder();
  bytes tar = train_archive(), val = archive_of(validation, N_VALIDATION, "");
  add_bytes(&f, "ILSVRC2012_img_train.tar", tar.at, tar.n);
  add_bytes(&f, "ILSVRC2012_img_val.tar", val.at, val.n);
  add_text(&f, "synset_labels.txt", LABELS);
  free(tar.at);
  free(val.at);
  return f;
}

static void make_inner(const folder *f, const char *name) {
  char path[FOLDER_PATH];
  path_in(path, f, name);
  assert_int_equal(mkdir(path, 0777), 0);
}

static folder make_folders(void) {
  folder f = make_folder();
  make_inner(&f, "img_train");
  for (int k = 0; k < N_TRAIN + N_VALIDATION; k++) {
    const item *i = k < N_TRAIN ? &train[k] : &validation[k - N_TRAIN];
    char name[128];
    if (k < N_TRAIN) (void)snprintf(name, sizeof name, "img_train/%s/%s", i->folder, i->name);
    else (void)snprintf(name, sizeof name, "img_val/%s", i->name);
    bytes file = contents(i);
    add_bytes(&f, name, file.at ? file.at : (uint8_t *)"", file.n);
    free(file.at);
  }
  add_text(&f, "synset_labels.txt", LABELS);
  return f;
}

/* ---- Converting ---- */

static const laci_imagenet_options usual = {
    .threads = 2, .shards = SHARDS, .val_shards = VAL_SHARDS, .seed = 5};

static lac_status convert(const folder *raw, const folder *out, const laci_imagenet_options *o,
                          laci_imagenet_part parts[2], lac_error *err) {
  laci_imagenet_part unwanted[2];
  return laci_imagenet_convert(raw->path, out->path, o, parts ? parts : unwanted, err);
}

static void convert_well(const folder *raw, const folder *out, const laci_imagenet_options *o) {
  lac_error err = {0};
  if (convert(raw, out, o, NULL, &err)) fail_msg("%s", err.text);
}

static void expect_refusal(const folder *raw, const laci_imagenet_options *o, lac_status status,
                           const char *want) {
  folder out = make_folder();
  lac_error err = {0};
  lac_status st = convert(raw, &out, o, NULL, &err);
  if (st != status || !strstr(err.text, want)) {
    fail_msg("status %d, got '%s', want '%s'", st, err.text, want);
  }
  remove_folder(&out);
}

static const char *shard_name(int k) {
  static char name[64];
  if (k < SHARDS) (void)snprintf(name, sizeof name, "train-%05d-of-%05d", k, SHARDS);
  else (void)snprintf(name, sizeof name, "validation-%05d-of-%05d", k - SHARDS, VAL_SHARDS);
  return k < SHARDS + VAL_SHARDS ? name : "broken.txt";
}

static void expect_same_files(const folder *a, const folder *b) {
  for (int k = 0; k <= SHARDS + VAL_SHARDS; k++) {
    char paths[2][FOLDER_PATH];
    laci_file_bytes files[2];
    path_in(paths[0], a, shard_name(k));
    path_in(paths[1], b, shard_name(k));
    for (int i = 0; i < 2; i++) {
      assert_int_equal(laci_file_bytes_read(paths[i], &files[i], NULL), LAC_OK);
    }
    assert_int_equal(files[0].size_bytes, files[1].size_bytes);
    assert_memory_equal(files[0].bytes, files[1].bytes, files[0].size_bytes);
    laci_file_bytes_clear(&files[0]);
    laci_file_bytes_clear(&files[1]);
  }
}

static void archives_and_folders_give_the_same_shards(void **state) {
  (void)state;
#ifdef LAC_WITHOUT_ARCHIVE
  folder tars = make_archives();
  expect_refusal(&tars, &usual, LAC_UNSUPPORTED, "this Lacuna was built without libarchive");
  remove_folder(&tars);
#else
  folder raws[2] = {make_archives(), make_folders()}, outs[2] = {make_folder(), make_folder()};
  laci_imagenet_options one = usual;
  one.threads = 1;
  convert_well(&raws[0], &outs[0], &usual);
  convert_well(&raws[1], &outs[1], &one);
  expect_same_files(&outs[0], &outs[1]);
  for (int k = 0; k < 2; k++) {
    remove_folder(&raws[k]);
    remove_folder(&outs[k]);
  }
#endif
}

/** Each image that is whole is there once, with its label and its pixels. */
static void every_image_has_its_label(void **state) {
  (void)state;
  folder raw = make_folders(), out = make_folder();
  laci_imagenet_part parts[2];
  assert_int_equal(convert(&raw, &out, &usual, parts, NULL), LAC_OK);
  assert_int_equal(parts[0].images, N_TRAIN - 2);
  assert_int_equal(parts[0].broken, 2);
  assert_int_equal(parts[0].shards, SHARDS);
  assert_int_equal(parts[1].images, N_VALIDATION);
  for (int p = 0; p < 2; p++) {
    laci_dataset *set;
    laci_dataset_options options = {.part = p == 0 ? LACI_PART_TRAIN : LACI_PART_TEST};
    lac_error err = {0};
    if (laci_dataset_open(out.path, &options, &set, &err)) fail_msg("%s", err.text);
    int counts[3] = {0};
    assert_int_equal(laci_dataset_count(set), parts[p].images);
    assert_string_equal(laci_dataset_class_name(set, 207), synsets[1]);
    for (int k = 0; k < parts[p].images; k++) {
      laci_image image = {0};
      assert_int_equal(laci_dataset_read_image(set, k, &image, NULL), LAC_OK);
      assert_int_equal(image.width, 48);
      int label = laci_dataset_label(set, k);
      assert_true(label == 0 || label == 207 || label == 999);
      counts[label == 0 ? 0 : label == 207 ? 1 : 2]++;
      laci_image_clear(&image);
    }
    static const int wanted[2][3] = {{5, 3, 4}, {2, 2, 1}};
    assert_memory_equal(counts, wanted[p], sizeof counts);
    laci_dataset_close(set);
  }
  remove_folder(&raw);
  remove_folder(&out);
}

static void broken_images_are_listed(void **state) {
  (void)state;
  folder raw = make_folders(), out = make_folder();
  char path[FOLDER_PATH], text[512] = "";
  convert_well(&raw, &out, &usual);
  path_in(path, &out, "broken.txt");
  FILE *list = fopen(path, "r");
  assert_non_null(list);
  size_t n = fread(text, 1, sizeof text - 1, list);
  assert_true(n > 0);
  (void)fclose(list);
  assert_non_null(strstr(text, "n02099601_4.JPEG\tan empty file, wanted an image\n"));
  assert_non_null(strstr(text, "n15075141_2.JPEG\tno whole JPEG: "));
  remove_folder(&raw);
  remove_folder(&out);
}

/** Inks become colours, so that every reader takes what is stored. */
static void what_is_no_plain_jpeg_becomes_one(void **state) {
  (void)state;
  static const struct {
    const char *file;
    bool plain;
  } cases[] = {{"colour.jpg", true},
               {"grey.jpg", true},
               {"cmyk.jpg", false},
               {"progressive.jpg", true},
               {"rotated.jpg", true}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    bytes file = contents(&(item){"", "", cases[k].file});
    assert_int_equal(laci_image_is_common_jpeg(file.at, file.n), cases[k].plain);
    laci_image image = {0}, again = {0};
    uint8_t *made;
    size_t n;
    assert_int_equal(laci_image_decode("x", file.at, file.n, &image, NULL), LAC_OK);
    assert_int_equal(laci_jpeg_encode("x", &image, &made, &n, NULL), LAC_OK);
    assert_true(laci_image_is_common_jpeg(made, n));
    assert_int_equal(laci_image_decode("x", made, n, &again, NULL), LAC_OK);
    for (int at = (30 * 48 + 4) * 3; at < (30 * 48 + 7) * 3; at++) {
      assert_in_range(again.rgb[at] + 8 - image.rgb[at], 0, 16);
    }
    laci_free(made);
    free(file.at);
    laci_image_clear(&image);
    laci_image_clear(&again);
  }
  assert_false(laci_image_is_common_jpeg((const uint8_t *)"\x89PNG", 4));
  assert_false(laci_image_is_common_jpeg((const uint8_t *)"\xFF\xD8\xFF", 3));
}

/* ---- Ended early ---- */

static int ends_after;

static void end_early(const char *what, int64_t done, int64_t total, void *context) {
  (void)what, (void)total, (void)context;
  if (done == ends_after) lac_interrupt(true);
}

static void an_interrupted_run_goes_on_to_the_same_shards(void **state) {
  (void)state;
  folder raw = make_folders(), whole = make_folder();
  laci_imagenet_options one = usual;
  one.threads = 1;
  convert_well(&raw, &whole, &usual);
  for (ends_after = 1; ends_after < N_TRAIN + N_VALIDATION; ends_after += 3) {
    folder out = make_folder();
    laci_imagenet_part parts[2];
    lac_progress_set(end_early, NULL);
    assert_int_equal(convert(&raw, &out, &one, NULL, NULL), LAC_INTERRUPTED);
    lac_progress_set(NULL, NULL);
    lac_interrupt(false);
    lac_error err = {0};
    if (convert(&raw, &out, &one, parts, &err)) fail_msg("%s", err.text);
    assert_int_equal(parts[0].images + parts[1].images, N_TRAIN + N_VALIDATION - 2);
    expect_same_files(&whole, &out);
    assert_int_equal(convert(&raw, &out, &one, parts, NULL), LAC_OK);
    assert_int_equal(parts[0].kept + parts[1].kept, SHARDS + VAL_SHARDS);
    assert_int_equal(parts[0].broken, 2);
    remove_folder(&out);
  }
  remove_folder(&raw);
  remove_folder(&whole);
}

/** Killed while the journal was written, or a shard was taken away. */
static void a_journal_cut_off_anywhere_is_gone_on_from(void **state) {
  (void)state;
  folder raw = make_folders(), whole = make_folder(), out = make_folder();
  convert_well(&raw, &whole, &usual);
  convert_well(&raw, &out, &usual);
  char path[FOLDER_PATH];
  laci_file_bytes journal;
  path_in(path, &out, ".lacuna-imagenet");
  assert_int_equal(laci_file_bytes_read(path, &journal, NULL), LAC_OK);
  for (size_t n = 0; n < journal.size_bytes; n += 23) {
    char shard[FOLDER_PATH];
    add_bytes(&out, ".lacuna-imagenet", journal.bytes, n);
    path_in(shard, &out, shard_name((int)(n % SHARDS)));
    assert_int_equal(unlink(shard), 0);
    convert_well(&raw, &out, &usual);
    expect_same_files(&whole, &out);
  }
  laci_file_bytes_clear(&journal);
  remove_folder(&raw);
  remove_folder(&whole);
  remove_folder(&out);
}

static void another_conversion_is_kept_apart(void **state) {
  (void)state;
  folder raw = make_folders(), out = make_folder(), whole = make_folder();
  laci_imagenet_options other = usual;
  lac_error err = {0};
  other.seed = 6;
  convert_well(&raw, &whole, &usual);
  convert_well(&raw, &out, &other);
  assert_int_equal(convert(&raw, &out, &usual, NULL, &err), LAC_EXISTS);
  assert_non_null(strstr(err.text, "a conversion of other images or with other options"));
  laci_imagenet_options force = usual;
  force.force = true;
  convert_well(&raw, &out, &force);
  expect_same_files(&whole, &out);
  char path[FOLDER_PATH];
  path_in(path, &out, ".lacuna-imagenet");
  assert_int_equal(unlink(path), 0);
  assert_int_equal(convert(&raw, &out, &usual, NULL, &err), LAC_EXISTS);
  convert_well(&raw, &out, &force);
  add_text(&out, ".lacuna-imagenet", "something else\n");
  assert_int_equal(convert(&raw, &out, &usual, NULL, &err), LAC_EXISTS);
  remove_folder(&raw);
  remove_folder(&out);
  remove_folder(&whole);
}

/* ---- What is refused ---- */

static void raw_data_that_do_not_fit_are_refused(void **state) {
  (void)state;
  folder raw = make_folder();
  expect_refusal(&raw, &usual, LAC_NOT_FOUND, ": no images, wanted ILSVRC2012_img_train.tar and");
  remove_folder(&raw);
  raw = make_folders();
  laci_imagenet_options none = usual;
  none.shards = 0;
  expect_refusal(&raw, &none, LAC_BAD_ARGUMENT, "0 train shards, wanted 1 to 99999");
  add_text(&raw, "synset_labels.txt", "n01440764\nn02099601\nn15075141\nn02099601\n");
  expect_refusal(&raw, &usual, LAC_BAD_FILE,
                 "synset_labels.txt: 4 lines, wanted one for each of the 5 images of ");
  add_text(&raw, "synset_labels.txt", "n01440764\n490\nn15075141\nn02099601\nn01440764\n");
  expect_refusal(&raw, &usual, LAC_BAD_FILE,
                 "synset_labels.txt: line 2: '490' is none of ImageNet's 1000 classes");
  char path[FOLDER_PATH];
  path_in(path, &raw, "synset_labels.txt");
  assert_int_equal(unlink(path), 0);
  expect_refusal(&raw, &usual, LAC_NOT_FOUND, "synset_labels.txt: cannot open");
  add_text(&raw, "synset_labels.txt", LABELS);
  add_picture(&raw, "img_train/cats/1.jpg");
  expect_refusal(&raw, &usual, LAC_BAD_FILE, "'cats' is none of ImageNet's 1000 classes");
  remove_folder(&raw);
}

#ifndef LAC_WITHOUT_ARCHIVE
static void cut_off_archives_are_refused(void **state) {
  (void)state;
  folder raw = make_archives();
  bytes tar = train_archive();
  for (size_t n = 0; n < tar.n - 1; n += n % SECTOR ? SECTOR - 100 : 100) {
    add_bytes(&raw, "ILSVRC2012_img_train.tar", tar.at, n);
    expect_refusal(&raw, &usual, LAC_BAD_FILE, "ILSVRC2012_img_train.tar: ");
  }
  free(tar.at);
  remove_folder(&raw);
}

/** The outer archive is whole, but one in it is not. */
static void an_archive_in_the_archive_that_is_cut_off_is_named(void **state) {
  (void)state;
  folder raw = make_archives();
  bytes inner = archive_of(train, N_TRAIN, synsets[0]), tar = {0};
  inner.n -= 3 * SECTOR;
  add_member(&tar, "n01440764.tar", &inner);
  end_archive(&tar);
  add_bytes(&raw, "ILSVRC2012_img_train.tar", tar.at, tar.n);
  expect_refusal(&raw, &usual, LAC_BAD_FILE, "n01440764.tar: no whole tar archive: it is cut off");
  tar.n = 0;
  free(inner.at);
  inner = (bytes){0};
  add_member(&tar, "cats.tar", &inner);
  end_archive(&tar);
  add_bytes(&raw, "ILSVRC2012_img_train.tar", tar.at, tar.n);
  expect_refusal(&raw, &usual, LAC_BAD_FILE, "'cats.tar' is none of ImageNet's 1000 classes");
  free(tar.at);
  remove_folder(&raw);
}
#endif

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  folder raw = make_folders(), out = make_folder();
  laci_imagenet_options o = usual;
  o.threads = 1;
  for (long n = 1;; n += n < 60 ? 1 : 7) {
    laci_memory_fail_from(n);
    lac_status st = convert(&raw, &out, &o, NULL, NULL);
    bool reached = !laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    if (!reached) break;
    assert_int_not_equal(st, LAC_OK);
    laci_temporary_remove_registered();
  }
  remove_folder(&raw);
  remove_folder(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(archives_and_folders_give_the_same_shards),
      cmocka_unit_test(every_image_has_its_label),
      cmocka_unit_test(broken_images_are_listed),
      cmocka_unit_test(what_is_no_plain_jpeg_becomes_one),
      cmocka_unit_test(an_interrupted_run_goes_on_to_the_same_shards),
      cmocka_unit_test(a_journal_cut_off_anywhere_is_gone_on_from),
      cmocka_unit_test(another_conversion_is_kept_apart),
      cmocka_unit_test(raw_data_that_do_not_fit_are_refused),
#ifndef LAC_WITHOUT_ARCHIVE
      cmocka_unit_test(cut_off_archives_are_refused),
      cmocka_unit_test(an_archive_in_the_archive_that_is_cut_off_is_named),
#endif
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
