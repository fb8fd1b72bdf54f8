/* SPDX-License-Identifier: Apache-2.0
 * Declarations that the files of this folder share: the decoded file, where the bytes of tensors
 * are stored, and parts of the importer.
 *
 * protobuf-c decodes the file to a tree of messages; the structs here point into it. */
#ifndef LACI_ONNX_ONNX_IN_H
#define LACI_ONNX_ONNX_IN_H

#include "base/acquire.h"
#include "base/memory.h"
#include "onnx/onnx.h"
#include "tensor/shape.h"

#include "onnx.pb-c.h"

#include <stdatomic.h>

typedef struct laci_writer laci_writer;

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "stored tensors are handed out as they are in the file: little-endian");

/** The kind of place where the bytes of a stored tensor are in the file. */
typedef enum laci_source_kind {
  LACI_SOURCE_NONE,     /* the bytes cannot be changed: texts, arguments of a function call */
  LACI_SOURCE_ARRAY,    /* the bytes are the array `*array` of the decoded file, with the same
                           layout as in the graph */
  LACI_SOURCE_SCALAR,   /* the bytes are a number in a field of the decoded file, whose address is
                           `scalar` */
  LACI_SOURCE_WIDENED,  /* the bytes are in the array `*array` of the decoded file, with wider
                           elements than in the graph (float16 in int32_data) */
  LACI_SOURCE_EXTERNAL, /* the bytes are in a data file; `external` says where */
} laci_source_kind;

/** Where the bytes of a stored tensor are in the file; laci_stored.source points to it. */
typedef struct laci_source {
  laci_source_kind kind;
  void **array;
  void *scalar;
  size_t wide_bytes; /* number of bytes of an array element, 4 or 8, if kind is
                        LACI_SOURCE_WIDENED */
  size_t narrow_bytes;
  /* number of elements (of 4 or 2 bits) that share a byte of the file, 2 or 4; the graph has a byte
   * for each. 0: the file has the same bytes as the graph */
  int per_byte;
  struct laci_external *external;
} laci_source;

/** A tensor of the decoded file. It has been checked to have as many bytes as its dims require. */
typedef struct laci_tensor_view {
  lac_dtype dtype;
  laci_shape shape;
  const uint8_t *bytes;
  size_t size_bytes;
  laci_source source;
} laci_tensor_view;

/** A tensor whose bytes are in a data file. */
typedef struct laci_external {
  Onnx__TensorProto *tensor;
  int file;
  size_t order; /* index of the tensor among all tensors of the decoded file */
  uint64_t offset, length;
  const uint8_t *fresh; /* while the model is saved: the tensor's new bytes; NULL: they are
                           unchanged */
  bool spilled;         /* while the model is saved: `fresh` is in a temporary file
                           (base/spill.h) */
  /* while the model is saved: the tensor gets a new offset. It shares bytes with a tensor whose
   * content differs now */
  bool has_new_offset;
  uint64_t new_offset;
} laci_external;

/** A data file of the model, which has bytes of external tensors. */
typedef struct laci_data_file {
  const char *location; /* the file's location as written in the model */
  laci_reader *reader;
  /* true: an edit removed some of its tensors, and so it is written with only the bytes that belong
     to a tensor */
  bool is_compact;
} laci_data_file;

struct laci_onnx {
  laci_arena arena;
  Onnx__ModelProto *model;
  laci_reader *reader;         /* reader of the model's file */
  laci_byte_source bytes_from; /* reads the bytes of stored tensors for the graphs that were
                                  imported from the file */
  atomic_bool materialised;    /* true: all stored bytes are in memory, at their addresses */
  /* folder of external data, with links resolved; NULL: there is none, or open_data opens the
     files */
  char *data_dir;
  laci_onnx_open_data *open_data; /* opens data files; NULL: they are in data_dir */
  void *data_context;             /* context of open_data; valid only while the model is loaded */
  laci_data_file *data_files;     /* [n_data_files] the data files, in the order of their first
                                     use */
  size_t n_data_files, data_file_capacity;
  laci_external *externals; /* records of all external tensors, sorted by the address of the
                               TensorProto */
  size_t n_externals, external_capacity;
};

/* ---- Functions of wire.c ---- */

/** Checks that the file is a protobuf message that can be decoded. Reads all of it but the bytes of
 * tensors. Texts of failures start with "not an ONNX model: ". */
LAC_MUST_CHECK lac_status laci_onnx_check_wire_format(laci_reader *file, lac_error *err);
LAC_MUST_CHECK lac_status laci_onnx_decode(const uint8_t *bytes, size_t size_bytes,
                                           Onnx__ModelProto **model, lac_error *err);
void laci_onnx_free_model(Onnx__ModelProto *model);
/** Frees a message that is a part of a decoded protobuf message. */
void laci_onnx_free_submessage(ProtobufCMessage *message);
/** Allocate and free blocks of memory that belong to a decoded protobuf message. NULL: no
 * memory. */
void *laci_onnx_block_alloc(size_t size_bytes);
void laci_onnx_block_free(void *block);
/** Returns the bytes of an attribute as a text. Every block of a decoded message ends in a zero
 * byte (see wire.c). */
const char *laci_onnx_bytes_as_text(const ProtobufCBinaryData *bytes);

typedef lac_status laci_tensor_visit(Onnx__TensorProto *tensor, void *context, lac_error *err);
/** Calls visit for every TensorProto in a protobuf message, at any depth. */
LAC_MUST_CHECK lac_status laci_onnx_visit_tensors(ProtobufCMessage *message,
                                                  laci_tensor_visit *visit, void *context,
                                                  lac_error *err);

/* ---- Functions of pack.c ---- */

/** A model's protobuf message that is to be written. */
typedef struct laci_onnx_message {
  const ProtobufCMessage *base;
  laci_byte_source bytes_from; /* reads the bytes that the message points to; all zero: they are in
                                  memory */
  const char *path;            /* path of the file, for messages */
} laci_onnx_message;

/** Passes the bytes of a model's file to `put`, chunk by chunk. Bytes that are not in memory are
 * read one chunk at a time. Fails with LAC_UNSUPPORTED beyond 2 GiB, and as put does. */
LAC_MUST_CHECK lac_status laci_onnx_serialize(const laci_onnx_message *message,
                                              lac_write_bytes *put, void *context, lac_error *err);
/** Writes the bytes of a model's file to a writer, and finishes the writer. */
LAC_MUST_CHECK lac_status laci_onnx_serialize_to_writer(const laci_onnx_message *message,
                                                        laci_writer *writer, lac_error *err);
/* ---- Functions of spans.c ---- */

typedef struct laci_byte_range {
  const uint8_t *at, *end;
} laci_byte_range;

/** Reads the next field of a protobuf message: its number and the range of its content, which is
 * empty for a numeric field. Returns false if no valid field follows. */
bool laci_onnx_read_next_field(laci_byte_range *s, unsigned *number, laci_byte_range *content);

/* ---- Functions of outline.c ---- */

/** Builds the outline of a file that passed laci_onnx_check_wire_format: its message, in which a
 * laci_onnx_span (offset and size) replaces the raw bytes of every tensor. The raw bytes are not
 * read. The caller frees *outline by laci_free. */
LAC_MUST_CHECK lac_status laci_onnx_build_outline(laci_reader *file, uint8_t **outline, size_t *n,
                                                  lac_error *err);

/* ---- Functions of source.c ---- */

/** Checks and decodes the file to file->model. The raw bytes of large tensors are not loaded: the
 * message points to addresses that the reader reserves for them. */
LAC_MUST_CHECK lac_status laci_onnx_decode_file(laci_onnx *file, lac_error *err);
/** Returns a reader of the stored tensors' bytes, which may not be in memory. */
laci_byte_source laci_onnx_byte_source(laci_onnx *file);
/** Closes the file's reader. Before that, it clears the pointers of the decoded message into the
 * reader's memory. */
void laci_onnx_close_reader(laci_onnx *file);

/** Frees a message that an edit removed from the decoded file. */
void laci_onnx_free_message(const laci_onnx *file, ProtobufCMessage *message);

/* ---- Functions of import.c ---- */

/** Imports the decoded file, whose data files are open, as a graph. */
LAC_MUST_CHECK lac_status laci_onnx_import(laci_onnx *file, laci_graph **graph, lac_error *err);

/* ---- Functions of external.c ---- */

/** Opens the data files of all external tensors, and checks that each tensor is inside its file. */
LAC_MUST_CHECK lac_status laci_onnx_open_data_files(laci_onnx *file, lac_error *err);
/** Returns the record of an external tensor; NULL: the tensor is not external. */
laci_external *laci_onnx_find_external(const laci_onnx *file, const Onnx__TensorProto *tensor);

/* ---- Functions of tensor.c and dims.c ---- */

/** Checks a tensor, and finds its type, shape and bytes: *view. `name` is for messages. Memory
 * comes from the file's arena. */
LAC_MUST_CHECK lac_status laci_onnx_view_tensor(laci_onnx *file, Onnx__TensorProto *tensor,
                                                const char *name, laci_tensor_view *view,
                                                lac_error *err);
/** Computes the number of elements of a tensor: the product of its dims. Fails if dims are negative
 * or absurdly large. */
LAC_MUST_CHECK lac_status laci_onnx_count_elements(const Onnx__TensorProto *tensor,
                                                   const char *name, int64_t *count,
                                                   lac_error *err);

/* ---- Functions of packed.c ---- */

/** Returns the number of elements of a type that share a byte of a file: 2 or 4 for elements of 4
 * or 2 bits, else 1. */
int laci_onnx_elements_per_byte(lac_dtype dtype);
/** Computes the number of bytes that `count` elements take in a file. Returns false if it does not
 * fit into 64 bits. */
bool laci_onnx_count_packed_bytes(lac_dtype dtype, int64_t count, uint64_t *size_bytes);
/** Unpacks elements of 4 or 2 bits to to[count], one byte for each, with signs extended. */
void laci_onnx_unpack_elements(lac_dtype dtype, const uint8_t *packed, uint64_t count, uint8_t *to);
/** Packs `count` elements of 4 or 2 bits, one byte each in `bytes`, as the file has them. The
 * result is in the arena; NULL: no memory. */
uint8_t *laci_onnx_pack_elements(laci_arena *arena, lac_dtype dtype, const uint8_t *bytes,
                                 uint64_t count);

/* Returns the text, or "" if it is NULL. */
static inline const char *laci_onnx_text_or_empty(const char *text) { return text ? text : ""; }
/** Returns "" for ai.onnx under any of its names, else the domain. */
const char *laci_onnx_canonical_domain(const char *domain);

#endif
