/* SPDX-License-Identifier: Apache-2.0
 * Reads configuration files, and JSON by jansson. jansson does not tell the line of a value. So the
 * lines of the keys are counted in the text; jansson returns the keys in the file's order. */
#include "tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ending.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

enum { LARGEST_FILE = 256 * 1024 };

lac_status tree_fail(const tree *t, int line, lac_status status, lac_error *err, const char *format,
                     ...) {
  char text[sizeof err->text];
  va_list values;
  va_start(values, format);
  (void)vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return laci_fail(err, status, "%s:%d: %s", t->path, line, text);
}

const tree_node *tree_find(const tree_node *map, const char *key) {
  const tree_node *member = map && map->kind == TREE_MAP ? map->first : NULL;
  while (member && strcmp(member->key, key) != 0) member = member->next;
  return member;
}

lac_status tree_append_node(tree *t, tree_place *place, const tree_node *node, lac_error *err) {
  const tree_node *twice = node->key ? tree_find(place->parent, node->key) : NULL;
  if (twice) {
    return tree_fail(t, node->line, LAC_BAD_FILE, err, "%s: it occurs twice, first in line %d",
                     node->key, twice->line);
  }
  if (t->n_nodes == TREE_MOST_NODES || place->depth > TREE_DEEPEST) {
    return tree_fail(t, node->line, LAC_BAD_FILE, err,
                     "too much: wanted at most %d values, nested at most %d deep",
                     (int)TREE_MOST_NODES, (int)TREE_DEEPEST);
  }
  tree_node *added = laci_arena_alloc(&t->arena, 1, sizeof *added);
  if (!added) return laci_fail_memory(err, t->path);
  *added = *node;
  t->n_nodes++;
  if (place->last) place->last->next = added;
  else if (place->parent) place->parent->first = added;
  else t->root = added;
  place->last = added;
  return LAC_OK;
}

/* ---- JSON ---- */

/* Position in a JSON text that is known to be valid. */
typedef struct scanner {
  const char *at;
  int line;
} scanner;

/* Moves past a string, whose opening quote was read. */
static void skip_string(scanner *s) {
  for (; *s->at && *s->at != '"'; s->at++) {
    if (*s->at == '\\') s->at++;
  }
  s->at++;
}

/* Returns the line of the next key, and moves past it. */
static int next_key_line(scanner *s) {
  while (*s->at) {
    const char c = *s->at++;
    s->line += c == '\n';
    if (c != '"') continue;
    const int line = s->line;
    skip_string(s);
    if (s->at[strspn(s->at, " \t\r\n")] == ':') return line;
  }
  return s->line;
}

static const char *format_number(tree *t, const json_t *value) {
  char text[64];
  if (json_is_integer(value)) {
    (void)snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
  } else {
    const double number = json_real_value(value);
    (void)snprintf(text, sizeof text, "%.15g", number);
    if (strtod(text, NULL) < number || strtod(text, NULL) > number)
      (void)snprintf(text, sizeof text, "%.17g", number);
  }
  return laci_arena_text(&t->arena, text);
}

static lac_status append_json_value(tree *t, tree_place *place, scanner *lines,
                                    const tree_node *about, json_t *value, lac_error *err);

static lac_status append_json_members(tree *t, const tree_place *of, scanner *lines, json_t *value,
                                      lac_error *err) {
  tree_place place = {.parent = of->last, .depth = of->depth + 1};
  lac_status st = LAC_OK;
  for (size_t k = 0; !st && k < json_array_size(value); k++) {
    const tree_node about = {.line = of->last->line};
    st = append_json_value(t, &place, lines, &about, json_array_get(value, k), err);
  }
  void *at = json_object_iter(value);
  for (; at && !st; at = json_object_iter_next(value, at)) {
    tree_node about = {.line = next_key_line(lines)};
    about.key = laci_arena_text(&t->arena, json_object_iter_key(at));
    if (!about.key) return laci_fail_memory(err, t->path);
    st = append_json_value(t, &place, lines, &about, json_object_iter_value(at), err);
  }
  return st;
}

/* Adds a value and all that is in it. about: a node that has the value's key and line. The depth is
 * limited by tree_append_node. */
static lac_status append_json_value(tree *t, tree_place *place, scanner *lines,
                                    const tree_node *about, json_t *value, lac_error *err) {
  tree_node node = *about;
  const bool is_number = json_is_number(value);
  node.kind = json_is_object(value)    ? TREE_MAP
              : json_is_array(value)   ? TREE_LIST
              : json_is_null(value)    ? TREE_NULL
              : json_is_boolean(value) ? TREE_BOOLEAN
                                       : TREE_TEXT;
  node.yes = json_is_true(value);
  if (node.kind == TREE_BOOLEAN) node.text = node.yes ? "true" : "false";
  if (node.kind == TREE_TEXT) {
    node.text =
        is_number ? format_number(t, value) : laci_arena_text(&t->arena, json_string_value(value));
    if (!node.text) return laci_fail_memory(err, t->path);
  }
  lac_status st = tree_append_node(t, place, &node, err);
  return st ? st : append_json_members(t, place, lines, value, err);
}

static lac_status read_json(const char *text, tree *t, lac_error *err) {
  json_t *root = NULL;
  scanner lines = {.at = text, .line = 1};
  tree_place place = {0};
  const tree_node about = {.line = 1};
  lac_status st = laci_json_read(t->path, "JSON", text, &root, err);
  if (!st) st = append_json_value(t, &place, &lines, &about, root, err);
  json_decref(root);
  return st;
}

/* ---- Files ---- */

lac_status tree_read_file(const char *path, tree *t, lac_error *err) {
  char *text = NULL;
  *t = (tree){.path = path};
  lac_status st = laci_file_read_text(path, LARGEST_FILE, &text, err);
  if (!st && laci_ends_with(path, ".json")) st = read_json(text, t, err);
  else if (!st) st = tree_read_yaml(text, t, err);
  if (!st && (!t->root || t->root->kind != TREE_MAP)) {
    st = tree_fail(t, t->root ? t->root->line : 1, LAC_BAD_FILE, err,
                   "wanted a map of names and values, such as \"threads: 4\"");
  }
  laci_free(text);
  return st;
}

void tree_clear(tree *t) {
  laci_arena_clear(&t->arena);
  *t = (tree){0};
}
