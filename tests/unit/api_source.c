/* SPDX-License-Identifier: Apache-2.0
 * A model from a path, from memory and from a caller's function is the same model, and whatever a
 * function says that is not true becomes a clear error. */
#include "onnx_build.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "lacuna/lacuna.h"
#include "support/load_bytes.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"
enum { DATA = 1 << 17 };

/* ---- A store of two files, and how it lies ---- */

typedef struct store {
  const uint8_t *model, *data; /* [size], [n_data] w.bin */
  uint64_t size, n_data;
  size_t most;       /* bytes that a call gives at most; 0: all */
  uint64_t ends_at;  /* no byte from here on is given; 0: all are */
  int fails_at;      /* the call that fails; 0: none */
  int changes_at;    /* calls from here on give other bytes; 0: none */
  uint64_t claims;   /* size of w.bin that is said; 0: the right one */
  size_t adds;       /* bytes that are said to be given beyond those asked for */
  lac_status status; /* of the failing call */
  const char *text;  /* its text; NULL: none */
  int n_calls;
  atomic_int n_inside; /* calls that run now */
} store;

static lac_status read_store(void *context, const char *name, uint64_t offset, void *to, size_t *n,
                             lac_error *err) {
  store *s = context;
  const uint64_t size = name[0] ? s->n_data : s->size, end = s->ends_at ? s->ends_at : size;
  assert_int_equal(atomic_fetch_add(&s->n_inside, 1), 0);
  if (name[0]) assert_string_equal(name, "w.bin");
  s->n_calls++;
  if (s->fails_at && s->n_calls >= s->fails_at) {
    if (s->text) (void)snprintf(err->text, sizeof err->text, "%s", s->text);
    atomic_fetch_sub(&s->n_inside, 1);
    return s->status;
  }
  size_t some = offset < end ? *n : 0;
  if (some > end - offset) some = (size_t)(end - offset);
  if (s->most && some > s->most) some = s->most;
  if (some) memcpy(to, (name[0] ? s->data : s->model) + offset, some);
  if (some && s->changes_at && s->n_calls >= s->changes_at) ((uint8_t *)to)[some - 1] ^= 1;
  *n = s->adds ? *n + s->adds : some;
  atomic_fetch_sub(&s->n_inside, 1);
  return LAC_OK;
}

static lac_status size_in_store(void *context, const char *name, uint64_t *size_bytes,
                                lac_error *err) {
  const store *s = context;
  if (strcmp(name, "w.bin") != 0) {
    (void)snprintf(err->text, sizeof err->text, "no member %s", name);
    return LAC_NOT_FOUND;
  }
  *size_bytes = s->claims ? s->claims : s->n_data;
  return LAC_OK;
}

static lac_load_options options_of(store *s) {
  lac_load_options o = lac_load_options_default();
  o.read = read_store;
  o.find_size = size_in_store;
  o.size_bytes = s->size;
  o.read_context = s;
  return o;
}

static lac_status load_store(store *s, lac_model **model, lac_error *err) {
  const lac_load_options o = options_of(s);
  return lac_model_load(NULL, &o, model, err);
}

/* ---- Files ---- */

static uint8_t *digits;
static size_t n_digits;
static uint8_t *outside; /* a model whose weight is in w.bin */
static size_t n_outside;
static uint8_t *weight; /* [DATA] */

static uint8_t *model_with_data(const char *location, size_t *n) {
  build b;
  build_init(&b);
  build_input(&b, "x", "4");
  build_node(&b, b.graph, "Relu", "x", "y");
  build_output(&b, "y");
  PUSH(&b, b.graph, initializer, build_external(&b, "w", DATA / 4, location, "0", NULL));
  uint8_t *bytes = build_bytes(&b, n), *copy = laci_alloc(*n, 1);
  memcpy(copy, bytes, *n);
  build_clear(&b);
  return copy;
}

static int set_up(void **state) {
  (void)state;
  digits = read_bytes(DIGITS, &n_digits);
  outside = model_with_data("w.bin", &n_outside);
  weight = laci_alloc(DATA, 1);
  for (size_t at = 0; at < DATA; at++) weight[at] = (uint8_t)(at * 7 + at / 251);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  laci_free(digits);
  laci_free(outside);
  laci_free(weight);
  return 0;
}

static store digits_store(void) { return (store){.model = digits, .size = n_digits}; }

static store outside_store(void) {
  return (store){.model = outside, .size = n_outside, .data = weight, .n_data = DATA};
}

static void expect_same_tensors(const lac_model *a, const lac_model *b) {
  assert_int_equal(lac_model_tensor_count(a), lac_model_tensor_count(b));
  for (int t = 0; t < lac_model_tensor_count(a); t++) {
    lac_tensor x = LAC_SIZED(lac_tensor), y = LAC_SIZED(lac_tensor);
    assert_int_equal(lac_model_tensor(a, t, &x, NULL), LAC_OK);
    assert_int_equal(lac_model_tensor(b, t, &y, NULL), LAC_OK);
    assert_string_equal(x.name, y.name);
    assert_int_equal(x.size_bytes, y.size_bytes);
    if (x.size_bytes) assert_memory_equal(x.bytes, y.bytes, x.size_bytes);
  }
}

/* ---- What holds ---- */

static void every_source_gives_the_same_model(void **state) {
  (void)state;
  lac_model *path = NULL, *memory = NULL, *function = NULL;
  lac_error err = {0};
  store s = digits_store();
  if (lac_model_load(DIGITS, NULL, &path, &err)) fail_msg("%s", err.text);
  if (load_bytes(digits, n_digits, &memory, &err)) fail_msg("%s", err.text);
  s.most = 1000; /* fewer bytes than asked for are no failure */
  if (load_store(&s, &function, &err)) fail_msg("%s", err.text);
  expect_same_tensors(path, memory);
  expect_same_tensors(path, function);
  assert_true(s.n_calls > 20);
  lac_model_destroy(function);
  lac_model_destroy(memory);
  lac_model_destroy(path);
}

static void packs_come_from_every_source(void **state) {
  (void)state;
  folder dir;
  lac_model *model = NULL, *memory = NULL, *function = NULL;
  lac_report *report = NULL;
  lac_options options = lac_options_default();
  lac_error err = {0};
  store s = {.most = 4096};
  size_t n;
  folder_make(&dir);
  const char *path = in_folder(&dir, "a.pack");
  assert_int_equal(lac_model_load(DIGITS, NULL, &model, &err), LAC_OK);
  assert_int_equal(lac_prune(model, &options, &report, &err), LAC_OK);
  assert_int_equal(lac_pack_save(model, path, &options, false, NULL, &err), LAC_OK);
  uint8_t *bytes = read_bytes(path, &n);
  s.model = bytes;
  s.size = n;
  if (load_bytes(bytes, n, &memory, &err)) fail_msg("%s", err.text);
  if (load_store(&s, &function, &err)) fail_msg("%s", err.text);
  expect_same_tensors(model, memory);
  expect_same_tensors(model, function);
  lac_model_destroy(function);
  bytes[n / 2] ^= 1;
  assert_int_equal(load_store(&s, &function, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "damaged pack"));
  laci_free(bytes);
  lac_report_destroy(report);
  lac_model_destroy(memory);
  lac_model_destroy(model);
  folder_remove(&dir);
}

static void external_data_is_asked_for_by_name(void **state) {
  (void)state;
  store s = outside_store();
  lac_model *model = NULL;
  lac_error err = {0};
  lac_tensor tensor = LAC_SIZED(lac_tensor);
  if (load_store(&s, &model, &err)) fail_msg("%s", err.text);
  if (lac_model_find_tensor(model, "w", &tensor, &err)) fail_msg("%s", err.text);
  assert_int_equal(tensor.size_bytes, DATA);
  assert_memory_equal(tensor.bytes, weight, DATA);
  assert_string_equal(lac_model_data_file(model, 0), "w.bin");
  lac_model_destroy(model);
}

static void one_source_is_wanted(void **state) {
  (void)state;
  store s = digits_store();
  lac_model *model = NULL;
  lac_error err = {0};
  lac_load_options o = options_of(&s);
  assert_int_equal(lac_model_load(DIGITS, &o, &model, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "two of path, options.bytes and options.read: wanted one"));
  o.bytes = digits;
  assert_int_equal(lac_model_load(DIGITS, &o, &model, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "all three"));
  assert_int_equal(lac_model_load(NULL, NULL, &model, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "none of path"));
  o = lac_load_options_default();
  o.data_dir = ".";
  assert_int_equal(lac_model_load(DIGITS, &o, &model, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "options.data_dir, which belongs to"));
  assert_null(model);
}

/* ---- Lies ---- */

static void expect_load_fails(store s, lac_status wanted, const char *words) {
  lac_model *model = NULL;
  lac_error err = {0};
  const size_t before = laci_memory_total_allocated();
  const lac_status st = load_store(&s, &model, &err);
  if (st != wanted || err.status != wanted || !strstr(err.text, words)) {
    fail_msg("status %d, \"%s\", wanted \"%s\"", (int)st, err.text, words);
  }
  assert_null(model);
  assert_true(laci_memory_total_allocated() - before < 64 << 20);
}

static void lies_about_sizes_are_found(void **state) {
  (void)state;
  store s = digits_store();
  s.size = n_digits + 1; /* reading at the end gives nothing */
  s.ends_at = n_digits;
  expect_load_fails(s, LAC_IO, "the model: it ends at byte");
  s.size = UINT64_C(1) << 39; /* a huge file of which little is there */
  expect_load_fails(s, LAC_IO, "the model: it ends at byte 549754765312, but its size was");
  s.size = UINT64_C(1) << 62;
  expect_load_fails(s, LAC_UNSUPPORTED, "the model: 4611686018427387904 bytes, wanted at most");
  s = digits_store();
  s.size = 0;
  expect_load_fails(s, LAC_BAD_FILE, "an empty file");
  s = outside_store();
  s.claims = UINT64_C(1) << 39;
  expect_load_fails(s, LAC_IO, "w.bin: it ends at byte");
  s.claims = DATA / 2;
  expect_load_fails(s, LAC_BAD_FILE, "of external data 'w.bin', which has 65536");
  s = digits_store();
  s.adds = 3;
  expect_load_fails(s, LAC_IO, "the model: options.read gave ");
}

static void failures_are_handed_on(void **state) {
  (void)state;
  for (int at = 1; at <= 3; at++) {
    store s = digits_store();
    s.fails_at = at;
    s.status = LAC_PEER;
    s.text = "the line is down";
    expect_load_fails(s, LAC_PEER, "the model: the line is down");
    s.text = NULL;
    expect_load_fails(s, LAC_PEER, "the model: options.read failed: ");
    s.status = (lac_status)-7; /* none of lac_status */
    expect_load_fails(s, LAC_IO, "the model: options.read failed: ");
  }
  store s = outside_store();
  size_t n;
  uint8_t *other = model_with_data("other.bin", &n);
  s.model = other;
  s.size = n;
  expect_load_fails(s, LAC_NOT_FOUND, "other.bin: no member other.bin");
  laci_free(other);
  s.model = other = model_with_data("../w.bin", &n); /* no function sees such a name */
  s.size = n;
  expect_load_fails(s, LAC_BAD_FILE, "'../w.bin' is not in the model's folder");
  laci_free(other);
  s = outside_store();
  lac_load_options o = options_of(&s);
  lac_model *model = NULL;
  lac_error err = {0};
  o.find_size = NULL;
  assert_int_equal(lac_model_load(NULL, &o, &model, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "external data 'w.bin', but no options.find_size"));
}

/* Fails or changes when the weight is read, long after the model was loaded. */
static void late_failures_name_the_file(void **state) {
  (void)state;
  for (int lie = 0; lie < 3; lie++) {
    store s = outside_store();
    lac_model *model = NULL;
    lac_error err = {0};
    lac_tensor tensor = LAC_SIZED(lac_tensor);
    assert_int_equal(load_store(&s, &model, &err), LAC_OK);
    if (lie == 0) s.fails_at = s.n_calls + 1;
    if (lie == 1) s.ends_at = 10;
    if (lie == 2) s.changes_at = s.n_calls + 1; /* the last byte was read at the opening */
    s.status = LAC_IO;
    s.text = "gone";
    assert_int_equal(lac_model_find_tensor(model, "w", &tensor, &err), LAC_IO);
    const char *words[] = {"w.bin: gone", "w.bin: it ends at byte 10", "w.bin: was changed"};
    if (!strstr(err.text, words[lie])) fail_msg("%s", err.text);
    lac_model_destroy(model);
  }
}

static void no_allocation_that_fails_leaks(void **state) {
  (void)state;
  for (long n = 1;; n++) {
    store s = outside_store();
    lac_model *model = NULL;
    lac_error err = {0};
    laci_memory_fail_from(n);
    const lac_status st = load_store(&s, &model, &err);
    laci_memory_fail_from(0);
    lac_model_destroy(model);
    if (!st) break;
    if (st != LAC_NO_MEMORY || n > 100000) fail_msg("allocation %ld: %s", n, err.text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_source_gives_the_same_model),
                                     cmocka_unit_test(packs_come_from_every_source),
                                     cmocka_unit_test(external_data_is_asked_for_by_name),
                                     cmocka_unit_test(one_source_is_wanted),
                                     cmocka_unit_test(lies_about_sizes_are_found),
                                     cmocka_unit_test(failures_are_handed_on),
                                     cmocka_unit_test(late_failures_name_the_file),
                                     cmocka_unit_test(no_allocation_that_fails_leaks)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
