/* SPDX-License-Identifier: Apache-2.0
 * Reads an ONNX file into a graph, and writes the file again with changed stored tensors.
 *
 * The decoded file stays in memory together with the graph: the graph is a view for analysis (local
 * functions inlined, Constant nodes as stored tensors), while saving writes the decoded file
 * itself. So what the graph does not represent is kept: unknown fields, metadata, the kind of field
 * that holds a tensor, the layout of external data. Next: onnx.proto (the wire format), wire.c,
 * import.c, export.c. */
#ifndef LACI_ONNX_ONNX_H
#define LACI_ONNX_ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/model.h"

typedef struct laci_graph laci_graph;
typedef struct laci_reader laci_reader;
typedef struct laci_write_options laci_write_options;

/** The decoded file. The graph's stored tensors point into it, so the graph must be destroyed
 * first. */
typedef struct laci_onnx laci_onnx;

/** Loads a model. It may have IR versions 3 to 14, versions 7 to 28 of the standard's operators,
 * and any version of other domains. Fails with LAC_BAD_FILE or LAC_UNSUPPORTED; the text starts
 * with path, and both results are NULL then. External data must be in the model's folder. Large
 * tensors stay in their files until they are read; see laci_onnx_copy_stored_bytes. */
LAC_MUST_CHECK lac_status laci_onnx_load(const char *path, laci_onnx **file, laci_graph **graph,
                                         lac_error *err);

/** Loads a model from memory, which may be freed afterwards. data_dir: the folder of external data;
 * NULL: there is none. */
LAC_MUST_CHECK lac_status laci_onnx_load_memory(const void *bytes, size_t size_bytes,
                                                const char *data_dir, laci_onnx **file,
                                                laci_graph **graph, lac_error *err);

/** Makes another graph from the decoded file, including all edits so far (onnx/edit.h). The file's
 * first graph stays as it is. The file must outlive the graph. */
LAC_MUST_CHECK lac_status laci_onnx_reimport(laci_onnx *file, laci_graph **graph, lac_error *err);

/** Opens a data file. location: its path as the model gives it, relative to the model's folder. */
typedef lac_status laci_onnx_open_data(void *context, const char *location, laci_reader **reader,
                                       lac_error *err);

/** Where the data files of a model come from: a folder, or a function that opens them. All zero:
 * the model has none. */
typedef struct laci_onnx_outside {
  const char *folder;        /* folder of the data files; NULL: `open` opens them */
  laci_onnx_open_data *open; /* function that opens a data file; called only while the model is
                                loaded */
  void *context;
} laci_onnx_outside;

/** Loads a model from readers. The function takes ownership of the reader `model`, even if it
 * fails. */
LAC_MUST_CHECK lac_status laci_onnx_load_readers(laci_reader *model, const laci_onnx_outside *data,
                                                 laci_onnx **file, laci_graph **graph,
                                                 lac_error *err);

/** Copies n bytes of a stored tensor of the file's graph to `to`. bytes: their address, which is
 * not dereferenced, since they may not be in memory; the file is read instead. Fails with LAC_IO if
 * the file was truncated since it was loaded. May be called from any thread. */
LAC_MUST_CHECK lac_status laci_onnx_copy_stored_bytes(void *file, const uint8_t *bytes, size_t n,
                                                      void *to, lac_error *err);

/** Loads the model's file, and all tensors in its data files, into memory; the second call does
 * nothing. Must be called before stored bytes are read at their addresses. May be called from any
 * thread. */
LAC_MUST_CHECK lac_status laci_onnx_materialise(laci_onnx *file, lac_error *err);
/** Loads n bytes of one stored tensor into memory, at their addresses, unless they are loaded
 * already. */
LAC_MUST_CHECK lac_status laci_onnx_materialise_bytes(laci_onnx *file, const uint8_t *bytes,
                                                      size_t n, lac_error *err);

/** Writes the file to path. If a stored tensor of the graph has `owned` bytes, they replace the old
 * ones. External data is written to new files in the folder of path: as many as before, with the
 * same layout. They keep their names if that folder is another one; else they are named after path
 * (model.onnx: model.data, model.1.data ...).
 *
 * No file appears or is replaced before all data is on disk, and files that were read are never
 * replaced. Fails with LAC_EXISTS if path exists and force is false, or with LAC_UNSUPPORTED beyond
 * 2 GiB. */
LAC_MUST_CHECK lac_status laci_onnx_save(laci_onnx *file, const laci_graph *graph, const char *path,
                                         bool force, lac_error *err);

/** Passes the bytes of the saved model to the function `put`, chunk by chunk. Ends with its failure
 * if it fails. Fails with LAC_UNSUPPORTED if there is external data, and beyond 2 GiB. */
LAC_MUST_CHECK lac_status laci_onnx_save_stream(laci_onnx *file, const laci_graph *graph,
                                                lac_write_bytes *put, void *context,
                                                lac_error *err);

/** Writes a graph that was not read from a file (src/arch) as a new model: nodes in order, stored
 * tensors as initializers, symbols of sizes as names. No file appears before all data is on disk.
 * Fails with LAC_EXISTS if path exists and force is false, or with LAC_UNSUPPORTED for nodes with
 * bodies, attributes that are tensors, inputs of unknown type, and beyond 2 GiB. */
LAC_MUST_CHECK lac_status laci_onnx_write(const laci_graph *graph, const char *path, bool force,
                                          lac_error *err);
/** Passes the bytes that laci_onnx_write would write to the function `put`, chunk by chunk. */
LAC_MUST_CHECK lac_status laci_onnx_write_stream(const laci_graph *graph, lac_write_bytes *put,
                                                 void *context, lac_error *err);

/* A model of one EPContext node holds a whole network as bytes that only one execution provider of
 * ONNX Runtime can run. These are the node's type, and the provider's name. */
#define LACI_ONNX_CONTEXT_OP "EPContext"
#define LACI_ONNX_CONTEXT_SOURCE "LacunaExecutionProvider"

/** The bytes that a model of one EPContext node holds. */
typedef struct laci_onnx_context {
  const void *bytes;
  size_t size_bytes;
} laci_onnx_context;

/** Writes a model with the inputs and outputs of the file, and one node, EPContext, that holds the
 * bytes. *size_bytes is its size. Fails as laci_writer_open does, and with LAC_UNSUPPORTED beyond 2
 * GiB. */
LAC_MUST_CHECK lac_status laci_onnx_write_ep_context(const laci_onnx *file,
                                                     const laci_onnx_context *context,
                                                     const char *path,
                                                     const laci_write_options *how,
                                                     uint64_t *size_bytes, lac_error *err);

/** Finds the bytes that a model of one EPContext node holds: *offset and *size_bytes in the file.
 * Returns false if the file is another model, or no model. Reads only a small part of the file. */
bool laci_onnx_find_ep_context(laci_reader *reader, size_t *offset, size_t *size_bytes);

/** Is path one of the files that were read, the model or a data file, perhaps under another
 * name? */
bool laci_onnx_is_source_file(const laci_onnx *file, const char *path);

/** Returns the location of data file number `at`, as the model gives it. The text belongs to
 * `file`; NULL: there are fewer data files. */
const char *laci_onnx_data_file_location(const laci_onnx *file, int at);

/** Destroys a loaded file. file may be NULL. */
void laci_onnx_destroy(laci_onnx *file);

#endif
