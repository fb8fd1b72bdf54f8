/* SPDX-License-Identifier: Apache-2.0
 * Einsum: products of operands summed over the indices that the output does not name.
 *
 * The equation is parsed into an index number for each axis: that of its letter, or, for axes under
 * "...", of its position from the right; there, sizes of 1 are broadcast. Shapes, loops and
 * coupling are all derived from these numbers. */
#include <ctype.h>

#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

enum { N_LETTERS = 52, N_INDICES = N_LETTERS + LACI_MAX_RANK, MAX_OPERANDS = 8 };

typedef struct term {
  int n;
  int index[LACI_MAX_RANK];
} term;

typedef struct equation {
  int n_in;
  term in[MAX_OPERANDS], out;
} equation;

static int letter_index(char c) { return isupper((unsigned char)c) ? c - 'A' : c - 'a' + 26; }

static bool append_index_of_axis(term *t, int index) {
  if (t->n == LACI_MAX_RANK) return false;
  t->index[t->n++] = index;
  return true;
}

/** Reads one term of the equation, up to ',', '-' or the end. rank -1: "..." stands for n_dots
 * axes. *rest is moved past the term. */
static bool parse_term(const char **rest, int rank, int n_dots, term *t) {
  int n_letters = 0;
  for (const char *c = *rest; *c && *c != ',' && *c != '-'; c++)
    n_letters += isalpha((unsigned char)*c) != 0;
  if (rank >= 0) n_dots = rank - n_letters;
  bool dots = false;
  *t = (term){0};
  const char *c = *rest;
  for (; *c && *c != ',' && *c != '-'; c++) {
    if (*c == ' ') continue;
    if (isalpha((unsigned char)*c)) {
      if (!append_index_of_axis(t, letter_index(*c))) return false;
    } else if (strncmp(c, "...", 3) == 0 && !dots) {
      dots = true;
      c += 2;
      for (int at = n_dots - 1; at >= 0; at--) {
        if (!append_index_of_axis(t, N_LETTERS + at)) return false;
      }
    } else {
      return false;
    }
  }
  *rest = c;
  return rank < 0 || t->n == rank;
}

/** Builds the output term of an equation without "->": the axes under "...", then each letter that
 * occurs once, in alphabetical order. */
static bool make_implied_output(const equation *e, int n_dots, term *out) {
  int times[N_INDICES] = {0};
  for (int k = 0; k < e->n_in; k++) {
    for (int at = 0; at < e->in[k].n; at++) times[e->in[k].index[at]]++;
  }
  *out = (term){0};
  for (int at = n_dots - 1; at >= 0; at--) {
    if (!append_index_of_axis(out, N_LETTERS + at)) return false;
  }
  for (int letter = 0; letter < N_LETTERS; letter++) {
    if (times[letter] == 1 && !append_index_of_axis(out, letter)) return false;
  }
  return true;
}

static bool parse_equation(const char *rest, const laci_shape *const *shapes, int n_in,
                           equation *e) {
  int n_dots = 0;
  bool read = false;
  if (n_in > MAX_OPERANDS) return false;
  e->n_in = n_in;
  for (int k = 0; k < n_in; k++) {
    if (k > 0 && *rest++ != ',') return false;
    if (!parse_term(&rest, shapes[k]->rank, 0, &e->in[k])) return false;
    for (int at = 0; at < e->in[k].n; at++) {
      int place = e->in[k].index[at] - N_LETTERS + 1;
      if (place > n_dots) n_dots = place;
    }
  }
  if (!*rest) return make_implied_output(e, n_dots, &e->out);
  if (strncmp(rest, "->", 2) != 0) return false;
  rest += 2;
  read = parse_term(&rest, -1, n_dots, &e->out);
  return read && !*rest;
}

/** Finds size[index], -1 where no operand has the index. Known sizes take precedence over symbols,
 * larger ones over a 1 that is broadcast. Returns false where sizes contradict each other, or where
 * the output has an index twice or one that no operand has. */
static bool find_index_sizes(const equation *e, const laci_shape *const *shapes, int64_t *size,
                             bool *has) {
  memset(has, 0, N_INDICES * sizeof *has);
  for (int k = 0; k < e->n_in; k++) {
    for (int at = 0; at < e->in[k].n; at++) {
      int index = e->in[k].index[at];
      int64_t found = shapes[k]->dims[at];
      bool broadcasts = index >= N_LETTERS;
      if (!has[index] || (broadcasts && size[index] == 1) ||
          (size[index] < 0 && found >= 0 && !(broadcasts && found == 1))) {
        size[index] = found;
      } else if (found >= 0 && size[index] >= 0 && found != size[index] &&
                 !(broadcasts && found == 1)) {
        return false;
      }
      has[index] = true;
    }
  }
  bool named[N_INDICES] = {false};
  for (int at = 0; at < e->out.n; at++) {
    if (!has[e->out.index[at]] || named[e->out.index[at]]) return false;
    named[e->out.index[at]] = true;
  }
  return true;
}

static lac_status parse_and_find_sizes(const laci_node *node, const laci_shape *const *shapes,
                                       int n_in, equation *e, int64_t *size, lac_error *err) {
  bool has[N_INDICES];
  const char *text = laci_node_text(node, "equation", "");
  if (!parse_equation(text, shapes, n_in, e) || !find_index_sizes(e, shapes, size, has)) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "equation '%s' does not fit %d operands", text,
                          n_in);
  }
  return LAC_OK;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, infer->n_in > 1 ? infer->n_in : 1, MAX_OPERANDS);
  if (st) return st;
  const laci_shape *shapes[MAX_OPERANDS];
  infer->out[0].dtype = infer->in[0]->dtype;
  for (int k = 0; k < infer->n_in; k++) {
    shapes[k] = laci_in_shape(infer, k);
    if (!shapes[k]) return LAC_OK;
  }
  equation e;
  int64_t size[N_INDICES];
  st = parse_and_find_sizes(infer->node, shapes, infer->n_in, &e, size, infer->err);
  if (st) return st;
  laci_shape *y = &infer->out[0].shape;
  y->rank = e.out.n;
  for (int at = 0; at < e.out.n; at++) y->dims[at] = size[e.out.index[at]];
  return LAC_OK;
}

typedef struct job {
  const laci_eval *eval;
  int n_in, n_out, n_sum;
  /* sizes of the loops: first over the output's axes, then over the summed indices */
  int64_t size[N_INDICES];
  int64_t stride[MAX_OPERANDS][N_INDICES];
  int64_t n_terms; /* number of products that are summed for one result */
} job;

static void plan_loops(const equation *e, const int64_t *size, job *j) {
  int loop_of[N_INDICES];
  for (int at = 0; at < N_INDICES; at++) loop_of[at] = -1;
  int n_loops = 0;
  for (; n_loops < e->out.n; n_loops++) {
    loop_of[e->out.index[n_loops]] = n_loops;
    j->size[n_loops] = size[e->out.index[n_loops]];
  }
  j->n_out = n_loops;
  j->n_terms = 1;
  for (int k = 0; k < e->n_in; k++) {
    const laci_shape *shape = &j->eval->in[k]->shape;
    int64_t strides[LACI_MAX_RANK];
    laci_shape_strides(shape, strides);
    for (int at = 0; at < e->in[k].n; at++) {
      int index = e->in[k].index[at];
      if (loop_of[index] < 0) {
        loop_of[index] = n_loops;
        j->n_terms *= size[index];
        j->size[n_loops++] = size[index];
      }
      if (shape->dims[at] == size[index]) j->stride[k][loop_of[index]] += strides[at];
    }
  }
  j->n_sum = n_loops - j->n_out;
}

/** Computes the flat index in every operand for iteration `at` of loops [first, first + n). */
static void add_operand_offsets(const job *j, int first, int n, int64_t at, int64_t *places) {
  for (int loop = first + n - 1; loop >= first; loop--) {
    int64_t index = at % j->size[loop];
    at /= j->size[loop];
    for (int k = 0; k < j->n_in; k++) places[k] += index * j->stride[k][loop];
  }
}

static double product_of_floats(const job *j, const int64_t *places) {
  double product = 1;
  for (int k = 0; k < j->n_in; k++) product *= j->eval->in[k]->f[places[k]];
  return product;
}

/** Returns the product of integers, which wraps around as in runtimes. */
static uint64_t product_of_integers(const job *j, const int64_t *places) {
  uint64_t product = 1;
  for (int k = 0; k < j->n_in; k++) product *= (uint64_t)j->eval->in[k]->i[places[k]];
  return product;
}

static void sum_products_in_range(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  laci_buf *y = j->eval->out[0];
  for (int64_t at = begin; at < end; at++) {
    int64_t base[MAX_OPERANDS] = {0};
    double sum = 0;
    uint64_t sum_integer = 0;
    add_operand_offsets(j, 0, j->n_out, at, base);
    for (int64_t term_at = 0; term_at < j->n_terms; term_at++) {
      int64_t places[MAX_OPERANDS];
      memcpy(places, base, sizeof places);
      add_operand_offsets(j, j->n_out, j->n_sum, term_at, places);
      if (y->f) sum += product_of_floats(j, places);
      else sum_integer += product_of_integers(j, places);
    }
    if (y->f) y->f[at] = sum;
    else y->i[at] = laci_int_wrap(y->dtype, (int64_t)sum_integer);
  }
}

static lac_status eval(laci_eval *eval) {
  bool integers = eval->out[0]->i != NULL;
  for (int k = 0; k < eval->n_in; k++) {
    integers = integers && eval->in[k]->dtype == eval->in[0]->dtype;
  }
  lac_status st = integers ? LAC_OK : laci_check_floats(eval);
  if (st) return st;
  const laci_shape *shapes[MAX_OPERANDS];
  for (int k = 0; k < eval->n_in; k++) shapes[k] = &eval->in[k]->shape;
  equation e;
  int64_t size[N_INDICES];
  st = parse_and_find_sizes(eval->node, shapes, eval->n_in, &e, size, eval->err);
  if (st) return st;
  job j = {.eval = eval, .n_in = eval->n_in};
  plan_loops(&e, size, &j);
  laci_eval_parallel(eval, eval->out[0]->count, sum_products_in_range, &j);
  return LAC_OK;
}

/** Gives each index of the equation a label: the axes that it names are reordered together
 * (coupling.h). An axis of size 1 that is broadcast gets a label of its own. Where it is not known
 * whether an axis is broadcast, all axes of its index are FIXED. */
static void couple_indices(laci_coupling *c, const equation *e, const laci_shape *const *shapes,
                           const int64_t *size) {
  int label[N_INDICES];
  for (int index = 0; index < N_INDICES; index++) label[index] = -1;
  for (int k = 0; k < e->n_in; k++) {
    for (int at = 0; at < e->in[k].n; at++) {
      int index = e->in[k].index[at];
      bool sure = shapes[k]->dims[at] == size[index] || shapes[k]->dims[at] == 1;
      if (!sure) label[index] = LACI_FIXED;
      else if (label[index] < 0) label[index] = laci_coupling_new_label(c);
    }
  }
  for (int k = 0; k < e->n_in; k++) {
    laci_coupling_mark_described(c, k);
    for (int at = 0; at < e->in[k].n; at++) {
      int index = e->in[k].index[at];
      bool alone = shapes[k]->dims[at] != size[index] && label[index] > 0;
      laci_coupling_set_label(c, k, at, alone ? laci_coupling_new_label(c) : label[index]);
    }
  }
  laci_coupling_mark_described(c, LACI_OUT(0));
  for (int at = 0; at < e->out.n; at++)
    laci_coupling_set_label(c, LACI_OUT(0), at, label[e->out.index[at]]);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *shapes[MAX_OPERANDS];
  if (node->n_inputs > MAX_OPERANDS || !laci_port_shape(c, LACI_OUT(0)))
    return laci_coupling_status(c);
  for (int k = 0; k < node->n_inputs; k++) {
    shapes[k] = laci_port_shape(c, k);
    if (!shapes[k]) return laci_coupling_status(c);
  }
  equation e;
  int64_t size[N_INDICES];
  if (!parse_and_find_sizes(node, shapes, node->n_inputs, &e, size, NULL))
    couple_indices(c, &e, shapes, size);
  return laci_coupling_status(c);
}

/* ---- Gradient ---- */

typedef struct equation_text {
  char s[(MAX_OPERANDS + 2) * (LACI_MAX_RANK + 2)];
  size_t n;
} equation_text;

/** Writes a term as letters; indices under "..." have capital letters that the equation does not
 * use. */
static void write_term_as_letters(equation_text *t, const term *from,
                                  const char letters[N_INDICES]) {
  for (int at = 0; at < from->n; at++) t->s[t->n++] = letters[from->index[at]];
}

/** Chooses a letter for each index that occurs in the equation. Returns false if there are more
 * indices than letters. */
static bool assign_letters_to_indices(const equation *e, char letters[N_INDICES]) {
  bool used[N_INDICES] = {false};
  for (int k = 0; k < e->n_in; k++) {
    for (int at = 0; at < e->in[k].n; at++) used[e->in[k].index[at]] = true;
  }
  for (int index = 0, next = 0; index < N_INDICES; index++) {
    int letter = index;
    if (index >= N_LETTERS && used[index]) {
      while (next < N_LETTERS && used[next]) next++;
      if (next == N_LETTERS) return false;
      letter = next++;
    }
    letters[index] = (char)(letter < 26 ? 'A' + letter : 'a' + letter - 26);
  }
  return true;
}

/** Adds an Einsum of dy and the other operands for those indices of operand k that they have. Axes
 * for its other indices, along which the gradient is constant, are inserted and expanded. */
static int add_gradient_of_operand(laci_gradient_builder *b, const laci_node *node,
                                   const equation *e, int k, const char letters[N_INDICES]) {
  bool has[N_INDICES] = {false};
  int inputs[MAX_OPERANDS + 1] = {laci_gradient_of(b, node, 0)}, n = 1;
  equation_text t = {.n = 0};
  write_term_as_letters(&t, &e->out, letters);
  for (int at = 0; at < e->out.n; at++) has[e->out.index[at]] = true;
  for (int other = 0; other < e->n_in; other++) {
    if (other == k) continue;
    t.s[t.n++] = ',';
    write_term_as_letters(&t, &e->in[other], letters);
    for (int at = 0; at < e->in[other].n; at++) has[e->in[other].index[at]] = true;
    inputs[n++] = node->inputs[other];
  }
  laci_shape shape = laci_gradient_shape_of_input(b, node, k), narrow = shape;
  term kept = {0};
  for (int at = 0; at < e->in[k].n; at++) {
    if (has[e->in[k].index[at]]) kept.index[kept.n++] = e->in[k].index[at];
    else narrow.dims[at] = 1;
  }
  t.s[t.n++] = '-', t.s[t.n++] = '>';
  write_term_as_letters(&t, &kept, letters);
  t.s[t.n] = 0;
  laci_attr equation_attr = {.name = "equation", .kind = LACI_ATTR_TEXT, .text = t.s};
  int sum = laci_gradient_add_node(
      b,
      &(laci_gradient_node){
          .type = "Einsum", .n_inputs = n, .inputs = inputs, .n_attrs = 1, .attrs = &equation_attr},
      NULL);
  return laci_gradient_add_expand(b, laci_gradient_add_reshape(b, sum, &narrow), &shape);
}

/** Is the operand free of repeated indices (diagonals) and of axes of size 1 that are broadcast? */
static bool has_no_diagonal_or_broadcast(const term *t, const laci_shape *shape,
                                         const int64_t *size) {
  for (int at = 0; at < t->n; at++) {
    for (int before = 0; before < at; before++) {
      if (t->index[before] == t->index[at]) return false;
    }
    if (shape->dims[at] != size[t->index[at]]) return false;
  }
  return true;
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_shape in[MAX_OPERANDS];
  const laci_shape *shapes[MAX_OPERANDS];
  equation e;
  int64_t size[N_INDICES];
  char letters[N_INDICES];
  if (node->n_inputs >= MAX_OPERANDS)
    return laci_gradient_fail_unsupported(b, node, "too many operands");
  for (int k = 0; k < node->n_inputs; k++) {
    in[k] = laci_gradient_shape_of_input(b, node, k);
    shapes[k] = &in[k];
  }
  if (parse_and_find_sizes(node, shapes, node->n_inputs, &e, size, NULL) ||
      !assign_letters_to_indices(&e, letters))
    return laci_gradient_fail_unsupported(b, node, "its equation has no gradient");
  for (int k = 0; k < node->n_inputs; k++) {
    if (!has_no_diagonal_or_broadcast(&e.in[k], shapes[k], size))
      return laci_gradient_fail_unsupported(b, node, "diagonals and broadcasts have no gradient");
  }
  for (int k = 0; k < node->n_inputs; k++) {
    if (laci_gradient_is_needed(b, node, k))
      laci_gradient_contribute(b, node, k, add_gradient_of_operand(b, node, &e, k, letters));
  }
  return laci_gradient_status(b);
}

const laci_op laci_op_einsum = {.name = "Einsum",
                                .role = LACI_ROLE_PASS_THROUGH,
                                .attributes = LACI_ATTRIBUTES({"equation", LACI_ATTR_TEXT}),
                                .infer = infer,
                                .eval = eval,
                                .couple = couple_channel_orders,
                                .gradient = gradient};
