/* SPDX-License-Identifier: Apache-2.0
 * A configuration file, read as a tree of texts, lists and maps, from YAML or JSON. Every node
 * knows its line, so that messages can name it. Next: config.c, which makes options of it. */
#ifndef CLI_TREE_H
#define CLI_TREE_H

#include <stdbool.h>

#include "base/memory.h"
#include "lacuna/status.h"

typedef enum tree_kind { TREE_NULL, TREE_BOOLEAN, TREE_TEXT, TREE_LIST, TREE_MAP } tree_kind;

/** A value. Numbers are texts, as they were written. */
typedef struct tree_node {
  tree_kind kind;
  int line;
  const char *key;                /* key of a member of a map; NULL: the node is no member of a
                                     map */
  const char *text;               /* the text as it was written, of a text or a boolean; NULL for
                                     other nodes */
  bool yes;                       /* value of a boolean */
  struct tree_node *first, *next; /* the members of a list or map, in the file's order */
} tree_node;

/** A configuration file that was read. Zero-initialized it is empty; tree_clear frees it. */
typedef struct tree {
  laci_arena arena;
  const char *path; /* path of the file, owned by the caller */
  tree_node *root;  /* the outermost value of the file, a map */
  int n_nodes;
} tree;

enum { TREE_MOST_NODES = 4096, TREE_DEEPEST = 6 };

/** Reads a file: JSON where its name ends in .json, else YAML. path must outlive the tree. Fails
 * LAC_BAD_FILE for what is neither, with the line: a key that occurs twice, an anchor, an alias, a
 * tag, or more than one document; LAC_UNSUPPORTED for YAML without libyaml. */
LAC_MUST_CHECK lac_status tree_read_file(const char *path, tree *t, lac_error *err);
void tree_clear(tree *t);

/** Returns the member of a map; NULL: there is none. */
const tree_node *tree_find(const tree_node *map, const char *key);

/** Fails with `status`; the text of the failure is "PATH:LINE: " and then the formatted text. */
lac_status tree_fail(const tree *t, int line, lac_status status, lac_error *err, const char *format,
                     ...) LAC_PRINTF(5, 6);

/** Where a reader of a file adds nodes: to the list or map `parent` (NULL: the node is the root),
 * after its member `last` (NULL: it has none yet). tree_append_node adds one there, and fails
 * LAC_BAD_FILE for too many nodes and for a key that the map has already. */
typedef struct tree_place {
  tree_node *parent, *last;
  int depth;
} tree_place;
LAC_MUST_CHECK lac_status tree_append_node(tree *t, tree_place *place, const tree_node *node,
                                           lac_error *err);

/** Reads a YAML text into the tree; in a build without libyaml it fails LAC_UNSUPPORTED. */
LAC_MUST_CHECK lac_status tree_read_yaml(const char *text, tree *t, lac_error *err);

#endif
