/* SPDX-License-Identifier: Apache-2.0
 * The names of classes in a model's metadata, under the key "lacuna.class_names". There is one name
 * a line, in the order of the network's outputs. */
#ifndef LACI_ONNX_METADATA_IN_H
#define LACI_ONNX_METADATA_IN_H

#include "onnx/onnx_in.h"

/** Sets graph->class_names if the model has names of classes. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_import_read_class_names(const Onnx__ModelProto *model,
                                                       laci_graph *graph, lac_error *err);

/** Would saving change the model's class names? True if the graph has other names, or none while
 * the model has some. */
bool laci_metadata_has_other_class_names(const Onnx__ModelProto *model, const laci_graph *graph);

/** Builds the model's metadata, in the arena, with the class names of the graph. If the graph has
 * none, the result has none. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_metadata_build_with_class_names(
    laci_arena *arena, const Onnx__ModelProto *model, const laci_graph *graph,
    Onnx__StringStringEntryProto ***entries, size_t *n, lac_error *err);

#endif
