/* SPDX-License-Identifier: Apache-2.0
 * Ends an edit. It keeps the arrays that were exchanged, or restores the old ones, and frees the
 * blocks that are no longer needed. */
#include "onnx/edit_in.h"

#include <string.h>

void laci_edit_restore_arrays(laci_onnx_edit *edit) {
  while (edit->n_swaps > 0) {
    const laci_edit_replaced_array *s = &edit->swaps[--edit->n_swaps];
    memcpy(s->place, &s->old, sizeof s->old);
    *s->count = s->old_n;
  }
  if (!edit->externals) return;
  laci_onnx *file = edit->file;
  laci_free(file->externals);
  file->externals = edit->externals;
  file->n_externals = edit->n_externals;
  edit->externals = NULL;
  for (size_t at = 0; at < file->n_data_files; at++)
    file->data_files[at].is_compact = edit->was_compact[at];
}

/** Frees the edit, and the blocks that are no longer needed if the change is kept (keeps is true)
 * or undone. */
static void free_blocks_and_edit(laci_onnx_edit *edit, bool keeps) {
  for (size_t at = 0; at < edit->n_blocks; at++) {
    const laci_edit_block *b = &edit->blocks[at];
    if (b->is_fresh == keeps) continue;
    if (b->message) laci_onnx_free_message(edit->file, b->message);
    else laci_onnx_block_free(b->block);
  }
  laci_name_table_clear(&edit->names);
  laci_name_table_clear(&edit->producers);
  laci_name_table_clear(&edit->sources);
  laci_free(edit->tensors);
  laci_free(edit->nodes);
  laci_free(edit->changes);
  laci_free(edit->removals);
  laci_free(edit->attributes);
  laci_free(edit->replaced);
  laci_free(edit->inner);
  laci_free(edit->swaps);
  laci_free(edit->blocks);
  laci_free(edit->externals);
  laci_free(edit->was_compact);
  laci_arena_clear(&edit->arena);
  laci_free(edit);
}

void laci_onnx_edit_keep(laci_onnx_edit *edit) {
  if (edit) free_blocks_and_edit(edit, true);
}

void laci_onnx_edit_undo(laci_onnx_edit *edit) {
  if (!edit) return;
  laci_edit_restore_arrays(edit);
  free_blocks_and_edit(edit, false);
}
