/* SPDX-License-Identifier: Apache-2.0
 * The report's JSON: the fields that INTERFACE promises, nulls, names of any bytes, equal bytes for
 * equal reports. */
#include "report/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "lacuna/prune.h"
#include "lacuna/report.h"
#include "lacuna/version.h"

static const char *const consumers[] = {"layer1.0.conv2"};
static const int32_t permutation[] = {0, 2, 1, 3};
static const lac_layer layers[] = {
    {.name = "layer1.0.conv2",
     .op = "Conv",
     .weight = "layer1.0.conv2.weight",
     .dtype = LAC_DTYPE_F32,
     .rank = 4,
     .shape = {8, 4, 3, 3},
     .channels_in = 4,
     .channels_out = 8,
     .convolution_groups = 1,
     .measured = true,
     .eligible = true,
     .pruned = true,
     .permuted_c = true,
     .permuted_k = true,
     .permutable_c = true,
     .permutable_k = true,
     .searchable = true,
     .holds_pattern = true,
     .group_c = 1,
     .group_k = 2,
     .n_zeros = 144,
     .n_elements = 288,
     .zero_ratio = 0.5,
     .kept_identity = 10.1,
     .kept = 11.25,
     .total = 14},
    {.name = "bad \xff\xc3\xa9 name",
     .op = "Gemm",
     .weight = "w\"\n",
     .dtype = LAC_DTYPE_F16,
     .rank = 2,
     .shape = {10, 4},
     .group_c = -1,
     .group_k = -1,
     .kept = NAN,
     .total = INFINITY,
     .reason = "10 output channels, not a multiple of 8"},
};
static const lac_group groups[] = {
    {.id = 1,
     .channels = 4,
     .n_consumers = 1,
     .consumers = consumers,
     .permutation = permutation,
     .kept_identity = 1,
     .kept = 2,
     .upper_bound = 3,
     .efficacy = 50,
     .strategy = "exhaustive",
     .iterations = 3,
     .proven = true},
    {.id = 2,
     .channels = 8,
     .n_producers = 1,
     .producers = consumers,
     .frozen = true,
     .cause = "network output"},
};
static const lac_report report = {.verb = "prune",
                                  .model = "net.onnx",
                                  .pattern = "2:4",
                                  .pattern_n = 2,
                                  .pattern_m = 4,
                                  .seed = 7,
                                  .summary = {.layers = 2,
                                              .eligible = 1,
                                              .permuted = 1,
                                              .pruned = 1,
                                              .groups = 1,
                                              .kept_before = 10.1,
                                              .kept_after = 11.25,
                                              .verified = true,
                                              .max_abs_error = 1e-15,
                                              .max_abs_output = 3,
                                              .reordered = 1,
                                              .values_compared = 54,
                                              .values_skipped = 18,
                                              .outputs = 2,
                                              .outputs_compared = 1,
                                              .proof_engine = "plain",
                                              .verification = LAC_VERIFIED_IN_PART,
                                              .reached = "lstm1",
                                              .skipped_reason = "LSTM is not known"},
                                  .n_layers = 2,
                                  .n_groups = 2,
                                  .layers = layers,
                                  .groups = groups};

static json_t *parsed(const lac_report *from) {
  char *text = NULL;
  lac_error err = {0};
  assert_int_equal(laci_report_json(from, &text, &err), LAC_OK);
  size_t n = strlen(text);
  assert_true(n > 2 && text[n - 1] == '\n' && text[n - 2] == '}');
  json_error_t where;
  json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &where);
  if (!object) fail_msg("line %d: %s", where.line, where.text);
  laci_free(text);
  return object;
}

static void has_the_promised_fields(void **state) {
  (void)state;
  static const char *const top[] = {"lacuna", "verb",    "model",  "pattern",
                                    "seed",   "summary", "layers", "groups"};
  static const char *const summary[] = {
      "layers",      "eligible",   "permuted",      "pruned",         "groups",
      "kept_before", "kept_after", "max_abs_error", "max_abs_output", "search_seconds"};
  static const char *const layer[] = {
      "name",   "op",       "weight",  "shape",   "channels_in", "channels_out",  "eligible",
      "pruned", "permuted", "group_c", "group_k", "zero_ratio",  "holds_pattern", "kept_identity",
      "kept",   "total",    "reason"};
  static const char *const group[] = {"id",     "channels",    "consumers",   "producers",
                                      "frozen", "cause",       "permutation", "kept_identity",
                                      "kept",   "upper_bound", "efficacy"};
  json_t *object = parsed(&report);
#define HAS(in, keys)                                                                      \
  for (size_t i = 0; i < sizeof(keys) / sizeof *(keys); i++) {                             \
    if (!json_object_get((in), (keys)[i])) fail_msg("%s has no field %s", #in, (keys)[i]); \
  }
  HAS(object, top)
  HAS(json_object_get(object, "summary"), summary)
  HAS(json_array_get(json_object_get(object, "layers"), 0), layer)
  HAS(json_array_get(json_object_get(object, "groups"), 0), group)
#undef HAS
  json_decref(object);
}

static void holds_the_values(void **state) {
  (void)state;
  json_t *object = parsed(&report);
  const char *pattern, *name, *k, *c, *consumer;
  int seed, group_c, channels, place, frozen;
  double kept, ratio;
  json_error_t why;
  int bad = json_unpack_ex(
      object, &why, 0,
      "{s:s, s:i, s:[{s:s, s:[s, s], s:i, s:f, s:f}], s:[{s:i, s:[s], s:[i, i]}, {s:b, s:n}]}",
      "pattern", &pattern, "seed", &seed, "layers", "name", &name, "permuted", &k, &c, "group_c",
      &group_c, "zero_ratio", &ratio, "kept_identity", &kept, "groups", "channels", &channels,
      "consumers", &consumer, "permutation", &(int){0}, &place, "frozen", &frozen, "permutation");
  if (bad) fail_msg("%s", why.text);
  assert_string_equal(pattern, "2:4");
  assert_int_equal(seed, 7);
  assert_string_equal(name, "layer1.0.conv2");
  assert_string_equal(k, "K");
  assert_string_equal(c, "C");
  assert_int_equal(group_c, 1);
  assert_true(ratio == 0.5);
  assert_true(kept == 10.1); /* all 17 digits came through */
  assert_int_equal(channels, 4);
  assert_string_equal(consumer, "layer1.0.conv2");
  assert_int_equal(place, 2);
  assert_true(frozen);
  const json_t *unknown = json_array_get(json_object_get(object, "layers"), 1);
  assert_true(json_is_null(json_object_get(unknown, "zeros")));
  assert_true(json_is_null(json_object_get(unknown, "zero_ratio")));
  json_decref(object);
}

/* What the verification did not reach is said, and what may move is not what moved. */
static void says_what_was_verified_and_what_moved(void **state) {
  (void)state;
  json_t *object = parsed(&report);
  const char *engine, *reason, *k, *c;
  int reordered, values, skipped, outputs, compared;
  json_error_t why;
  int bad = json_unpack_ex(
      object, &why, 0, "{s:{s:i, s:{s:s, s:i, s:i, s:i, s:i, s:s}}, s:[{s:[s, s]}, {s:[]}]}",
      "summary", "reordered", &reordered, "proof", "engine", &engine, "values", &values, "skipped",
      &skipped, "outputs", &outputs, "outputs_compared", &compared, "reason", &reason, "layers",
      "permutable", &k, &c, "permutable");
  if (bad) fail_msg("%s", why.text);
  assert_string_equal(reason, "LSTM is not known");
  assert_true(reordered == 1 && values == 54 && skipped == 18 && outputs == 2 && compared == 1);
  const char *said, *reached;
  bad = json_unpack_ex(object, &why, 0, "{s:{s:s, s:i, s:i, s:s, s:s}}", "verification", "state",
                       &said, "outputs", &outputs, "outputs_compared", &compared, "reached",
                       &reached, "reason", &reason);
  if (bad) fail_msg("%s", why.text);
  assert_string_equal(said, "partial");
  assert_string_equal(reached, "lstm1");
  json_decref(object);
}

static void each_state_of_a_verification_has_its_own_words(void **state) {
  (void)state;
  static const char *const words[] = {NULL, "verified", "partial", "not verified"};
  lac_report changed = report;
  for (int k = 0; k < 4; k++) {
    changed.summary.verification = (lac_verification_state)k;
    json_t *object = parsed(&changed);
    json_t *said = json_object_get(json_object_get(object, "verification"), "state");
    if (words[k]) assert_string_equal(json_string_value(said), words[k]);
    else assert_true(json_is_null(said));
    json_decref(object);
  }
}

static void what_is_not_there_is_null(void **state) {
  (void)state;
  json_t *object = parsed(&report);
  json_t *layer = json_array_get(json_object_get(object, "layers"), 1);
  static const char *const nulls[] = {"group_c", "group_k", "kept", "total"};
  for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++) {
    if (!json_is_null(json_object_get(layer, nulls[i]))) fail_msg("%s is not null", nulls[i]);
  }
  assert_int_equal(json_array_size(json_object_get(layer, "permuted")), 0);
  json_decref(object);
}

static void names_may_hold_any_bytes(void **state) {
  (void)state;
  json_t *object = parsed(&report);
  json_t *layer = json_array_get(json_object_get(object, "layers"), 1);
  assert_string_equal(json_string_value(json_object_get(layer, "name")),
                      "bad \xEF\xBF\xBD\xc3\xa9 name");
  assert_string_equal(json_string_value(json_object_get(layer, "weight")), "w\"\n");
  json_decref(object);
}

static void a_large_seed_keeps_its_digits(void **state) {
  (void)state;
  lac_report large = report;
  large.seed = UINT64_MAX;
  json_t *object = parsed(&large);
  assert_string_equal(json_string_value(json_object_get(object, "seed")), "18446744073709551615");
  json_decref(object);
}

static void the_same_report_gives_the_same_bytes(void **state) {
  (void)state;
  char *a = NULL, *b = NULL;
  assert_int_equal(laci_report_json(&report, &a, NULL), LAC_OK);
  assert_int_equal(laci_report_json(&report, &b, NULL), LAC_OK);
  assert_string_equal(a, b);
  laci_free(a);
  laci_free(b);
}

static void fails_cleanly_without_memory(void **state) {
  (void)state;
  for (long n = 1; n < 1000; n++) {
    char *text = NULL;
    laci_memory_fail_from(n);
    lac_status st = laci_report_json(&report, &text, NULL);
    laci_memory_fail_from(0);
    laci_free(text);
    if (!st) return;
    assert_int_equal(st, LAC_NO_MEMORY);
    assert_null(text);
  }
  fail_msg("never succeeded");
}

static void repairs_what_is_not_utf8(void **state) {
  (void)state;
#define R "\xEF\xBF\xBD"
  static const char *const pairs[][2] = {
      {"", ""},
      {"plain", "plain"},
      {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
      {"\xff", R},
      {"cut \xe2\x82", "cut " R R},
      {"overlong \xc0\xaf", "overlong " R R},
      {"surrogate \xed\xa0\x80", "surrogate " R R R},
      {"beyond \xf4\x90\x80\x80", "beyond " R R R R},
      {"alone \x80.", "alone " R "."},
  };
#undef R
  laci_arena arena = {0};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    char *clean = laci_utf8_replace_invalid(&arena, pairs[i][0]);
    assert_non_null(clean);
    assert_string_equal(clean, pairs[i][1]);
  }
  laci_arena_clear(&arena);
}

static void a_run_is_marked_with_all_digits_of_its_seed(void **state) {
  (void)state;
  const laci_run_mark mark = {.started = "2024-05-01T10:00:00Z",
                              .network = "bad \xff name",
                              .seed = UINT64_MAX,
                              .steps = 12,
                              .options = "\"epochs\": 3",
                              .processor = "a processor",
                              .instructions = "avx2",
                              .system = "Linux 6.1",
                              .compiler = "12.2",
                              .threads = 2,
                              .processes = 1,
                              .format = "arrays",
                              .images = 50,
                              .test_images = 7,
                              .classes = 10,
                              .data_hash = 0xABCDEF};
  char *text = NULL;
  assert_int_equal(laci_run_mark_json(&mark, &text, NULL), LAC_OK);
  json_t *object = json_loads(text, 0, NULL);
  assert_string_equal(json_string_value(json_object_get(object, "lacuna")), lac_version());
  assert_non_null(strstr(text,
                         ",\n  \"started\": \"2024-05-01T10:00:00Z\",\n"
                         "  \"network\": \"bad \xef\xbf\xbd name\",\n"
                         "  \"seed\": \"18446744073709551615\",\n"
                         "  \"steps\": 12,\n  \"options\": {\n    \"epochs\": 3\n  },\n"));
  const json_t *data = json_object_get(object, "data");
  assert_string_equal(json_string_value(json_object_get(data, "hash")), "0000000000abcdef");
  assert_int_equal(json_integer_value(json_object_get(data, "test_images")), 7);
  const json_t *machine = json_object_get(object, "machine");
  assert_string_equal(json_string_value(json_object_get(machine, "instructions")), "avx2");
  assert_int_equal(json_integer_value(json_object_get(machine, "threads")), 2);
  json_decref(object);
  laci_free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(has_the_promised_fields),
      cmocka_unit_test(holds_the_values),
      cmocka_unit_test(says_what_was_verified_and_what_moved),
      cmocka_unit_test(each_state_of_a_verification_has_its_own_words),
      cmocka_unit_test(what_is_not_there_is_null),
      cmocka_unit_test(names_may_hold_any_bytes),
      cmocka_unit_test(a_large_seed_keeps_its_digits),
      cmocka_unit_test(the_same_report_gives_the_same_bytes),
      cmocka_unit_test(fails_cleanly_without_memory),
      cmocka_unit_test(repairs_what_is_not_utf8),
      cmocka_unit_test(a_run_is_marked_with_all_digits_of_its_seed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
