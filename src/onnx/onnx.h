/* SPDX-License-Identifier: Apache-2.0
 * ONNX files: reading one into a graph, and writing it again with changed stored tensors.
 *
 * The decoded file stays in memory together with the graph: the graph is a view for analysis (local
 * functions inlined, Constant nodes as stored tensors), while saving writes the decoded file
 * itself. So whatever the graph does not know survives: fields of the future, metadata, the kind of
 * field a tensor came in, the layout of external data. Next: onnx.proto (the wire format), wire.c,
 * import.c, export.c. */
#ifndef LACI_ONNX_ONNX_H
#define LACI_ONNX_ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/model.h"

typedef struct laci_graph laci_graph;
typedef struct laci_reader laci_reader;

/** The decoded file. The graph's stored tensors are views into it: destroy the graph first. */
typedef struct laci_onnx laci_onnx;

/** IR versions 3 to 14, versions 7 to 28 of the standard's operators, any version of other domains.
 *  Fails LAC_BAD_FILE or LAC_UNSUPPORTED with a text that starts with path; both results are NULL
 * then. External data must be in the model's folder. Memory: large tensors stay in their files
 * until they are read; see laci_onnx_fetch. */
LAC_MUST_CHECK lac_status laci_onnx_load(const char *path, laci_onnx **file, laci_graph **graph,
                                         lac_error *err);

/** The same from memory, which may go away afterwards. data_dir: the folder of external data; NULL:
 * there is none. */
LAC_MUST_CHECK lac_status laci_onnx_load_memory(const void *bytes, size_t size_bytes,
                                                const char *data_dir, laci_onnx **file,
                                                laci_graph **graph, lac_error *err);

/** Another graph of the same file, as it says now; the file must outlive it. */
LAC_MUST_CHECK lac_status laci_onnx_graph(laci_onnx *file, laci_graph **graph, lac_error *err);

/** Opens a data file by what the model calls it. */
typedef lac_status laci_onnx_open_data(void *context, const char *location, laci_reader **reader,
                                       lac_error *err);

/** The same from readers. model is taken, whatever happens; open_data is called while loading. */
LAC_MUST_CHECK lac_status laci_onnx_load_from(laci_reader *model, laci_onnx_open_data *open_data,
                                              void *context, laci_onnx **file, laci_graph **graph,
                                              lac_error *err);

/** Copies n bytes from `bytes`, which point into a stored tensor of the file's graph. This reads
 * the file and brings nothing to `bytes`; a file that was cut short since it was loaded is LAC_IO.
 * Any thread. */
LAC_MUST_CHECK lac_status laci_onnx_fetch(void *file, const uint8_t *bytes, size_t n, void *to,
                                          lac_error *err);

/** To be called before stored bytes are read where they are: brings the model's file, and of its
 * data files what its tensors hold, into memory, once. Any thread. */
LAC_MUST_CHECK lac_status laci_onnx_materialise(laci_onnx *file, lac_error *err);
/** The same of n bytes, which are in one stored tensor. */
LAC_MUST_CHECK lac_status laci_onnx_materialise_bytes(laci_onnx *file, const uint8_t *bytes,
                                                      size_t n, lac_error *err);

/** Writes file to path with the stored tensors of graph that have `owned` bytes in place of the old
 * ones. External data gets a new file (or as many as it had) in the folder of path, with the same
 * layout: of the same name in another folder, else named after path (model.onnx: model.data,
 * model.1.data ...). Nothing appears, and nothing is replaced, before all of it is on disk; inputs
 * are never replaced. Fails LAC_EXISTS without force; LAC_UNSUPPORTED beyond 2 GiB. */
LAC_MUST_CHECK lac_status laci_onnx_save(laci_onnx *file, const laci_graph *graph, const char *path,
                                         bool force, lac_error *err);

/** The same bytes, chunk by chunk, to a function; what it fails with ends it. Fails LAC_UNSUPPORTED
 * where there is external data, and beyond 2 GiB. */
LAC_MUST_CHECK lac_status laci_onnx_stream(laci_onnx *file, const laci_graph *graph,
                                           lac_write_bytes *put, void *context, lac_error *err);

/** Writes a graph that came from no file (src/arch): a new model with its nodes in order, stored
 * tensors as initializers, symbols of sizes as names. Nothing appears before all of it is on disk.
 * Fails LAC_EXISTS without force; LAC_UNSUPPORTED for nodes with bodies, attributes that are
 * tensors, inputs of unknown type, and beyond 2 GiB. */
LAC_MUST_CHECK lac_status laci_onnx_write(const laci_graph *graph, const char *path, bool force,
                                          lac_error *err);
/** The same, chunk by chunk, to a function. */
LAC_MUST_CHECK lac_status laci_onnx_write_stream(const laci_graph *graph, lac_write_bytes *put,
                                                 void *context, lac_error *err);

/** True where path names a file that was read: the model or one of its data files, by whatever
 * name. */
bool laci_onnx_reads(const laci_onnx *file, const char *path);

/** The location of data file `at`, a view; NULL: it was read from fewer. */
const char *laci_onnx_data_file(const laci_onnx *file, int at);

/** NULL is fine. */
void laci_onnx_destroy(laci_onnx *file);

#endif
