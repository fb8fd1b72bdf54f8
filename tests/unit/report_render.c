/* SPDX-License-Identifier: Apache-2.0
 * graphviz in a process of its own: killed, hanging, out of memory, without its plug-ins, missing
 * altogether, it is an error with a text, and nothing of what glib prints is seen. The programs in
 * its place are lines for /bin/sh. */
#include "report/render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "onnx_build.h"
#include "report/label.h"

static const char *real_program(void) {
  static char path[512];
  const char *build_dir = getenv("LAC_BUILD_DIR");
  (void)snprintf(path, sizeof path, "%s/libexec/lacuna/lacuna-draw",
                 build_dir ? build_dir : LAC_SOURCE_DIR "/build/release");
  return path;
}

static void write_graph(laci_label *graph) {
  laci_label_add_markup(graph, "digraph g { a [label=\"first\"]; a -> b; }\n");
}

/* Draws with the line in lacuna-draw's place. */
static lac_status draw_with(const char *line, double seconds, lac_error *err) {
  folder f;
  laci_label graph = {0};
  char *bytes = NULL;
  size_t size = 1;
  folder_make(&f);
  FILE *file = fopen(in_folder(&f, "draw"), "w");
  assert_non_null(file);
  assert_true(fprintf(file, "#!/bin/sh\n%s\n", line) > 0);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(in_folder(&f, "draw"), 0755), 0);
  assert_int_equal(setenv("LACUNA_DRAW", in_folder(&f, "draw"), 1), 0);
  write_graph(&graph);
  lac_status st = laci_render_within(&graph, LACI_PICTURE_SVG, seconds, &bytes, &size, err);
  assert_int_equal(unsetenv("LACUNA_DRAW"), 0);
  if (st) assert_true(!bytes && size == 0);
  else assert_true(bytes && size > 100 && strncmp(bytes, "<?xml", 5) == 0);
  laci_free(bytes);
  laci_label_clear(&graph);
  (void)unlink(in_folder(&f, "draw"));
  (void)rmdir(f.path);
  return st;
}

static void every_bad_end_has_its_text(void **state) {
  (void)state;
  static const struct {
    const char *line, *text;
  } cases[] = {
      {"kill -SEGV $$", "the drawing: graphviz ended by signal 11"},
      {"echo 'out of it' >&2; kill -ABRT $$", "the drawing: graphviz ended by signal 6: out of it"},
      {"cat > /dev/null; exit 1", "the drawing: graphviz ended early and gave no reason"},
      {"echo noise >&2; echo 'it cannot' >&2; exit 1", "the drawing: it cannot"},
      {"echo 1000; echo '<?xml'", "the drawing: graphviz ended early"}, /* half a drawing */
      {"echo 0", "the drawing: graphviz ended early"},
      {"echo '<?xml and so on'", "the drawing: graphviz ended early"},
      {"echo 99999999999999999999; echo x", "the drawing: graphviz ended early"},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    lac_error err = {0};
    assert_int_equal(draw_with(cases[at].line, 600, &err), LAC_UNSUPPORTED);
    if (strncmp(err.text, cases[at].text, strlen(cases[at].text)) != 0)
      fail_msg("'%s', wanted '%s'", err.text, cases[at].text);
  }
}

static void one_that_hangs_is_ended(void **state) {
  (void)state;
  lac_error err = {0};
  assert_int_equal(draw_with("cat > /dev/null; exec sleep 1000", 1, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text,
                      "the drawing: graphviz took longer than 1 s; a .dot file needs none "
                      "of it");
}

/* From nothing to enough: it starts or not, draws or not, and each time that is all. */
static void however_little_memory_it_has(void **state) {
  (void)state;
  int drawn = 0, failed = 0;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip(); /* these need terabytes of addresses */
#endif
  for (int kib = 2000; kib < 400000; kib += kib / 6) {
    char line[700];
    lac_error err = {0};
    (void)snprintf(line, sizeof line, "ulimit -v %d; exec %s \"$@\"", kib, real_program());
    lac_status st = draw_with(line, 60, &err);
    assert_true(st == LAC_OK || st == LAC_UNSUPPORTED);
    if (st) assert_true(strncmp(err.text, "the drawing: ", 13) == 0 && strlen(err.text) > 13);
    drawn += !st;
    failed += st != LAC_OK;
  }
  assert_true(drawn > 0 && failed > 3);
}

static void nothing_of_it_is_seen(void **state) {
  (void)state;
  char line[700];
  FILE *seen = tmpfile();
  assert_non_null(seen);
  int kept = dup(2);
  (void)snprintf(line, sizeof line, "echo '(x:1): Pango-CRITICAL **: oh' >&2; exec %s \"$@\"",
                 real_program());
  assert_true(kept > 2 && dup2(fileno(seen), 2) == 2);
  lac_status st = draw_with(line, 600, NULL), failed = draw_with("echo oh >&2; exit 3", 600, NULL);
  (void)dup2(kept, 2);
  (void)close(kept);
  assert_int_equal(st, LAC_OK);
  assert_int_equal(failed, LAC_UNSUPPORTED);
  assert_int_equal(fseek(seen, 0, SEEK_END), 0);
  assert_int_equal(ftell(seen), 0);
  (void)fclose(seen);
}

static void without_plug_ins_or_without_graphviz(void **state) {
  (void)state;
  laci_label graph = {0};
  char *bytes;
  size_t size;
  lac_error err = {0};
  write_graph(&graph);
  assert_int_equal(setenv("GVBINDIR", "/no/such/folder", 1), 0);
  assert_int_equal(laci_render(&graph, LACI_PICTURE_SVG, &bytes, &size, &err), LAC_UNSUPPORTED);
  assert_int_equal(unsetenv("GVBINDIR"), 0);
  assert_non_null(strstr(err.text, "the drawing: graphviz could not lay out the graph: "));
  assert_int_equal(setenv("LACUNA_DRAW", "/no/such/lacuna-draw", 1), 0);
  assert_int_equal(laci_render(&graph, LACI_PICTURE_SVG, &bytes, &size, &err), LAC_NOT_FOUND);
  assert_non_null(strstr(err.text, "the drawing: /no/such/lacuna-draw: it could not be started"));
  assert_int_equal(laci_render(&graph, LACI_PICTURE_DOT, &bytes, &size, &err), LAC_OK);
  assert_int_equal(unsetenv("LACUNA_DRAW"), 0);
  assert_int_equal(size, graph.n);
  assert_memory_equal(bytes, graph.text, size);
  laci_free(bytes);
  laci_label_clear(&graph);
}

static void a_graph_that_graphviz_cannot_read(void **state) {
  (void)state;
  laci_label graph = {0};
  char *bytes;
  size_t size;
  lac_error err = {0};
  laci_label_add_markup(&graph, "digraph { a -> ");
  assert_int_equal(laci_render(&graph, LACI_PICTURE_PNG, &bytes, &size, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "the drawing: graphviz could not read the graph: "));
  laci_label_clear(&graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_bad_end_has_its_text),
      cmocka_unit_test(one_that_hangs_is_ended),
      cmocka_unit_test(however_little_memory_it_has),
      cmocka_unit_test(nothing_of_it_is_seen),
      cmocka_unit_test(without_plug_ins_or_without_graphviz),
      cmocka_unit_test(a_graph_that_graphviz_cannot_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
