/* SPDX-License-Identifier: Apache-2.0
 * The page as a file: its parts, names that are markup, wholly or not at all. How it looks and
 * works in a browser: tests/interop/test_page.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "lacuna/model.h"
#include "lacuna/page.h"
#include "lacuna/prune.h"

static const char hostile[] =
    "</script><img src=x onerror=alert(1)><!-- & \xE2\x80\xA8 \xE2\x80\xA9 \"'";

static char folder[] = "/tmp/lacuna-page-XXXXXX";

static const char *path_of(const char *name) {
  static char path[128];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* The file as a zero-terminated text, freed by the caller. */
static char *read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  (void)fseek(file, 0, SEEK_END);
  long n = ftell(file);
  rewind(file);
  char *text = calloc((size_t)n + 1, 1);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, (size_t)n, file), n);
  (void)fclose(file);
  return text;
}

static int count_text(const char *text, const char *wanted) {
  int n = 0;
  for (const char *at = strstr(text, wanted); at; at = strstr(at + 1, wanted)) n++;
  return n;
}

/* The JSON of a data element, parsed. */
static json_t *data_of(const char *page, const char *id) {
  char begin[128];
  (void)snprintf(begin, sizeof begin, "<script type=\"application/json\" id=\"%s\">", id);
  const char *at = strstr(page, begin);
  if (!at) return NULL;
  at += strlen(begin);
  const char *end = strstr(at, "</script>");
  assert_non_null(end);
  json_t *root = json_loadb(at, (size_t)(end - at), 0, NULL);
  assert_non_null(root);
  return root;
}

static lac_page page_of(const char *report) {
  lac_page page = LAC_SIZED(lac_page);
  page.report = report;
  return page;
}

static void keeps_hostile_texts_as_texts(void **state) {
  (void)state;
  lac_error err = {0};
  char report[512];
  const char *path = path_of("hostile.html"), *const warnings[] = {hostile};
  (void)snprintf(report, sizeof report,
                 "{\"verb\": \"eval\", \"model\": \"a </title><script>alert(1)</script>\", "
                 "\"layers\": [{\"name\": \"</script><b>\xE2\x80\xA8\"}]}");
  lac_page page = page_of(report);
  page.command = hostile;
  page.warnings = warnings;
  page.n_warnings = 1;
  if (lac_page_write(&page, path, false, NULL, &err)) fail_msg("%s", err.text);
  char *text = read_text(path);
  assert_null(strstr(text, "<img"));
  assert_null(strstr(text, "alert(1)</script>"));
  assert_null(strstr(text, "\xE2\x80\xA8"));
  assert_int_equal(count_text(text, "<script"), count_text(text, "</script>"));
  assert_int_equal(count_text(text, "<title>"), 1);
  json_t *about = data_of(text, "data-about"), *shown = data_of(text, "data-report");
  assert_string_equal(json_string_value(json_object_get(about, "command")), hostile);
  assert_string_equal(json_string_value(json_array_get(json_object_get(about, "warnings"), 0)),
                      hostile);
  const json_t *layer = json_array_get(json_object_get(shown, "layers"), 0);
  assert_string_equal(json_string_value(json_object_get(layer, "name")),
                      "</script><b>\xE2\x80\xA8");
  json_decref(about);
  json_decref(shown);
  free(text);
}

static void needs_nothing_from_outside(void **state) {
  (void)state;
  const lac_page page = page_of("{\"verb\": \"eval\"}");
  const char *path = path_of("alone.html");
  lac_error err = {0};
  if (lac_page_write(&page, path, false, NULL, &err)) fail_msg("%s", err.text);
  char *text = read_text(path);
  assert_non_null(strstr(text, "Content-Security-Policy"));
  assert_int_equal(count_text(text, "src=\""), 0);
  assert_int_equal(count_text(text, "http"),
                   count_text(text, "http-equiv") + count_text(text, "http://www.w3.org/2000/svg"));
  assert_int_equal(count_text(text, "@import"), 0);
  free(text);
}

static void replaces_a_file_only_by_force(void **state) {
  (void)state;
  const lac_page page = page_of("{\"verb\": \"eval\"}");
  const char *path = path_of("twice.html");
  lac_error err = {0};
  assert_int_equal(lac_page_write(&page, path, false, NULL, &err), LAC_OK);
  assert_int_equal(lac_page_write(&page, path, false, NULL, &err), LAC_EXISTS);
  char *first = read_text(path);
  assert_int_equal(lac_page_write(&page, path, true, NULL, &err), LAC_OK);
  char *second = read_text(path);
  assert_string_equal(first, second);
  free(first);
  free(second);
}

static void refuses_what_is_no_report(void **state) {
  (void)state;
  lac_error err = {0};
  const char *path = path_of("bad.html");
  const lac_page none = LAC_SIZED(lac_page), broken = page_of("{\"verb\": ");
  lac_page log = page_of("{}");
  log.log = "[1, ";
  assert_int_equal(lac_page_write(&none, path, false, NULL, &err), LAC_BAD_ARGUMENT);
  assert_int_equal(lac_page_write(&broken, path, false, NULL, &err), LAC_BAD_FILE);
  assert_int_equal(lac_page_write(&log, path, false, NULL, &err), LAC_BAD_FILE);
  assert_int_equal(lac_page_write(NULL, path, false, NULL, &err), LAC_BAD_ARGUMENT);
  assert_int_not_equal(access(path, F_OK), 0);
}

/* A network whose drawing cannot be made has a page all the same. */
static void says_why_there_is_no_drawing(void **state) {
  (void)state;
  lac_error err = {0};
  lac_model *model = NULL;
  lac_report *layers = NULL;
  const lac_options options = lac_options_default();
  const char *path = path_of("list.html");
  if (lac_model_load(LAC_SOURCE_DIR "/examples/digits/digits.onnx", NULL, &model, &err))
    fail_msg("%s", err.text);
  if (lac_inspect(model, &options, &layers, &err)) fail_msg("%s", err.text);
  assert_int_equal(setenv("LACUNA_DRAW", "/nonexistent/lacuna-draw", 1), 0);
  lac_page page = LAC_SIZED(lac_page);
  page.model = model;
  page.layers = layers;
  if (lac_page_write(&page, path, false, NULL, &err)) fail_msg("%s", err.text);
  assert_int_equal(unsetenv("LACUNA_DRAW"), 0);
  char *text = read_text(path);
  json_t *about = data_of(text, "data-about"), *graph = data_of(text, "data-graph");
  json_t *shown = data_of(text, "data-report");
  assert_non_null(json_string_value(json_object_get(about, "no_drawing")));
  assert_true(json_array_size(json_object_get(graph, "nodes")) > 10);
  assert_string_equal(json_string_value(json_object_get(shown, "verb")), "inspect");
  assert_null(strstr(text, "<template id=\"drawing\">"));
  json_decref(about);
  json_decref(graph);
  json_decref(shown);
  free(text);
  lac_report_destroy(layers);
  lac_model_destroy(model);
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char command[128];
  (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command); /* NOLINT: a path of this test */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_hostile_texts_as_texts), cmocka_unit_test(needs_nothing_from_outside),
      cmocka_unit_test(replaces_a_file_only_by_force), cmocka_unit_test(refuses_what_is_no_report),
      cmocka_unit_test(says_why_there_is_no_drawing)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
