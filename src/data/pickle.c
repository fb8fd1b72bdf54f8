/* SPDX-License-Identifier: Apache-2.0
 * Implements the virtual machine of pickle.h: a stack of values, marks in the stack, and a memo of
 * values that are used again. As in Python, an opcode may take only values above the last mark from
 * the stack. */
#include "data/pickle.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { PROTOCOL = 2, N_STATE = 5, MOST_LONG = 8, N_STORAGE = 5, N_TENSOR = 6 };

typedef struct machine {
  laci_arena *arena;
  const char *name;
  const uint8_t *bytes;
  size_t size_bytes, at, opcode_at;
  laci_pickle_value **stack;
  size_t n_stack, stack_capacity;
  size_t *marks; /* height of the stack at each mark */
  size_t n_marks, marks_capacity;
  /* [n_memo] the values that opcodes have put into the memo, by their numbers. A new number may be
   * at most n_memo + 1: greater ones are refused */
  laci_pickle_value **memo;
  size_t n_memo, memo_capacity;
  const laci_pickle_value *result;
  bool torch;                 /* the pickle is one of PyTorch's */
  laci_pickle_value storages; /* references to storages of PyTorch, as items */
  lac_error *err;
} machine;

static lac_status fail_opcode(const machine *m, const char *what) {
  return laci_fail(m->err, LAC_BAD_FILE, "%s: byte %zu: %s", m->name, m->opcode_at, what);
}

static lac_status fail_memory(const machine *m) { return laci_fail_memory(m->err, m->name); }

/* ---- Bytes ---- */

/** Sets *bytes to a view of the pickle's next n bytes, and moves past them. */
static lac_status read_next_bytes(machine *m, size_t n, const uint8_t **bytes) {
  if (n > m->size_bytes - m->at) return fail_opcode(m, "the pickle is cut off");
  *bytes = m->bytes + m->at;
  m->at += n;
  return LAC_OK;
}

/** Reads the next n bytes as a little-endian number. */
static lac_status read_next_number(machine *m, size_t n, uint32_t *number) {
  const uint8_t *bytes = NULL;
  lac_status st = read_next_bytes(m, n, &bytes);
  *number = 0;
  for (size_t k = 0; k < n && !st; k++) *number |= (uint32_t)bytes[k] << (8 * k);
  return st;
}

/* ---- The stack ---- */

static size_t height_at_last_mark(const machine *m) {
  return m->n_marks ? m->marks[m->n_marks - 1] : 0;
}

static lac_status push_value(machine *m, laci_pickle_value *value) {
  if (!value || !laci_grow((void **)&m->stack, m->n_stack, &m->stack_capacity, sizeof(void *))) {
    return fail_memory(m);
  }
  m->stack[m->n_stack++] = value;
  return LAC_OK;
}

static lac_status push_new_value(machine *m, laci_pickle_kind kind, int64_t number) {
  laci_pickle_value *value = laci_arena_alloc(m->arena, 1, sizeof *value);
  if (value) *value = (laci_pickle_value){.kind = kind, .number = number};
  return push_value(m, value);
}

/** Removes the top value and returns it; NULL: there is none above the last mark. */
static laci_pickle_value *pop_value(machine *m) {
  return m->n_stack > height_at_last_mark(m) ? m->stack[--m->n_stack] : NULL;
}

/** Returns the top value without removing it; NULL: there is none above the last mark. */
static laci_pickle_value *peek_value(const machine *m) {
  return m->n_stack > height_at_last_mark(m) ? m->stack[m->n_stack - 1] : NULL;
}

static bool is_value_of_kind(const laci_pickle_value *value, laci_pickle_kind kind) {
  return value && value->kind == kind;
}

/** Appends n items to a list or dictionary. Its capacity doubles. So the smaller arrays that are
 * left in the arena are together no larger than the last one. */
static lac_status append_items(machine *m, laci_pickle_value *to, laci_pickle_value *const *items,
                               size_t n) {
  if (to->n + n > to->capacity) {
    size_t capacity = 2 * to->capacity > to->n + n ? 2 * to->capacity : to->n + n;
    laci_pickle_value **grown = laci_arena_alloc(m->arena, capacity, sizeof *grown);
    if (!grown) return fail_memory(m);
    if (to->n) memcpy(grown, to->items, to->n * sizeof *grown);
    to->items = grown;
    to->capacity = capacity;
  }
  if (n) memcpy(to->items + to->n, items, n * sizeof *items);
  to->n += n;
  return LAC_OK;
}

/* ---- Opcodes: values ---- */

static lac_status check_pickle_protocol(machine *m) {
  uint32_t version = 0;
  lac_status st = read_next_number(m, 1, &version);
  if (st || version == PROTOCOL) return st;
  return laci_fail(m->err, LAC_UNSUPPORTED, "%s: a pickle of protocol %d, wanted %d", m->name,
                   (int)version, PROTOCOL);
}

static lac_status push_number(machine *m, size_t n) {
  uint32_t number = 0;
  lac_status st = read_next_number(m, n, &number);
  return st ? st
            : push_new_value(m, LACI_PICKLE_NUMBER, n == 4 ? (int32_t)number : (int64_t)number);
}
static lac_status push_1_byte_integer(machine *m) { return push_number(m, 1); }
static lac_status push_2_byte_integer(machine *m) { return push_number(m, 2); }
static lac_status push_4_byte_integer(machine *m) { return push_number(m, 4); }
static lac_status push_pickle_none(machine *m) { return push_new_value(m, LACI_PICKLE_NONE, 0); }
static lac_status push_pickle_true(machine *m) { return push_new_value(m, LACI_PICKLE_BOOL, 1); }
static lac_status push_pickle_false(machine *m) { return push_new_value(m, LACI_PICKLE_BOOL, 0); }

static lac_status push_pickle_real(machine *m) {
  const uint8_t *bytes = NULL;
  lac_status st = read_next_bytes(m, sizeof(double), &bytes);
  return st ? st : push_new_value(m, LACI_PICKLE_REAL, 0);
}

/** Pushes an integer: the next byte says how many bytes it has, which follow in little-endian
 * order. */
static lac_status push_pickle_long(machine *m) {
  uint32_t n = 0;
  const uint8_t *bytes = NULL;
  lac_status st = read_next_number(m, 1, &n);
  if (!st && n > MOST_LONG) st = fail_opcode(m, "a number of more than 64 bits");
  if (!st) st = read_next_bytes(m, n, &bytes);
  if (st) return st;
  uint64_t number = n && bytes[n - 1] & 0x80 ? UINT64_MAX : 0; /* extends the sign */
  for (size_t k = n; k-- > 0;) number = number << 8 | bytes[k];
  return push_new_value(m, LACI_PICKLE_NUMBER, (int64_t)number);
}

static lac_status push_empty_pickle_list(machine *m) {
  return push_new_value(m, LACI_PICKLE_LIST, 0);
}
static lac_status push_empty_pickle_dict(machine *m) {
  return push_new_value(m, LACI_PICKLE_DICT, 0);
}

static lac_status push_text(machine *m, size_t n_length) {
  uint32_t length = 0;
  const uint8_t *bytes = NULL;
  lac_status st = read_next_number(m, n_length, &length);
  if (!st) st = read_next_bytes(m, length, &bytes);
  if (!st) st = push_new_value(m, LACI_PICKLE_TEXT, 0);
  if (st) return st;
  peek_value(m)->bytes = bytes;
  peek_value(m)->n_bytes = length;
  return LAC_OK;
}
static lac_status push_text_with_1_byte_length(machine *m) { return push_text(m, 1); }
static lac_status push_text_with_4_byte_length(machine *m) { return push_text(m, 4); }

/* ---- Opcodes: collections ---- */

static lac_status push_pickle_mark(machine *m) {
  if (!laci_grow((void **)&m->marks, m->n_marks, &m->marks_capacity, sizeof *m->marks)) {
    return fail_memory(m);
  }
  m->marks[m->n_marks++] = m->n_stack;
  return LAC_OK;
}

/** Removes the last mark and the values above it from the stack, and returns these values. */
static lac_status pop_to_mark(machine *m, laci_pickle_value ***items, size_t *n) {
  if (m->n_marks == 0) return fail_opcode(m, "no mark");
  size_t from = m->marks[--m->n_marks];
  *items = m->stack + from;
  *n = m->n_stack - from;
  m->n_stack = from;
  return LAC_OK;
}

static lac_status push_tuple(machine *m, laci_pickle_value *const *items, size_t n) {
  laci_pickle_value *tuple = laci_arena_alloc(m->arena, 1, sizeof *tuple);
  if (!tuple) return fail_memory(m);
  tuple->kind = LACI_PICKLE_LIST;
  lac_status st = append_items(m, tuple, items, n);
  return st ? st : push_value(m, tuple);
}

static lac_status replace_marked_by_tuple(machine *m) {
  laci_pickle_value **items = NULL;
  size_t n = 0;
  lac_status st = pop_to_mark(m, &items, &n);
  return st ? st : push_tuple(m, items, n);
}

static lac_status replace_top_by_tuple(machine *m, size_t n) {
  if (m->n_stack - height_at_last_mark(m) < n) return fail_opcode(m, "too few values for a tuple");
  m->n_stack -= n;
  return push_tuple(m, m->stack + m->n_stack, n);
}
static lac_status replace_top_1_by_tuple(machine *m) { return replace_top_by_tuple(m, 1); }
static lac_status replace_top_2_by_tuple(machine *m) { return replace_top_by_tuple(m, 2); }
static lac_status replace_top_3_by_tuple(machine *m) { return replace_top_by_tuple(m, 3); }

static lac_status append_pickle_item(machine *m) {
  laci_pickle_value *item = pop_value(m);
  if (!item || !is_value_of_kind(peek_value(m), LACI_PICKLE_LIST))
    return fail_opcode(m, "no list to append to");
  return append_items(m, peek_value(m), &item, 1);
}

static lac_status append_marked_pickle_items(machine *m) {
  laci_pickle_value **items = NULL;
  size_t n = 0;
  lac_status st = pop_to_mark(m, &items, &n);
  if (st) return st;
  if (!is_value_of_kind(peek_value(m), LACI_PICKLE_LIST))
    return fail_opcode(m, "no list to append to");
  return append_items(m, peek_value(m), items, n);
}

static lac_status set_pickle_dict_item(machine *m) {
  if (m->n_stack - height_at_last_mark(m) < 3) return fail_opcode(m, "too few values for an entry");
  m->n_stack -= 2;
  if (!is_value_of_kind(peek_value(m), LACI_PICKLE_DICT))
    return fail_opcode(m, "no dictionary for an entry");
  return append_items(m, peek_value(m), m->stack + m->n_stack, 2);
}

static lac_status set_marked_pickle_dict_items(machine *m) {
  laci_pickle_value **items = NULL;
  size_t n = 0;
  lac_status st = pop_to_mark(m, &items, &n);
  if (st) return st;
  if (!is_value_of_kind(peek_value(m), LACI_PICKLE_DICT))
    return fail_opcode(m, "no dictionary for entries");
  if (n % 2) return fail_opcode(m, "a key without a value");
  return append_items(m, peek_value(m), items, n);
}

/* ---- Opcodes: the memo ---- */

static lac_status store_memo(machine *m, size_t n_number) {
  uint32_t number = 0;
  lac_status st = read_next_number(m, n_number, &number);
  if (st) return st;
  if (!peek_value(m)) return fail_opcode(m, "no value to keep");
  if (number > m->n_memo + 1) return fail_opcode(m, "a number of the memo far beyond the last");
  while (m->n_memo <= number) {
    if (!laci_grow((void **)&m->memo, m->n_memo, &m->memo_capacity, sizeof *m->memo)) {
      return fail_memory(m);
    }
    m->memo[m->n_memo++] = NULL;
  }
  m->memo[number] = peek_value(m);
  return LAC_OK;
}
static lac_status store_pickle_memo_1(machine *m) { return store_memo(m, 1); }
static lac_status store_pickle_memo_4(machine *m) { return store_memo(m, 4); }

static lac_status load_memo(machine *m, size_t n_number) {
  uint32_t number = 0;
  lac_status st = read_next_number(m, n_number, &number);
  if (st) return st;
  if (number >= m->n_memo || !m->memo[number]) return fail_opcode(m, "nothing kept there");
  return push_value(m, m->memo[number]);
}
static lac_status load_pickle_memo_1(machine *m) { return load_memo(m, 1); }
static lac_status load_pickle_memo_4(machine *m) { return load_memo(m, 4); }

/* ---- Opcodes: arrays and tensors ---- */

typedef enum known_name {
  RECONSTRUCT,
  NDARRAY,
  DTYPE,
  FIRST_OF_TORCH,
  ORDERED_DICT = FIRST_OF_TORCH,
  REBUILD_TENSOR,
  REBUILD_PARAMETER,
  SIZE,
  DEVICE,
  TORCH_TYPE, /* type of the elements of a storage, or of a tensor */
} known_name;

/** Reads the text up to the next line end. */
static lac_status read_next_line(machine *m, const char **line, int *length) {
  const uint8_t *end = memchr(m->bytes + m->at, '\n', m->size_bytes - m->at);
  *line = (const char *)m->bytes + m->at;
  if (!end || end - (m->bytes + m->at) > 200) return fail_opcode(m, "a name without an end");
  *length = (int)(end - (m->bytes + m->at));
  m->at += (size_t)*length + 1;
  return LAC_OK;
}

static bool is_line_equal(const char *line, int length, const char *text) {
  return strlen(text) == (size_t)length && memcmp(line, text, (size_t)length) == 0;
}

/** Is this a type of PyTorch's, such as FloatStorage or float32? */
static bool is_torch_type(const char *name, int n) {
  static const char ending[] = "Storage";
  static const char *const types[] = {"float64", "float32", "float16", "bfloat16", "int64",
                                      "int32",   "int16",   "int8",    "uint8",    "bool"};
  const int n_ending = sizeof ending - 1;
  if (n > n_ending && memcmp(name + n - n_ending, ending, (size_t)n_ending) == 0) return true;
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    if (is_line_equal(name, n, types[k])) return true;
  }
  return false;
}

static lac_status push_name_value(machine *m, known_name stands_for, const char *name, int n) {
  lac_status st = push_new_value(m, LACI_PICKLE_NAME, stands_for);
  if (st) return st;
  peek_value(m)->bytes = (const uint8_t *)name;
  peek_value(m)->n_bytes = (size_t)n;
  return LAC_OK;
}

static lac_status push_known_pickle_name(machine *m) {
  static const struct {
    const char *module, *name;
    known_name stands_for;
  } known[] = {{"numpy.core.multiarray", "_reconstruct", RECONSTRUCT},
               {"numpy._core.multiarray", "_reconstruct", RECONSTRUCT},
               {"numpy", "ndarray", NDARRAY},
               {"numpy", "dtype", DTYPE},
               {"collections", "OrderedDict", ORDERED_DICT},
               {"torch._utils", "_rebuild_tensor_v2", REBUILD_TENSOR},
               {"torch._utils", "_rebuild_parameter", REBUILD_PARAMETER},
               {"torch", "Size", SIZE},
               {"torch", "device", DEVICE}};
  const char *module = NULL, *name = NULL;
  int n_module = 0, n_name = 0;
  lac_status st = read_next_line(m, &module, &n_module);
  if (!st) st = read_next_line(m, &name, &n_name);
  if (st) return st;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    if (m->torch == (known[k].stands_for >= FIRST_OF_TORCH) &&
        is_line_equal(module, n_module, known[k].module) &&
        is_line_equal(name, n_name, known[k].name)) {
      return push_name_value(m, known[k].stands_for, name, n_name);
    }
  }
  if (m->torch && is_line_equal(module, n_module, "torch") && is_torch_type(name, n_name))
    return push_name_value(m, TORCH_TYPE, name, n_name);
  return laci_fail(m->err, LAC_UNSUPPORTED, "%s: byte %zu: the name '%.*s.%.*s', wanted %s only",
                   m->name, m->opcode_at, n_module, module, n_name, name,
                   m->torch ? "tensors and plain values" : "NumPy's arrays");
}

bool laci_pickle_is_text(const laci_pickle_value *value, const char *text) {
  return is_value_of_kind(value, LACI_PICKLE_TEXT) && value->n_bytes == strlen(text) &&
         memcmp(value->bytes, text, value->n_bytes) == 0;
}

/** Replaces the top of the stack, ("storage", type, key, device, number of elements), by a storage
 * of PyTorch. */
static lac_status replace_top_by_torch_storage(machine *m) {
  const laci_pickle_value *id = pop_value(m);
  bool is_one = is_value_of_kind(id, LACI_PICKLE_LIST) && id->n >= N_STORAGE &&
                laci_pickle_is_text(id->items[0], "storage") &&
                is_value_of_kind(id->items[1], LACI_PICKLE_NAME) &&
                id->items[1]->number == TORCH_TYPE &&
                is_value_of_kind(id->items[2], LACI_PICKLE_TEXT) &&
                is_value_of_kind(id->items[4], LACI_PICKLE_NUMBER);
  if (!is_one) return fail_opcode(m, "a reference that is no storage of PyTorch's");
  lac_status st = push_new_value(m, LACI_PICKLE_STORAGE, 0);
  if (st) return st;
  laci_pickle_value *made = peek_value(m);
  st = append_items(m, made, id->items, id->n);
  return st ? st : append_items(m, &m->storages, &made, 1);
}

static lac_status push_tensor(machine *m, const laci_pickle_value *given) {
  bool is_one = given->n >= N_TENSOR && is_value_of_kind(given->items[0], LACI_PICKLE_STORAGE) &&
                is_value_of_kind(given->items[1], LACI_PICKLE_NUMBER) &&
                is_value_of_kind(given->items[2], LACI_PICKLE_LIST) &&
                is_value_of_kind(given->items[3], LACI_PICKLE_LIST);
  if (!is_one) return fail_opcode(m, "a tensor without storage, offset, shape and strides");
  lac_status st = push_new_value(m, LACI_PICKLE_TENSOR, 0);
  return st ? st : append_items(m, peek_value(m), given->items, given->n);
}

/** Pushes a dictionary: an empty one, or one that is made of a list of pairs (key, value). */
static lac_status push_ordered_dict(machine *m, const laci_pickle_value *given) {
  lac_status st = push_new_value(m, LACI_PICKLE_DICT, 0);
  if (st || given->n == 0) return st;
  const laci_pickle_value *pairs = given->n == 1 ? given->items[0] : NULL;
  if (!is_value_of_kind(pairs, LACI_PICKLE_LIST)) return fail_opcode(m, "a dictionary of no pairs");
  for (size_t k = 0; k < pairs->n && !st; k++) {
    const laci_pickle_value *pair = pairs->items[k];
    if (!is_value_of_kind(pair, LACI_PICKLE_LIST) || pair->n != 2)
      return fail_opcode(m, "a dictionary of no pairs");
    st = append_items(m, peek_value(m), pair->items, 2);
  }
  return st;
}

/** Executes a call of one of PyTorch's functions; only a few are known. */
static lac_status execute_torch_call(machine *m, known_name name, const laci_pickle_value *given) {
  laci_pickle_value *first = given->n ? given->items[0] : NULL;
  if (name == ORDERED_DICT) return push_ordered_dict(m, given);
  if (name == REBUILD_TENSOR) return push_tensor(m, given);
  if (name == REBUILD_PARAMETER && is_value_of_kind(first, LACI_PICKLE_TENSOR))
    return push_value(m, first);
  if (name == SIZE && is_value_of_kind(first, LACI_PICKLE_LIST)) return push_value(m, first);
  if (name == DEVICE && is_value_of_kind(first, LACI_PICKLE_TEXT)) return push_value(m, first);
  return fail_opcode(m, "a call that is none of a tensor");
}

/** Executes a call of numpy.core.multiarray._reconstruct(ndarray, (0,), 'b'), of numpy.dtype('u1',
 * 0, 1), or of a known function of PyTorch. All other calls are refused. */
static lac_status execute_pickle_call(machine *m) {
  const laci_pickle_value *given = pop_value(m), *name = pop_value(m);
  if (m->torch && is_value_of_kind(name, LACI_PICKLE_NAME) &&
      is_value_of_kind(given, LACI_PICKLE_LIST))
    return execute_torch_call(m, (known_name)name->number, given);
  if (!is_value_of_kind(name, LACI_PICKLE_NAME) || !is_value_of_kind(given, LACI_PICKLE_LIST) ||
      given->n != 3) {
    return fail_opcode(m,
                       m->torch ? "a call of what is no name" : "a call that is none of NumPy's");
  }
  if (name->number == DTYPE) {
    return push_new_value(m, LACI_PICKLE_TYPE, laci_pickle_is_text(given->items[0], "u1"));
  }
  bool array = name->number == RECONSTRUCT && is_value_of_kind(given->items[0], LACI_PICKLE_NAME) &&
               given->items[0]->number == NDARRAY;
  return array ? push_new_value(m, LACI_PICKLE_ARRAY, 0)
               : fail_opcode(m, "a call that is none of NumPy's");
}

/** Does an array of this shape have exactly n_bytes elements? */
static bool has_shape_n_elements(const laci_pickle_value *shape, size_t n_bytes) {
  uint64_t count = 1;
  for (size_t k = 0; k < shape->n; k++) {
    const laci_pickle_value *side = shape->items[k];
    if (!is_value_of_kind(side, LACI_PICKLE_NUMBER) || side->number < 0 || side->number > INT32_MAX)
      return false;
    if (side->number && count > n_bytes / (uint64_t)side->number) return false;
    count *= (uint64_t)side->number;
  }
  return count == n_bytes;
}

/** Sets the state, on top of the stack, of the object below it. That of an array is (1, shape,
 * type, Fortran order, bytes). That of a type is ignored, and so are attributes of a dictionary,
 * such as the versions of a state dict's modules. */
static lac_status set_pickle_object_state(machine *m) {
  const laci_pickle_value *state = pop_value(m);
  laci_pickle_value *array = peek_value(m);
  if (is_value_of_kind(state, LACI_PICKLE_LIST) && is_value_of_kind(array, LACI_PICKLE_TYPE))
    return LAC_OK;
  if (is_value_of_kind(state, LACI_PICKLE_DICT) && is_value_of_kind(array, LACI_PICKLE_DICT))
    return LAC_OK;
  if (!is_value_of_kind(state, LACI_PICKLE_LIST) || state->n != N_STATE ||
      !is_value_of_kind(array, LACI_PICKLE_ARRAY)) {
    return fail_opcode(m, "a state that is none of an array");
  }
  laci_pickle_value **parts = state->items;
  if (!is_value_of_kind(parts[1], LACI_PICKLE_LIST) ||
      !is_value_of_kind(parts[2], LACI_PICKLE_TYPE) || !parts[2]->number ||
      !is_value_of_kind(parts[3], LACI_PICKLE_BOOL) || parts[3]->number ||
      !is_value_of_kind(parts[4], LACI_PICKLE_TEXT)) {
    return fail_opcode(m, "no array of bytes in C order");
  }
  if (!has_shape_n_elements(parts[1], parts[4]->n_bytes)) {
    return fail_opcode(m, "an array whose shape has not its bytes");
  }
  array->items = parts[1]->items;
  array->n = array->capacity = parts[1]->n;
  array->bytes = parts[4]->bytes;
  array->n_bytes = parts[4]->n_bytes;
  return LAC_OK;
}

/* ---- Running the opcodes ---- */

static lac_status finish_pickle(machine *m) {
  m->result = pop_value(m);
  if (!m->result) return fail_opcode(m, "an end without a value");
  if (m->n_stack || m->n_marks) return fail_opcode(m, "an end with more than a value");
  if (m->at < m->size_bytes && !m->torch) return fail_opcode(m, "bytes after the end");
  return LAC_OK;
}

static const struct {
  const char *name;
  lac_status (*run)(machine *m);
  bool of_torch;
} opcodes[UINT8_MAX + 1] = {
#define LAC_PICKLE(byte, text, function) [byte] = {#text, function, false},
#define LAC_PICKLE_TORCH(byte, text, function) [byte] = {#text, function, true},
#include "data/pickle.def"
#undef LAC_PICKLE
#undef LAC_PICKLE_TORCH
};

static lac_status run_opcode(machine *m) {
  uint32_t opcode = 0;
  m->opcode_at = m->at;
  lac_status st = read_next_number(m, 1, &opcode);
  if (st) return st;
  if (m->opcode_at == 0 && opcode != 0x80) {
    return laci_fail(m->err, LAC_BAD_FILE, "%s: no pickle of protocol %d", m->name, PROTOCOL);
  }
  if (opcodes[opcode].run && (m->torch || !opcodes[opcode].of_torch)) return opcodes[opcode].run(m);
  return laci_fail(m->err, LAC_UNSUPPORTED,
                   "%s: byte %zu: the opcode %s (0x%02x), which %s files do not have", m->name,
                   m->opcode_at, opcodes[opcode].name ? opcodes[opcode].name : "unknown",
                   (unsigned)opcode, m->torch ? "PyTorch's" : "CIFAR's");
}

static lac_status run_pickle(machine *m, const laci_pickle_value **value) {
  lac_status st = LAC_OK;
  *value = NULL;
  while (!m->result && !st) st = run_opcode(m);
  if (!st) *value = m->result;
  laci_free(m->stack);
  laci_free(m->marks);
  laci_free(m->memo);
  return st;
}

lac_status laci_pickle_parse(laci_arena *arena, const char *name, const uint8_t *bytes,
                             size_t size_bytes, const laci_pickle_value **value, lac_error *err) {
  machine m = {.arena = arena, .name = name, .bytes = bytes, .size_bytes = size_bytes, .err = err};
  return run_pickle(&m, value);
}

lac_status laci_pickle_parse_torch(laci_arena *arena, const char *name, laci_pickle_bytes *from,
                                   laci_pickle_torch *found, lac_error *err) {
  machine m = {.arena = arena,
               .name = name,
               .bytes = from->at,
               .size_bytes = from->n,
               .torch = true,
               .err = err};
  lac_status st = run_pickle(&m, &found->root);
  found->storages = m.storages.items;
  found->n_storages = m.storages.n;
  from->at += m.at;
  from->n -= m.at;
  return st;
}

const laci_pickle_value *laci_pickle_find_in_dict(const laci_pickle_value *dict, const char *key) {
  if (!is_value_of_kind(dict, LACI_PICKLE_DICT)) return NULL;
  for (size_t k = 0; k + 1 < dict->n; k += 2) {
    if (laci_pickle_is_text(dict->items[k], key)) return dict->items[k + 1];
  }
  return NULL;
}
