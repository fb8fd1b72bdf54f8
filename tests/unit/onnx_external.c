/* SPDX-License-Identifier: Apache-2.0
 * External data: where it may be, and the data files that saving makes. */
#include "graph/graph.h"
#include "onnx_build.h"

#include <sys/stat.h>

enum { PAGE = 4096 };

static uint8_t pattern(size_t at) { return (uint8_t)(at * 7 + at / 251); }

/** w.bin of n bytes, and model.onnx with x, y = Relu(x) and the tensors that add() makes. */
static void make_model(folder *dir, const char *data_name, size_t n, void (*add)(build *b)) {
  build b;
  uint8_t *data = laci_alloc(n, 1);
  for (size_t at = 0; at < n; at++) data[at] = pattern(at);
  write_bytes(in_folder(dir, data_name), data, n);
  laci_free(data);
  build_init(&b);
  build_input(&b, "x", "4");
  build_node(&b, b.graph, "Relu", "x", "y");
  build_output(&b, "y");
  add(&b);
  build_save(&b, in_folder(dir, "model.onnx"));
  build_clear(&b);
}

static void put(build *b, Onnx__TensorProto *t) { PUSH(b, b->graph, initializer, t); }

static laci_stored *stored_mut(laci_graph *graph, const char *name) {
  return find_stored(graph, name);
}

static void change(loaded *l, const char *name, float to) {
  laci_stored *stored = stored_mut(l->graph, name);
  uint8_t *bytes = laci_stored_writable_bytes(stored);
  assert_non_null(bytes);
  for (size_t at = 0; at < stored->size_bytes; at += sizeof to) memcpy(bytes + at, &to, sizeof to);
}

static float first_of(const laci_graph *graph, const char *name) {
  float f;
  memcpy(&f, find_stored(graph, name)->bytes, sizeof f);
  return f;
}

static const char *entry_of(const loaded *l, int tensor, const char *key) {
  const Onnx__TensorProto *t = l->file->model->graph->initializer[tensor];
  for (size_t at = 0; at < t->n_external_data; at++) {
    if (strcmp(t->external_data[at]->key, key) == 0) return t->external_data[at]->value;
  }
  return NULL;
}

/* a at page 1, b after it with a gap, c without offset and length */
static void three_tensors(build *b) {
  put(b, build_external(b, "a", 16, "w.bin", "4096", "64"));
  put(b, build_external(b, "b", 4, "w.bin", "8192", "16"));
  put(b, build_external(b, "c", 2, "w.bin", NULL, NULL));
}

static void tensors_are_where_the_data_says(void **state) {
  (void)state;
  folder dir;
  folder_make(&dir);
  make_model(&dir, "w.bin", 3 * PAGE, three_tensors);
  loaded l = load_path(in_folder(&dir, "model.onnx"));
  assert_loaded(l);
  const laci_stored *a = find_stored(l.graph, "a"), *c = find_stored(l.graph, "c");
  assert_int_equal(a->size_bytes, 64);
  for (size_t at = 0; at < 64; at++) assert_int_equal(a->bytes[at], pattern(PAGE + at));
  for (size_t at = 0; at < 8; at++) assert_int_equal(c->bytes[at], pattern(at));
  loaded_clear(&l);
  folder_remove(&dir);
}

static void saves_a_new_data_file_with_the_old_layout(void **state) {
  (void)state;
  folder dir;
  folder_make(&dir);
  make_model(&dir, "w.bin", 3 * PAGE + 5, three_tensors);
  loaded l = load_path(in_folder(&dir, "model.onnx"));
  assert_loaded(l);
  change(&l, "a", 1.5f);
  const char *out = in_folder(&dir, "out.onnx");
  if (laci_onnx_save(l.file, l.graph, out, false, &l.err)) fail_msg("%s", l.err.text);
  size_t n;
  uint8_t *data = read_bytes(in_folder(&dir, "out.data"), &n);
  assert_int_equal(n, 3 * PAGE + 5);
  float changed;
  memcpy(&changed, data + PAGE, sizeof changed);
  assert_true(changed == 1.5f);
  for (size_t at = 0; at < n; at++) {
    if (at < PAGE || at >= PAGE + 64) assert_int_equal(data[at], pattern(at));
  }
  laci_free(data);
  loaded again = load_path(out);
  assert_loaded(again);
  assert_true(first_of(again.graph, "a") == 1.5f);
  assert_string_equal(entry_of(&again, 0, "location"), "out.data");
  assert_string_equal(entry_of(&again, 0, "offset"), "4096");
  assert_string_equal(entry_of(&again, 2, "location"), "out.data");
  assert_null(entry_of(&again, 2, "offset"));
  /* the decoded file is as it was: a second save is possible, and refers to its own data */
  assert_string_equal(entry_of(&l, 0, "location"), "w.bin");
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "p.onnx"), false, &l.err),
                   LAC_OK);
  assert_int_equal(count_files(&dir), 6);
  loaded_clear(&again);
  loaded_clear(&l);
  folder_remove(&dir);
}

static void another_folder_keeps_the_names(void **state) {
  (void)state;
  folder dir, other;
  folder_make(&dir);
  folder_make(&other);
  make_model(&dir, "w.bin", 3 * PAGE, three_tensors);
  loaded l = load_path(in_folder(&dir, "model.onnx"));
  assert_loaded(l);
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&other, "m.onnx"), false, &l.err),
                   LAC_OK);
  loaded again = load_path(in_folder(&other, "m.onnx"));
  assert_loaded(again);
  assert_string_equal(entry_of(&again, 0, "location"), "w.bin");
  loaded_clear(&again);
  /* OUT that has the data file's own name */
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&other, "q/w.bin"), false, &l.err),
                   LAC_NOT_FOUND);
  assert_int_equal(mkdir(in_folder(&other, "q"), 0777), 0);
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&other, "q/w.bin"), false, &l.err),
                   LAC_OK);
  again = load_path(in_folder(&other, "q/w.bin"));
  assert_loaded(again);
  assert_string_equal(entry_of(&again, 0, "location"), "w.data");
  loaded_clear(&again);
  loaded_clear(&l);
  folder_remove(&dir);
  folder_remove(&other);
}

static void two_files(build *b) {
  put(b, build_external(b, "a", 4, "w.bin", "0", "16"));
  put(b, build_external(b, "b", 4, "sub/v.bin", "8", "16"));
}

static void several_data_files_stay_several(void **state) {
  (void)state;
  folder dir;
  folder_make(&dir);
  assert_int_equal(mkdir(in_folder(&dir, "sub"), 0777), 0);
  write_bytes(in_folder(&dir, "sub/v.bin"), "0123456789abcdefghijklmn", 24);
  make_model(&dir, "w.bin", 64, two_files);
  loaded l = load_path(in_folder(&dir, "model.onnx"));
  assert_loaded(l);
  assert_string_equal(laci_onnx_data_file_location(l.file, 0), "w.bin");
  assert_string_equal(laci_onnx_data_file_location(l.file, 1), "sub/v.bin");
  assert_null(laci_onnx_data_file_location(l.file, 2));
  assert_null(laci_onnx_data_file_location(l.file, -1));
  change(&l, "b", 2);
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "o.onnx"), false, &l.err),
                   LAC_OK);
  loaded again = load_path(in_folder(&dir, "o.onnx"));
  assert_loaded(again);
  assert_string_equal(entry_of(&again, 0, "location"), "o.data");
  assert_string_equal(entry_of(&again, 1, "location"), "o.1.data");
  assert_true(first_of(again.graph, "b") == 2);
  loaded_clear(&again);
  loaded_clear(&l);
  folder_remove(&dir);
}

/* a and b are tied; c overlaps half of d */
static void shared_places(build *b) {
  put(b, build_external(b, "a", 4, "w.bin", "64", "16"));
  put(b, build_external(b, "b", 4, "w.bin", "64", "16"));
  put(b, build_external(b, "c", 8, "w.bin", "128", "32"));
  put(b, build_external(b, "d", 4, "w.bin", "144", NULL));
}

static void tensors_that_share_a_place_part_when_they_differ(void **state) {
  (void)state;
  folder dir;
  folder_make(&dir);
  make_model(&dir, "w.bin", 256, shared_places);
  loaded l = load_path(in_folder(&dir, "model.onnx"));
  assert_loaded(l);
  uint8_t d_before[16];
  memcpy(d_before, find_stored(l.graph, "d")->bytes, sizeof d_before);
  change(&l, "a", 1); /* b keeps its old content */
  change(&l, "c", 3);
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "o.onnx"), false, &l.err),
                   LAC_OK);
  loaded again = load_path(in_folder(&dir, "o.onnx"));
  assert_loaded(again);
  assert_true(first_of(again.graph, "a") == 1);
  assert_int_equal(find_stored(again.graph, "b")->bytes[0], pattern(64));
  assert_true(first_of(again.graph, "c") == 3);
  assert_memory_equal(find_stored(again.graph, "d")->bytes, d_before, sizeof d_before);
  assert_string_equal(entry_of(&again, 0, "offset"), "4096"); /* moved to the end, aligned */
  assert_string_equal(entry_of(&again, 1, "offset"), "64");
  loaded_clear(&again);
  change(&l, "b", 1); /* now both have the same */
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "p.onnx"), false, &l.err),
                   LAC_OK);
  again = load_path(in_folder(&dir, "p.onnx"));
  assert_loaded(again);
  assert_true(first_of(again.graph, "a") == 1 && first_of(again.graph, "b") == 1);
  assert_string_equal(entry_of(&again, 0, "offset"), "64");
  loaded_clear(&again);
  loaded_clear(&l);
  folder_remove(&dir);
}

static void checksummed(build *b) {
  Onnx__TensorProto *t = build_external(b, "a", 4, "w.bin", "0", "16");
  Onnx__StringStringEntryProto *e =
      BUILD_NEW(b, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
  e->key = (char *)"checksum";
  e->value = (char *)"da39a3ee";
  PUSH(b, t, external_data, e);
  put(b, t);
}

static void a_checksum_goes_only_where_the_data_changed(void **state) {
  (void)state;
  folder dir;
  folder_make(&dir);
  make_model(&dir, "w.bin", 64, checksummed);
  for (int changed = 0; changed < 2; changed++) {
    loaded l = load_path(in_folder(&dir, "model.onnx"));
    assert_loaded(l);
    if (changed) change(&l, "a", 2);
    assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "o.onnx"), true, &l.err),
                     LAC_OK);
    loaded again = load_path(in_folder(&dir, "o.onnx"));
    assert_loaded(again);
    assert_int_equal(entry_of(&again, 0, "checksum") == NULL, changed);
    loaded_clear(&again);
    loaded_clear(&l);
  }
  folder_remove(&dir);
}

/** Tensors that the graph does not show (in bodies and unknown types) move to the new file, too. */
static void hidden_tensors(build *b) {
  build_input(b, "cond", NULL);
  Onnx__GraphProto *body = build_graph(b);
  Onnx__TensorProto *inner = build_external(b, "in", 4, "w.bin", "16", "16");
  PUSH(b, body, initializer, inner);
  build_node(b, body, "Add", "x in", "q");
  PUSH(b, body, output, build_info(b, "q", 1, NULL));
  build_attr(b, build_node(b, b->graph, "If", "cond", "u"), "then_branch", 5)->g = body;
  Onnx__TensorProto *nibbles = build_external(b, "nib", 8, "w.bin", "32", "4");
  nibbles->data_type = LAC_DTYPE_I4;
  put(b, nibbles);
}

static void tensors_in_bodies_follow_the_data_file(void **state) {
  (void)state;
  folder dir;
  folder_make(&dir);
  make_model(&dir, "w.bin", 64, hidden_tensors);
  loaded l = load_path(in_folder(&dir, "model.onnx"));
  assert_loaded(l);
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "o.onnx"), false, &l.err),
                   LAC_OK);
  loaded again = load_path(in_folder(&dir, "o.onnx"));
  assert_loaded(again);
  assert_string_equal(again.file->data_files[0].location, "o.data");
  assert_int_equal(again.file->n_data_files, 1);
  loaded_clear(&again);
  loaded_clear(&l);
  folder_remove(&dir);
}

static void inputs_and_taken_names_survive(void **state) {
  (void)state;
  folder dir;
  folder_make(&dir);
  make_model(&dir, "w.data", 3 * PAGE, three_tensors);
  write_bytes(in_folder(&dir, "w.bin"), "short", 5);
  loaded l = load_path(in_folder(&dir, "model.onnx"));
  assert_refused(l, LAC_BAD_FILE, "which has 5");
  make_model(&dir, "w.bin", 3 * PAGE, three_tensors);
  l = load_path(in_folder(&dir, "model.onnx"));
  assert_loaded(l);
  /* the data file's derived name is taken */
  write_bytes(in_folder(&dir, "o.data"), "precious", 8);
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "o.onnx"), false, &l.err),
                   LAC_EXISTS);
  assert_non_null(strstr(l.err.text, "o.data: exists already"));
  assert_int_equal(count_files(&dir), 4); /* no o.onnx, nothing temporary */
  /* the input itself, by another name; and its data file */
  assert_int_equal(link(in_folder(&dir, "model.onnx"), in_folder(&dir, "alias.onnx")), 0);
  assert_int_equal(link(in_folder(&dir, "w.bin"), in_folder(&dir, "v.data")), 0);
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "alias.onnx"), true, &l.err),
                   LAC_BAD_ARGUMENT);
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "w.bin"), true, &l.err),
                   LAC_BAD_ARGUMENT);
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "v.onnx"), true, &l.err),
                   LAC_BAD_ARGUMENT);
  assert_non_null(strstr(l.err.text, "v.data: is an input file"));
  assert_int_equal(laci_onnx_save(l.file, l.graph, in_folder(&dir, "o.onnx"), true, &l.err),
                   LAC_OK);
  loaded_clear(&l);
  folder_remove(&dir);
}

/* ---- Wrong entries ---- */

static void one(build *b, const char *location, const char *offset, const char *length) {
  put(b, build_external(b, "w", 4, location, offset, length));
}
static void absolute(build *b) { one(b, "/etc/passwd", "0", "16"); }
static void parent(build *b) { one(b, "../w.bin", "0", "16"); }
static void inner_parent(build *b) { one(b, "sub/../../w.bin", "0", "16"); }
static void final_parent(build *b) { one(b, "sub/..", "0", "16"); }
static void escaping_link(build *b) { one(b, "link.bin", "0", "16"); }
static void missing(build *b) { one(b, "nowhere.bin", "0", "16"); }
static void no_location(build *b) { one(b, NULL, "0", "16"); }
static void empty_location(build *b) { one(b, "", "0", "16"); }
static void a_folder(build *b) { one(b, "sub", "0", "16"); }
static void negative_offset(build *b) { one(b, "w.bin", "-4", "16"); }
static void text_length(build *b) { one(b, "w.bin", "0", "16x"); }
static void huge_offset(build *b) { one(b, "w.bin", "18446744073709551612", "16"); }
static void beyond_64_bits(build *b) { one(b, "w.bin", "18446744073709551616", "16"); }
static void past_the_end(build *b) { one(b, "w.bin", "52", "16"); }
static void short_length(build *b) { one(b, "w.bin", "0", "12"); }
static void no_length_past_the_end(build *b) { one(b, "w.bin", "60", NULL); }

static void refuses_wrong_data_files(void **state) {
  (void)state;
  static const struct {
    void (*add)(build *b);
    lac_status status;
    const char *words;
  } cases[] = {
      {absolute, LAC_BAD_FILE, "is not in the model's folder"},
      {parent, LAC_BAD_FILE, "is not in the model's folder"},
      {inner_parent, LAC_BAD_FILE, "is not in the model's folder"},
      {final_parent, LAC_BAD_FILE, "is not in the model's folder"},
      {empty_location, LAC_BAD_FILE, "is not in the model's folder"},
      {escaping_link, LAC_BAD_FILE, "leads out of the model's folder"},
      {missing, LAC_NOT_FOUND, "'w': cannot find external data 'nowhere.bin'"},
      {no_location, LAC_BAD_FILE, "without a location"},
      {a_folder, LAC_BAD_FILE, "a directory"},
      {negative_offset, LAC_BAD_FILE, "offset '-4'"},
      {text_length, LAC_BAD_FILE, "length '16x'"},
      {huge_offset, LAC_BAD_FILE, "16 bytes at 18446744073709551612"},
      {beyond_64_bits, LAC_BAD_FILE, "not numbers"},
      {past_the_end, LAC_BAD_FILE, "16 bytes at 52 of external data 'w.bin', which has 64"},
      {short_length, LAC_BAD_FILE, "12 bytes of external data, but its dims want 16"},
      {no_length_past_the_end, LAC_BAD_FILE, "16 bytes at 60"},
  };
  folder dir;
  folder_make(&dir);
  assert_int_equal(mkdir(in_folder(&dir, "sub"), 0777), 0);
  assert_int_equal(symlink("/etc/passwd", in_folder(&dir, "link.bin")), 0);
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    make_model(&dir, "w.bin", 64, cases[at].add);
    loaded l = load_path(in_folder(&dir, "model.onnx"));
    assert_refused(l, cases[at].status, cases[at].words);
    assert_non_null(strstr(l.err.text, "model.onnx: tensor 'w'"));
  }
  folder_remove(&dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_are_where_the_data_says),
      cmocka_unit_test(saves_a_new_data_file_with_the_old_layout),
      cmocka_unit_test(another_folder_keeps_the_names),
      cmocka_unit_test(several_data_files_stay_several),
      cmocka_unit_test(tensors_that_share_a_place_part_when_they_differ),
      cmocka_unit_test(a_checksum_goes_only_where_the_data_changed),
      cmocka_unit_test(tensors_in_bodies_follow_the_data_file),
      cmocka_unit_test(inputs_and_taken_names_survive),
      cmocka_unit_test(refuses_wrong_data_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
