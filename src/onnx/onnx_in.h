/* SPDX-License-Identifier: Apache-2.0
 * What the files of this room share: the decoded file, where the bytes of tensors live, and the
 * importer's parts.
 *
 * protobuf-c decodes the message; everything here only points into it. */
#ifndef LACI_ONNX_ONNX_IN_H
#define LACI_ONNX_ONNX_IN_H

#include "base/held.h"
#include "base/memory.h"
#include "onnx/onnx.h"
#include "onnx/spans.h"
#include "tensor/shape.h"

#include "onnx.pb-c.h"

#include <stdatomic.h>

typedef struct laci_writer laci_writer;

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "stored tensors are handed out as they are in the file: little-endian");

/** How a tensor's bytes are kept. */
typedef enum laci_source_kind {
  LACI_SOURCE_NONE,     /* nothing to change: text, what a function's caller set */
  LACI_SOURCE_ARRAY,    /* an array of the message, in the layout that the graph sees: `*array` */
  LACI_SOURCE_SCALAR,   /* a number of the message: `scalar` */
  LACI_SOURCE_WIDENED,  /* an array with a wider element (float16 in int32_data): `*array` */
  LACI_SOURCE_EXTERNAL, /* in a data file: `external` */
} laci_source_kind;

/** A stored tensor's `source`. */
typedef struct laci_source {
  laci_source_kind kind;
  void **array;
  void *scalar;
  size_t wide_bytes; /* WIDENED: size of the array's element, 4 or 8 */
  size_t narrow_bytes;
  int per_byte; /* elements of 4 or 2 bits in a byte of the file, which the graph sees as a byte
                   each; 0: the bytes are the graph's */
  struct laci_external *external;
} laci_source;

/** A tensor of the message, checked: as many bytes as its dims ask for. */
typedef struct laci_tensor_view {
  lac_dtype dtype;
  laci_shape shape;
  const uint8_t *bytes;
  size_t size_bytes;
  laci_source source;
} laci_tensor_view;

/** One tensor in a data file. */
typedef struct laci_external {
  Onnx__TensorProto *tensor;
  int file;
  size_t order; /* in the message */
  uint64_t offset, length;
  const uint8_t *fresh; /* while saving: what to write there instead; NULL: as it was */
  bool spilled;         /* while saving: `fresh` is in a spill */
  bool moved;           /* while saving: it shared its place with a tensor of other content */
  uint64_t new_offset;
} laci_external;

/** A data file. */
typedef struct laci_data_file {
  const char *location; /* as the model says it */
  laci_reader *reader;
  bool is_compact; /* some of its tensors went: it is written without what is no tensor's */
} laci_data_file;

struct laci_onnx {
  laci_arena arena;
  Onnx__ModelProto *model;
  laci_reader *reader;            /* of the model's file */
  laci_byte_source bytes_from;    /* the graph's */
  atomic_bool materialised;       /* all stored bytes are where they are said to be */
  char *data_dir;                 /* folder of external data, resolved; NULL: none, or: */
  laci_onnx_open_data *open_data; /* what opens data files; NULL: they are in data_dir */
  void *data_context;             /* its own; only while loading */
  laci_data_file *data_files;     /* in order of first use */
  size_t n_data_files, data_file_capacity;
  laci_external *externals; /* sorted by tensor's address */
  size_t n_externals, external_capacity;
};

/* wire.c */

/** Whether the file is a message that can be decoded. Texts of failures start with "not an ONNX
 * model: ". Looks at all but the bytes of tensors. */
LAC_MUST_CHECK lac_status laci_onnx_check_wire(laci_reader *file, lac_error *err);
LAC_MUST_CHECK lac_status laci_onnx_decode(const uint8_t *bytes, size_t size_bytes,
                                           Onnx__ModelProto **model, lac_error *err);
void laci_onnx_free_model(Onnx__ModelProto *model);
/** Frees a message that is a part of the decoded one. */
void laci_onnx_free_part(ProtobufCMessage *message);
/** Blocks of a decoded message. NULL: no memory. */
void *laci_onnx_block(size_t size_bytes);
void laci_onnx_block_free(void *block);
/** The bytes of an attribute as text. Every block of a decoded message ends in a zero byte (see
 * wire.c). */
const char *laci_onnx_text(const ProtobufCBinaryData *bytes);

typedef lac_status laci_tensor_visit(Onnx__TensorProto *tensor, void *context, lac_error *err);
/** Calls visit for every tensor of the message, at any depth. */
LAC_MUST_CHECK lac_status laci_onnx_each_tensor(ProtobufCMessage *message, laci_tensor_visit *visit,
                                                void *context, lac_error *err);

/* export.c */

/** A model's message. */
typedef struct laci_onnx_message {
  const ProtobufCMessage *base;
  laci_byte_source bytes_from; /* of what it points to; all zero: memory */
  const char *path;            /* for messages */
} laci_onnx_message;

/** Gives `put` a model's message, chunk by chunk; what is not in memory is read a stretch at a
 * time. Fails LAC_UNSUPPORTED beyond 2 GiB, and as put does. */
LAC_MUST_CHECK lac_status laci_onnx_pack(const laci_onnx_message *message, lac_write_bytes *put,
                                         void *context, lac_error *err);
/** The same to a writer, which is finished. */
LAC_MUST_CHECK lac_status laci_onnx_pack_file(const laci_onnx_message *message, laci_writer *writer,
                                              lac_error *err);
/* spans.c */

typedef struct laci_stretch {
  const uint8_t *at, *end;
} laci_stretch;

/** The next field of a message: its number and content; a number's content is empty. False: no
 * valid field. */
bool laci_onnx_field(laci_stretch *s, unsigned *number, laci_stretch *content);

/* outline.c */

/** The message of the file (which passed laci_onnx_check_wire) with a laci_onnx_span, as bytes, in
 * the place of every tensor's raw bytes, which are not looked at. *outline is the caller's
 * (laci_free). */
LAC_MUST_CHECK lac_status laci_onnx_outline(laci_reader *file, uint8_t **outline, size_t *n,
                                            lac_error *err);

/* source.c */

/** Checks and decodes the file, to file->model. But for small ones, raw bytes of tensors are views
 * of where the reader has them, or will. */
LAC_MUST_CHECK lac_status laci_onnx_unpack(laci_onnx *file, lac_error *err);
/** Where the bytes of the file's stored tensors come from. */
laci_byte_source laci_onnx_bytes(laci_onnx *file);
/** Lets go of the reader; the message's views into it first. */
void laci_onnx_close_reader(laci_onnx *file);

/** Frees a part of the decoded message that is in it no more. */
void laci_onnx_free_message(const laci_onnx *file, ProtobufCMessage *message);

/* import.c */

/** The decoded file, whose data files are open, as a graph. */
LAC_MUST_CHECK lac_status laci_onnx_import(laci_onnx *file, laci_graph **graph, lac_error *err);

/* external.c */

/** Opens the data files of all external tensors and checks that each is inside its file. */
LAC_MUST_CHECK lac_status laci_onnx_open_external(laci_onnx *file, lac_error *err);
/** The record of an external tensor; NULL: it is none. */
laci_external *laci_onnx_external(const laci_onnx *file, const Onnx__TensorProto *tensor);

/* tensor.c */

/** Checks a tensor and finds its bytes. `name` is for messages. Memory comes from file's arena. */
LAC_MUST_CHECK lac_status laci_onnx_view(laci_onnx *file, Onnx__TensorProto *tensor,
                                         const char *name, laci_tensor_view *view, lac_error *err);
/** The product of dims times bytes an element. Fails on negative and absurd dims. */
LAC_MUST_CHECK lac_status laci_onnx_count(const Onnx__TensorProto *tensor, const char *name,
                                          int64_t *count, lac_error *err);

/* packed.c */

/** How many elements of a type share a byte of a file: 1, or 2 or 4 where they have 4 or 2 bits. */
int laci_onnx_per_byte(lac_dtype dtype);
/** Bytes that count elements take in a file. False: more than 64 bits count. */
bool laci_onnx_file_bytes(lac_dtype dtype, int64_t count, uint64_t *size_bytes);
/** to [count]: packed elements, a byte each, signs extended. */
void laci_onnx_unpack_elements(lac_dtype dtype, const uint8_t *packed, uint64_t count, uint8_t *to);
/** The inverse, in memory of the arena; NULL: no memory. */
uint8_t *laci_onnx_pack_elements(laci_arena *arena, lac_dtype dtype, const uint8_t *bytes,
                                 uint64_t count);

/* text helpers: absent texts are empty */
static inline const char *laci_onnx_name(const char *text) { return text ? text : ""; }
/** "" for ai.onnx, whichever of its names is used. */
const char *laci_onnx_domain(const char *domain);

#endif
