/* SPDX-License-Identifier: Apache-2.0
 * ONNX Runtime's interface for execution providers, as far as this one uses it: tables of function
 * pointers, each known by its place. Places and arguments are facts of the interface, which keeps
 * them for ever. Nothing of ONNX Runtime is compiled in, and no package of it is needed.
 *
 * A library exports CreateEpFactories, which gets the table, and gives back a factory. The factory
 * makes a provider for each session. The provider names the nodes that it takes (get_capability),
 * and makes a computation of each part that ONNX Runtime cut out for it (compile). */
#ifndef LAC_ORT_ORT_H
#define LAC_ORT_ORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  LAC_ORT_API = 23,      /* the oldest API with providers from libraries, and the one asked for */
  LAC_ORT_PROFILES = 25, /* the first API with which a provider may add to a session's profile */
  LAC_ORT_TENSOR = 1,    /* number of the kind of types that are tensors */
  LAC_ORT_CPU = 0,       /* number of the kind of devices that are processors */
  LAC_ORT_KERNEL = 2,    /* number of the kind of events in a profile that are runs of a kernel */
  LAC_ORT_VERBOSE = 0,   /* levels of the log */
  LAC_ORT_INFO = 1,
  LAC_ORT_WARNING = 2,
  LAC_ORT_ERROR = 3,
};

/** Codes of failures. */
enum {
  LAC_ORT_FAILS = 1,
  LAC_ORT_BAD_ARGUMENT = 2,
  LAC_ORT_UNSUPPORTED = 9,
  LAC_ORT_PROVIDER_FAILS = 11,
};

/** Types of attributes. */
enum {
  LAC_ORT_INT = 1,
  LAC_ORT_INTS = 2,
  LAC_ORT_FLOAT = 3,
  LAC_ORT_FLOATS = 4,
  LAC_ORT_STRING = 5,
  LAC_ORT_STRINGS = 6,
  LAC_ORT_GRAPH = 7,
  LAC_ORT_ATTRIBUTE_TENSOR = 8,
};

/* What belongs to ONNX Runtime is opaque. */
typedef struct ort_attribute ort_attribute;
typedef struct ort_device ort_device;
typedef struct ort_ep_device ort_ep_device;
typedef struct ort_event ort_event; /* an event of a profile */
typedef struct ort_events ort_events;
typedef struct ort_external ort_external;
typedef struct ort_graph ort_graph;
typedef struct ort_kernel ort_kernel;
typedef struct ort_logger ort_logger;
typedef struct ort_node ort_node;
typedef struct ort_pairs ort_pairs;
typedef struct ort_session_options ort_session_options;
typedef struct ort_shape ort_shape; /* the shape of a tensor, with its element type */
typedef struct ort_status ort_status;
typedef struct ort_support ort_support; /* the nodes that a provider takes */
typedef struct ort_type ort_type;
typedef struct ort_value ort_value;
typedef struct ort_value_info ort_value_info;

typedef void (*ort_slot)(void);

typedef struct ort_base {
  const ort_slot *(*get_api)(uint32_t version); /* returns the API's table of functions; NULL: no
                                                   such version */
  const char *(*get_version)(void);
} ort_base;

typedef struct ort_ep ort_ep;
typedef struct ort_factory ort_factory;
typedef struct ort_compute ort_compute;
typedef struct ort_profiler ort_profiler;

/** How ONNX Runtime merges the nodes of a part into one fused node. */
typedef struct ort_fusion {
  uint32_t version;
  bool drop_constants; /* constant initializers are no inputs of the fused node, and are released */
} ort_fusion;

struct ort_factory {
  uint32_t version;
  const char *(*get_name)(const ort_factory *self);
  const char *(*get_vendor)(const ort_factory *self);
  ort_status *(*get_supported_devices)(ort_factory *self, const ort_device *const *devices,
                                       size_t n_devices, ort_ep_device **to, size_t most,
                                       size_t *n);
  ort_status *(*create_ep)(ort_factory *self, const ort_device *const *devices,
                           const ort_pairs *const *metadata, size_t n_devices,
                           const ort_session_options *options, const ort_logger *logger,
                           ort_ep **ep);
  void (*release_ep)(ort_factory *self, ort_ep *ep);
  uint32_t (*get_vendor_id)(const ort_factory *self);
  const char *(*get_version)(const ort_factory *self);
  void *validate_compiled; /* NULL: any compiled model is valid */
  ort_status *(*create_allocator)(ort_factory *self, const void *memory, const ort_pairs *options,
                                  void **allocator);
  void (*release_allocator)(ort_factory *self, void *allocator);
  ort_status *(*create_data_transfer)(ort_factory *self, void **transfer);
  bool (*is_stream_aware)(const ort_factory *self);
  ort_status *(*create_stream)(ort_factory *self, const void *memory, const ort_pairs *options,
                               void **stream);
};

struct ort_ep {
  uint32_t version;
  const char *(*get_name)(const ort_ep *self);
  ort_status *(*get_capability)(ort_ep *self, const ort_graph *graph, ort_support *support);
  ort_status *(*compile)(ort_ep *self, const ort_graph **graphs, const ort_node **fused, size_t n,
                         ort_compute **computes, ort_node **context_nodes);
  void (*release_computes)(ort_ep *self, ort_compute **computes, size_t n);
  /* NULL, so that ONNX Runtime's defaults hold: layouts, dynamic options, notices of runs,
   * allocators, streams, compatibility; since 24 a registry of kernels and concurrent runs, since
   * 25 waiting for a device */
  void *unused[11];
  ort_status *(*create_profiler)(ort_ep *self, ort_profiler **made); /* since 25 */
};

/** Adds events to the profile of a session; since 25. */
struct ort_profiler {
  uint32_t version;
  void (*release)(ort_profiler *self);
  /** Called when a profile begins. passed_ns: nanoseconds since then. */
  ort_status *(*start)(ort_profiler *self, int64_t passed_ns);
  void *start_event, *stop_event; /* called at events of ONNX Runtime itself; NULL: not called */
  ort_status *(*end)(ort_profiler *self, ort_events *events);
};

struct ort_compute {
  uint32_t version;
  ort_status *(*create_state)(ort_compute *self, void *context, void **state);
  ort_status *(*run)(ort_compute *self, void *state, ort_kernel *kernel);
  void (*release_state)(ort_compute *self, void *state);
};

#endif
