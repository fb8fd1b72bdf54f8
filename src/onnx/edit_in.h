/* SPDX-License-Identifier: Apache-2.0
 * The state of an edit of a file; private to the edit*.c files. */
#ifndef LACI_ONNX_EDIT_IN_H
#define LACI_ONNX_EDIT_IN_H

#include "graph/names.h"
#include "onnx/edit.h"
#include "onnx/onnx_in.h"

typedef struct laci_edit_tensor {
  const char *name;
  lac_dtype dtype;
  laci_shape shape;
  const void *bytes; /* bytes of the tensor, owned by the edit */
  size_t size_bytes;
} laci_edit_tensor;

typedef struct laci_edit_change {
  const char *node; /* name of a value that the changed node outputs. NULL: all nodes that read
                       `from` are changed */
  int port;
  const char *from, *to;
} laci_edit_change;

typedef struct laci_edit_attribute {
  const char *node; /* name of a value that the node outputs */
  const char *name;
} laci_edit_attribute;

typedef struct laci_edit_removal {
  const char *output, *instead;
} laci_edit_removal;

/** An array in the decoded file that was replaced, and how to restore it. */
typedef struct laci_edit_replaced_array {
  void *place; /* address of the pointer that points to the array */
  void *old, *fresh;
  size_t *count, old_n;
} laci_edit_replaced_array;

/** A block of memory that is freed when the edit ends: either by keep or by undo. */
typedef struct laci_edit_block {
  void *block;               /* the block, from laci_onnx_block_alloc; NULL: `message` is freed
                                instead */
  ProtobufCMessage *message; /* a whole message of the decoded file, freed with its parts */
  bool is_fresh;             /* true: laci_onnx_edit_undo frees it; false: laci_onnx_edit_keep frees
                                it */
} laci_edit_block;

/** A value that the body of a local function computed becomes an input of the function. This is the
 * tensor that one call passes for it. */
typedef struct laci_edit_call_tensor {
  Onnx__FunctionProto *function;
  const char *value; /* name of the value in the function */
  int call;          /* index in the main graph of the node that calls the function */
  const char *tensor;
} laci_edit_call_tensor;

struct laci_onnx_edit {
  laci_onnx *file;
  laci_arena arena;
  laci_name_table names;     /* all names of values and nodes in the file */
  laci_name_table producers; /* producers: maps the name of a value to the node of the main graph
                                that computes it */
  laci_name_table sources;   /* maps the name of a value that is not computed to the initializer,
                                input or Constant node of the main graph that has it */
  laci_edit_tensor *tensors;
  laci_edit_node *nodes;
  laci_edit_change *changes;
  laci_edit_removal *removals;
  laci_edit_attribute *attributes; /* [n_attributes] attributes to be removed */
  size_t n_attributes, attribute_capacity;
  int64_t opset; /* new version of the operator set ai.onnx; 0: it stays */
  laci_edit_call_tensor *inner;
  const char **replaced;           /* [n_replaced] names of computed values that become stored
                                      tensors */
  laci_edit_replaced_array *swaps; /* [n_swaps] arrays that were replaced. undo restores them from
                                      the last to the first */
  laci_edit_block *blocks;
  size_t n_tensors, n_nodes, n_changes, n_removals, n_replaced, n_inner, n_swaps, n_blocks;
  size_t tensor_capacity, node_capacity, change_capacity, removal_capacity, replaced_capacity,
      inner_capacity, swap_capacity, block_capacity;
  laci_external *externals; /* file->externals before the edit; NULL: it was not replaced */
  size_t n_externals;
  bool *was_compact; /* [n_data_files] laci_data_file.is_compact of each data file before the
                        edit */
};

/** The state of laci_onnx_edit_apply, which builds new arrays of the decoded file next to the old
 * ones. */
typedef struct laci_edit_applier {
  laci_onnx_edit *edit;
  Onnx__GraphProto *graph;
  laci_name_table redirects;     /* maps the name of a value that nodes read to the entry of
                                    edit->changes that replaces it */
  laci_name_table dropped_reads; /* names of the values that a removed or changed node no longer
                                    reads */
  /* names of the values that are read after the edit, or that the file names outside of its
     nodes */
  laci_name_table read;
  bool *is_removed;       /* [n_node] true: the node of the main graph is removed */
  size_t *order, next;    /* order: indices of the new nodes, sorted by the positions at which they
                             are added. next: number of new nodes that are in `list` already */
  Onnx__NodeProto **list; /* new list of nodes, with n_list nodes so far */
  size_t n_list;
} laci_edit_applier;

/** Registers memory that the end of the edit frees: a block, or a message if block is NULL.
 * laci_onnx_edit_undo frees it if is_fresh is true, else laci_onnx_edit_keep. Returns false if
 * there is no memory; the caller then still owns it. */
bool laci_edit_register_block(laci_onnx_edit *edit, void *block, ProtobufCMessage *message,
                              bool is_fresh);
void *laci_edit_alloc_block(laci_onnx_edit *edit, size_t size_bytes);
char *laci_edit_copy_text(laci_onnx_edit *edit, const char *text);
/** Replaces the array at *place, which has *count entries, by the array `fresh` of n entries. */
LAC_MUST_CHECK lac_status laci_edit_replace_array(laci_onnx_edit *edit, void *place, size_t *count,
                                                  void *fresh, size_t n, lac_error *err);
/** Changes all functions for which laci_edit_replace_call_value collected changes
 * (edit_function.c). */
LAC_MUST_CHECK lac_status laci_edit_apply_function_changes(laci_edit_applier *a, lac_error *err);
/** Removes the attributes of edit->attributes, and sets the version of ai.onnx (edit_opset.c). */
LAC_MUST_CHECK lac_status laci_edit_apply_attribute_and_opset_changes(laci_edit_applier *a,
                                                                      lac_error *err);
/** Marks the nodes to be removed because their values become stored tensors, and adds the names
 * that they read to dropped_reads (edit_replace.c). */
LAC_MUST_CHECK lac_status laci_edit_mark_replaced_nodes(laci_edit_applier *a, lac_error *err);

/** Returns the index of the node of the main graph that outputs the value; -1: there is none. */
int laci_edit_find_producer(const laci_onnx_edit *edit, const char *value);
/** Restores all arrays of the decoded file that applying the edit replaced. */
void laci_edit_restore_arrays(laci_onnx_edit *edit);

#endif
