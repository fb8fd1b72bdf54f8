/* SPDX-License-Identifier: Apache-2.0
 * What the random networks of analyze_random.c hold: every declared operator, and of ONNX's own
 * every input and output that it may have or lack, every attribute with two values. What they never
 * hold, brute force never tries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/op.h"
#include "support/random_net.h"

enum { MOST_NETS = 800, MOST_ATTRIBUTES = 24 }; /* of an operator, before something is missing */

/** What stays as it is in every random node, and why. */
static const struct {
  const char *op, *attribute, *why;
} exceptions[] = {
    {"BatchNormalization", "spatial", "0, of opset 8 and before, cannot be run"},
    {"ConstantOfShape", "value", "a tensor, which a network as text cannot hold; uniform like 0"},
};

typedef struct met {
  const laci_op *op;
  int n; /* nodes */
  char value[MOST_ATTRIBUTES][48];
  bool two[MOST_ATTRIBUTES];
  uint32_t input, no_input, output, no_output; /* bits of ports */
} met;

typedef struct ports {
  const char *op;
  int least, inputs, outputs;
} ports;

/* Of operators with more than the inputs and the output that they need. */
static const ports op_ports[] = {
#define PORTS(op, least, inputs, outputs) {#op, least, inputs, outputs},
#include "support/random_ports.def"
#undef PORTS
};

static void attribute_text(const laci_attr *attr, char text[48]) {
  size_t used = 0;
  text[0] = 0;
  switch (attr->kind) {
    case LACI_ATTR_INT: (void)snprintf(text, 48, "%lld", (long long)attr->i); break;
    case LACI_ATTR_FLOAT: (void)snprintf(text, 48, "%g", (double)attr->f); break;
    case LACI_ATTR_TEXT: (void)snprintf(text, 48, "%s", attr->text); break;
    default:
      for (size_t i = 0; i < attr->n && used < 40; i++) {
        const char *word = attr->texts ? attr->texts[i] : "";
        int n = attr->texts  ? snprintf(text + used, 48 - used, "%s,", word)
                : attr->ints ? snprintf(text + used, 48 - used, "%lld,", (long long)attr->ints[i])
                             : snprintf(text + used, 48 - used, "%g,", (double)attr->floats[i]);
        used += n > 0 ? (size_t)n : 0;
      }
  }
}

static void note_ports(const int *values, int n, uint32_t *there, uint32_t *absent) {
  for (int i = 0; i < 32; i++) {
    if (i < n && values[i] >= 0) *there |= 1u << i;
    else *absent |= 1u << i;
  }
}

static void note_node(met *m, const laci_node *node) {
  m->n++;
  note_ports(node->inputs, node->n_inputs, &m->input, &m->no_input);
  note_ports(node->outputs, node->n_outputs, &m->output, &m->no_output);
  const laci_attr_type *declared = m->op->attributes;
  for (int a = 0; declared && declared[a].name; a++) {
    char text[48];
    assert_true(a < MOST_ATTRIBUTES);
    const laci_attr *attr = laci_node_attr(node, declared[a].name);
    if (!attr) continue;
    attribute_text(attr, text);
    if (!m->value[a][0]) (void)snprintf(m->value[a], sizeof m->value[a], "%s", text);
    m->two[a] |= strcmp(m->value[a], text) != 0;
  }
}

static bool is_exception(const char *op, const char *attribute) {
  for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
    if (strcmp(exceptions[i].op, op) == 0 && strcmp(exceptions[i].attribute, attribute) == 0)
      return true;
  }
  return false;
}

/** Says what has not been met. */
static bool is_whole(const met *m, bool aloud) {
  bool whole = m->n > 0;
  if (!whole && aloud) print_error("%s: in no random network\n", m->op->name);
  if (m->op->domain) return whole;
  for (int a = 0; m->n && m->op->attributes && m->op->attributes[a].name; a++) {
    const char *attribute = m->op->attributes[a].name;
    if (m->two[a] || is_exception(m->op->name, attribute)) continue;
    whole = false;
    if (aloud)
      print_error("%s: attribute %s: %s\n", m->op->name, attribute,
                  m->value[a][0] ? m->value[a] : "never");
  }
  for (size_t i = 0; m->n && i < sizeof op_ports / sizeof *op_ports; i++) {
    const ports *p = &op_ports[i];
    if (strcmp(p->op, m->op->name) != 0) continue;
    uint32_t in = (1u << p->inputs) - 1, out = (1u << p->outputs) - 1;
    uint32_t may_lack = in & ~((1u << p->least) - 1);
    bool all = (m->input & in) == in && (m->no_input & may_lack) == may_lack &&
               (m->output & out) == out && (m->no_output & (out & ~1u)) == (out & ~1u);
    if (!all && aloud)
      print_error("%s: inputs %x of %x, lacking %x of %x, outputs %x of %x\n", p->op, m->input & in,
                  in, m->no_input & may_lack, may_lack, m->output & out, out);
    whole &= all;
  }
  return whole;
}

static void meet(const laci_graph *graph, met *all, int n_ops) {
  for (int n = 0; n < graph->n_nodes; n++) {
    for (int i = 0; i < n_ops; i++) {
      if (graph->nodes[n].op == all[i].op) note_node(&all[i], &graph->nodes[n]);
    }
  }
}

static void random_networks_hold_every_form(void **state) {
  (void)state;
  int n_ops, n_missing = 0;
  const laci_op *const *ops = drawn_ops(&n_ops);
  met *all = calloc((size_t)n_ops, sizeof *all);
  builder *m = malloc(sizeof *m);
  assert_true(all && m);
  for (int i = 0; i < n_ops; i++) all[i].op = ops[i];
  for (int i = 0; i < n_ops; i++) {
    for (int k = 0; k < MOST_NETS && !is_whole(&all[i], false); k++) {
      if (make_net(m, (uint64_t)(i + k * n_ops), key_of(ops[i]).text)) meet(m->graph, all, n_ops);
      builder_clear(m);
    }
  }
  for (int i = 0; i < n_ops; i++) n_missing += !is_whole(&all[i], true);
  free(all);
  free(m);
  assert_int_equal(n_missing, 0);
}

static void every_exception_has_its_attribute(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
    const laci_op *op = laci_op_find(exceptions[i].op, "");
    assert_non_null(op);
    const laci_attr_type *a = op->attributes;
    while (a->name && strcmp(a->name, exceptions[i].attribute) != 0) a++;
    assert_non_null(a->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_networks_hold_every_form),
      cmocka_unit_test(every_exception_has_its_attribute),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
