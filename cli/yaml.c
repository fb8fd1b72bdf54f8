/* SPDX-License-Identifier: Apache-2.0
 * Reads YAML by libyaml, event by event, so that a hostile file cannot make a large tree from a few
 * bytes: anchors, aliases and tags are refused where they occur, and depth and number of values are
 * limited while they are read. Plain words mean what YAML 1.1 says: null, true and false in all
 * their spellings; all else is text. */
#include <yaml.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "tree.h"

static int line_of_event(const yaml_event_t *event) { return (int)event->start_mark.line + 1; }

static lac_status fail_yaml(const yaml_parser_t *parser, const tree *t, lac_error *err) {
  if (parser->error == YAML_MEMORY_ERROR) return laci_fail_memory(err, t->path);
  const char *why = parser->problem ? parser->problem : "it cannot be read";
  const int line =
      (int)(parser->error == YAML_READER_ERROR ? parser->mark.line : parser->problem_mark.line) + 1;
  return tree_fail(t, line, LAC_BAD_FILE, err, "not YAML: %s%s%s", why, parser->context ? ", " : "",
                   parser->context ? parser->context : "");
}

/* Reads the next event. Fails for anchors, aliases and tags, by which a short file could stand for
 * a large or another value. */
static lac_status read_next_event(yaml_parser_t *parser, const tree *t, yaml_event_t *event,
                                  lac_error *err) {
  if (!yaml_parser_parse(parser, event)) return fail_yaml(parser, t, err);
  const yaml_char_t *anchor = NULL, *tag = NULL;
  if (event->type == YAML_SCALAR_EVENT)
    anchor = event->data.scalar.anchor, tag = event->data.scalar.tag;
  if (event->type == YAML_SEQUENCE_START_EVENT)
    anchor = event->data.sequence_start.anchor, tag = event->data.sequence_start.tag;
  if (event->type == YAML_MAPPING_START_EVENT)
    anchor = event->data.mapping_start.anchor, tag = event->data.mapping_start.tag;
  const char *mark = "*";
  if (event->type == YAML_ALIAS_EVENT) anchor = event->data.alias.anchor;
  else mark = "&";
  lac_status st = LAC_OK;
  if (anchor) {
    st = tree_fail(t, line_of_event(event), LAC_BAD_FILE, err,
                   "%s%s: anchors and aliases are not read; wanted the value itself", mark,
                   (const char *)anchor);
  } else if (tag) {
    st = tree_fail(t, line_of_event(event), LAC_BAD_FILE, err,
                   "%s: tags are not read; wanted the value alone", (const char *)tag);
  }
  if (st) yaml_event_delete(event);
  return st;
}

static bool is_word_in_list(const char *text, const char *const *list) {
  for (; *list; list++) {
    if (strcasecmp(*list, text) == 0) return true;
  }
  return false;
}

static lac_status fill_scalar(const yaml_event_t *event, tree *t, tree_node *node, lac_error *err) {
  static const char *const yes[] = {"true", "yes", "on", NULL}, *const no[] = {"false", "no", "off",
                                                                               NULL};
  const char *text = (const char *)event->data.scalar.value;
  const bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  if (strlen(text) != event->data.scalar.length) {
    return tree_fail(t, node->line, LAC_BAD_FILE, err, "a text with a zero byte in it");
  }
  node->text = laci_arena_text(&t->arena, text);
  if (!node->text) return laci_fail_memory(err, t->path);
  node->kind = TREE_TEXT;
  if (!is_plain) return LAC_OK;
  node->yes = is_word_in_list(text, yes);
  if (node->yes || is_word_in_list(text, no)) node->kind = TREE_BOOLEAN;
  if (!text[0] || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0) node->kind = TREE_NULL;
  return LAC_OK;
}

/* Copies a key, whose event was read. */
static lac_status copy_key(const yaml_event_t *event, tree *t, const char **key, lac_error *err) {
  if (event->type != YAML_SCALAR_EVENT) {
    return tree_fail(t, line_of_event(event), LAC_BAD_FILE, err,
                     "a list or map as a key; wanted a name");
  }
  const char *text = (const char *)event->data.scalar.value;
  if (!text[0] || strlen(text) != event->data.scalar.length) {
    return tree_fail(t, line_of_event(event), LAC_BAD_FILE, err, "an empty key; wanted a name");
  }
  *key = laci_arena_text(&t->arena, text);
  return *key ? LAC_OK : laci_fail_memory(err, t->path);
}

/* Adds the value that begins with this event. about: a node that has the value's key and line. */
static lac_status append_value(yaml_parser_t *parser, tree *t, tree_place *place,
                               const yaml_event_t *event, const tree_node *about, lac_error *err);

/* Reads the members of the list or map that was added last. */
static lac_status append_members(yaml_parser_t *parser, tree *t, const tree_place *of,
                                 lac_error *err) {
  tree_place place = {.parent = of->last, .depth = of->depth + 1};
  const bool is_map = of->last->kind == TREE_MAP;
  lac_status st = LAC_OK;
  while (!st) {
    yaml_event_t event;
    st = read_next_event(parser, t, &event, err);
    if (st) return st;
    tree_node about = {.line = line_of_event(&event)};
    const bool is_end =
        event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT;
    if (is_map && !is_end) {
      st = copy_key(&event, t, &about.key, err);
      yaml_event_delete(&event);
      if (!st) st = read_next_event(parser, t, &event, err);
      if (st) return st;
    }
    if (!is_end) st = append_value(parser, t, &place, &event, &about, err);
    yaml_event_delete(&event);
    if (is_end) break;
  }
  return st;
}

static lac_status append_value(yaml_parser_t *parser, tree *t, tree_place *place,
                               const yaml_event_t *event, const tree_node *about, lac_error *err) {
  tree_node node = *about;
  lac_status st = LAC_OK;
  if (event->type == YAML_SCALAR_EVENT) st = fill_scalar(event, t, &node, err);
  else node.kind = event->type == YAML_MAPPING_START_EVENT ? TREE_MAP : TREE_LIST;
  if (!st) st = tree_append_node(t, place, &node, err);
  return st || event->type == YAML_SCALAR_EVENT ? st : append_members(parser, t, place, err);
}

/* Reads the stream, which must have one document with one value. */
static lac_status read_stream(yaml_parser_t *parser, tree *t, lac_error *err) {
  tree_place place = {0};
  bool is_end = false;
  lac_status st = LAC_OK;
  while (!st && !is_end) {
    yaml_event_t event;
    st = read_next_event(parser, t, &event, err);
    if (st) return st;
    is_end = event.type == YAML_STREAM_END_EVENT;
    if (event.type == YAML_DOCUMENT_START_EVENT && t->root) {
      st = tree_fail(t, line_of_event(&event), LAC_BAD_FILE, err, "a second document; wanted one");
    } else if (event.type == YAML_SCALAR_EVENT || event.type == YAML_MAPPING_START_EVENT ||
               event.type == YAML_SEQUENCE_START_EVENT) {
      const tree_node about = {.line = line_of_event(&event)};
      st = append_value(parser, t, &place, &event, &about, err);
    }
    yaml_event_delete(&event);
  }
  return st;
}

lac_status tree_read_yaml(const char *text, tree *t, lac_error *err) {
  yaml_parser_t parser;
  if (!yaml_parser_initialize(&parser)) return laci_fail_memory(err, t->path);
  yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
  lac_status st = read_stream(&parser, t, err);
  yaml_parser_delete(&parser);
  return st;
}
