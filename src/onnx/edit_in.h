/* SPDX-License-Identifier: Apache-2.0
 * What an edit of a file holds: private to edit.c, edit_apply.c and edit_end.c. */
#ifndef LACI_ONNX_EDIT_IN_H
#define LACI_ONNX_EDIT_IN_H

#include "graph/names.h"
#include "onnx/edit.h"
#include "onnx/onnx_in.h"

typedef struct laci_edit_tensor {
  const char *name;
  lac_dtype dtype;
  laci_shape shape;
  const void *bytes; /* the edit's */
  size_t size_bytes;
} laci_edit_tensor;

typedef struct laci_edit_change {
  const char *node; /* by the value that it makes; NULL: whoever reads `from` */
  int port;
  const char *from, *to;
} laci_edit_change;

typedef struct laci_edit_gone {
  const char *output, *instead;
} laci_edit_gone;

/** A list of the message that was replaced: where it is named, and what was there. */
typedef struct laci_edit_swap {
  void *place; /* of the pointer */
  void *old, *fresh;
  size_t *count, old_n;
} laci_edit_swap;

/** What is freed with the one or the other end. */
typedef struct laci_edit_block {
  void *block;               /* of laci_onnx_block; NULL: ... */
  ProtobufCMessage *message; /* ... a whole message */
  bool is_fresh;             /* goes with undo; else with keep */
} laci_edit_block;

/** What a call of a local function gets in the place of a value that the function's body makes. */
typedef struct laci_edit_inner {
  Onnx__FunctionProto *function;
  const char *value; /* in the function */
  int call;          /* node of the main graph */
  const char *tensor;
} laci_edit_inner;

struct laci_onnx_edit {
  laci_onnx *file;
  laci_arena arena;
  laci_name_table names; /* of the whole file: values, nodes */
  laci_name_table made;  /* value -> node of the main graph */
  laci_name_table held;  /* value -> initializer, input or Constant node of the main graph */
  laci_edit_tensor *tensors;
  laci_edit_node *nodes;
  laci_edit_change *changes;
  laci_edit_gone *gone;
  laci_edit_inner *inner;
  const char **replaced; /* values that are stored from now on */
  laci_edit_swap *swaps; /* undone from the last to the first */
  laci_edit_block *blocks;
  size_t n_tensors, n_nodes, n_changes, n_gone, n_replaced, n_inner, n_swaps, n_blocks;
  size_t tensor_capacity, node_capacity, change_capacity, gone_capacity, replaced_capacity,
      inner_capacity, swap_capacity, block_capacity;
  laci_external *externals; /* what file->externals was; NULL: the same */
  size_t n_externals;
  bool *was_compact; /* [n_data_files] */
};

/** The state of one apply: new lists of the message are built next to the old ones. */
typedef struct laci_edit_applier {
  laci_onnx_edit *edit;
  Onnx__GraphProto *graph;
  laci_name_table redirects; /* from -> change */
  laci_name_table let_go;    /* names that a node read, and reads no more */
  laci_name_table read;      /* names that somebody reads afterwards, or that the file names */
  bool *is_gone;             /* [n_node] */
  size_t *order, next;       /* of new nodes by their slots; the next one to be placed */
  Onnx__NodeProto **list;    /* of all nodes, so far n_list of them */
  size_t n_list;
} laci_edit_applier;

/** The block goes with one end of the edit. False: no memory, and it is the caller's. */
bool laci_edit_own(laci_onnx_edit *edit, void *block, ProtobufCMessage *message, bool is_fresh);
void *laci_edit_fresh_block(laci_onnx_edit *edit, size_t size_bytes);
char *laci_edit_fresh_text(laci_onnx_edit *edit, const char *text);
/** Exchanges a list of the message: *place of *count entries. */
LAC_MUST_CHECK lac_status laci_edit_exchange(laci_onnx_edit *edit, void *place, size_t *count,
                                             void *fresh, size_t n, lac_error *err);
/** Does all that laci_edit_replace_inner asks for (edit_function.c). */
LAC_MUST_CHECK lac_status laci_edit_change_functions(laci_edit_applier *a, lac_error *err);
/** Marks the nodes that go with what is replaced, which let their inputs go (edit_replace.c). */
LAC_MUST_CHECK lac_status laci_edit_drop_replaced(laci_edit_applier *a, lac_error *err);

/** Nodes of the main graph, by place, -1: none makes the value. */
int laci_edit_producer(const laci_onnx_edit *edit, const char *value);
/** Lists of the message are what they were before the edit was applied. */
void laci_edit_restore(laci_onnx_edit *edit);

#endif
