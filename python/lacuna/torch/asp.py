# SPDX-License-Identifier: Apache-2.0
"""ASP, by the calls of apex.contrib.sparsity: a script changes its import, and nothing else.

Here as there: which layers are eligible (8 output and 16 input channels at least, and multiples), masks of 2:4 along the input
channels by magnitude, buffers by the same names, so that checkpoints load in both directions. Unlike there: a module of any
structure that can be exported, without CUDA; the permutation is verified, and an optimizer's state moves along.

The search needs the graph, and so inputs. They are `example_inputs`, or those of the model's first forward pass. Until then the
work is pending: it is done at the beginning of that pass.
"""
import re
import weakref

import torch

from .. import _verbs
from ..errors import failure
from ..library import call, ffi, lib, sized
from . import masks
from .export import Exported, tensors_of, unwrapped
from .orders import Order, mask_states, move, order_of, prune, shared

PARAMETERS = {torch.nn.Linear: ["weight"], torch.nn.Conv1d: ["weight"], torch.nn.Conv2d: ["weight"], torch.nn.Conv3d: ["weight"],
              torch.nn.MultiheadAttention: ["q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_weight"]}
WHITELIST = list(PARAMETERS)
ROWS, COLUMNS = 8, 16  # what an eligible weight's channels are multiples of
TYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64"}


def mask_of(name, parameter, pattern):
    """The mask of "m4n2_1d": the n largest magnitudes of every m input channels, by the library."""
    found = re.fullmatch(r"m(\d+)n(\d+)_1d", pattern)
    if not found:
        raise failure(f"mask_calculator={pattern!r}: wanted m4n2_1d or a function of a tensor; for 2d masks see "
                      "lacuna.torch.prune(mask=\"2d-best\")")
    values = parameter.detach().cpu().contiguous()
    weight, made = sized("lac_mask_weight"), ffi.new("lac_mask **")
    word, raw = ffi.new("char[]", name.encode()), values.view(torch.uint8).numpy()
    weight.name, weight.dtype, weight.rank, weight.c_axis = word, getattr(lib, f"LAC_DTYPE_{TYPES[values.dtype]}"), values.ndim, 1
    weight.shape[0:values.ndim] = tuple(values.shape)
    weight.values = buffer = ffi.from_buffer(raw)
    call("lac_mask_create", made)
    made = ffi.gc(made[0], lib.lac_mask_destroy)
    call("lac_mask_add", made, weight, int(found[2]), int(found[1]))
    kept, count = ffi.new("const uint8_t **"), ffi.new("size_t *")
    call("lac_mask_bytes", made, word, kept, count)
    del buffer
    return torch.frombuffer(bytearray(ffi.buffer(kept[0], count[0])), dtype=torch.uint8).view(values.shape).bool()


class _Pruned:
    """One model: its eligible parameters, its optimizers, and what is pending."""

    def __init__(self, model, calculator, permute, recompute, example_inputs):
        self.model, self.module = model, unwrapped(model)
        self.calculator, self.permute, self.recompute = calculator, permute, recompute
        self.example_inputs, self.optimizers, self.names = example_inputs, [], []
        self.permuted = self.pending = False
        # the wrapper's hook would not run where scripts call the inner module, and the inner one's runs in both cases
        self.hook = self.module.register_forward_pre_hook(self._at_forward, with_kwargs=True)

    def add(self, name):
        part, own = masks.owner_of(self.module, name)
        parameter = getattr(part, own)
        part.register_buffer(masks.BUFFER.format(own), torch.ones_like(parameter, dtype=torch.bool))
        if self.recompute:
            part.register_buffer(masks.KEPT.format(own), torch.zeros_like(parameter, device="cpu"))
        self.names.append(name)

    def rows(self):
        """[(name, parameter, mask, pruned values or None)]"""
        found = []
        for name in self.names:
            part, own = masks.owner_of(self.module, name)
            found.append((name, getattr(part, own), part._buffers[masks.BUFFER.format(own)],
                          part._buffers.get(masks.KEPT.format(own))))
        return found

    def is_pruned(self):
        """Does a mask leave anything out? It may come from a checkpoint."""
        return any(not bool(mask.all()) for _, _, mask, _ in self.rows())

    def _at_forward(self, module, arguments, keywords):
        if self.example_inputs is None:
            self.example_inputs = keywords if keywords and not arguments else arguments
        if self.pending and not torch.jit.is_tracing():
            self.pending = False
            if not self.is_pruned():
                self.compute()

    def search(self):
        """Permutes: the search of the library for the eligible layers."""
        self.hook.remove()
        try:
            exported = Exported(self.module, self.example_inputs)
            include = "^(" + "|".join(re.escape(name) for name in self.names) + ")$"
            report = _verbs.permute(exported.model(tensors_of(self.module)), include=include, verify=False, fold=False)
            order = Order(exported, shared(order_of(report, exported).text))
            move(self.module, order, self.example_inputs, self.optimizers)
        finally:
            self.hook = self.module.register_forward_pre_hook(self._at_forward, with_kwargs=True)
        self.permuted = True

    def compute(self):
        """Permutes once, and masks. What is pruned already, as by a checkpoint, stays in its order."""
        if self.permute and not self.permuted and not self.is_pruned():
            if self.example_inputs is None:
                self.pending = True
                return
            self.search()
        with torch.no_grad():
            for name, parameter, mask, pruned in self.rows():
                if not bool(mask.all()):
                    if pruned is None:
                        raise failure(f"{name}: it is pruned already; allow_recompute_mask=True keeps what was pruned")
                    parameter.add_(pruned.to(parameter.device))
                made = self.calculator(parameter) if callable(self.calculator) else mask_of(name, parameter, self.calculator)
                mask.copy_(made.to(mask.device).bool())
                if pruned is not None:
                    pruned.copy_(parameter * ~mask)
                parameter.mul_(mask)
        for optimizer in self.optimizers:
            mask_states(self.module, optimizer)

    def restore(self):
        """What was pruned is back, and the masks keep everything."""
        with torch.no_grad():
            for name, parameter, mask, pruned in self.rows():
                if bool(mask.all()):
                    continue
                if pruned is None:
                    raise failure(f"{name}: nothing was kept of what was pruned; allow_recompute_mask=True keeps it")
                parameter.add_(pruned.to(parameter.device))
                mask.fill_(True)
                pruned.zero_()


def _without_targets(batch):
    """A batch of a loader without what is no class of a sample, such as a picture that the network is to draw."""
    if isinstance(batch, (torch.Tensor, dict)):
        return batch
    first, *rest = batch
    classes = rest and isinstance(rest[0], torch.Tensor) and rest[0].ndim == 1 and not rest[0].is_floating_point() and len(rest[0]) == len(first)
    return (first, rest[0]) if classes else first


class ASP:
    """Automatic sparsity for a torch model, as apex's class of this name has it."""

    _models = weakref.WeakKeyDictionary()
    _allow_permutation = None

    @classmethod
    def _current(cls):
        rows = list(cls._models.values())
        if not rows:
            raise failure("ASP: init_model_for_pruning comes first")
        return rows

    @classmethod
    def init_model_for_pruning(cls, model, mask_calculator="m4n2_1d", verbosity=3, whitelist=None, allowed_layer_names=None,
                               disallowed_layer_names=(), allow_recompute_mask=False, custom_layer_dict=None,
                               allow_permutation=True, example_inputs=None):
        """Finds the eligible layers and gives each a mask that keeps everything. `example_inputs` are for the search of channel
        orders; without them it takes those of the first forward pass."""
        del verbosity  # the log is logging's
        kinds = {**PARAMETERS, **(custom_layer_dict or {})}
        whitelist = list(whitelist or WHITELIST) + list(custom_layer_dict or {})
        module = unwrapped(model)
        if module in cls._models:
            raise failure("ASP: this model was initialized already")
        permute = allow_permutation if cls._allow_permutation is None else cls._allow_permutation
        made = _Pruned(model, mask_calculator, permute, allow_recompute_mask, example_inputs)
        for path, part in module.named_modules():
            kind = next((kind for kind in whitelist if isinstance(part, kind)), None)
            if kind is None or allowed_layer_names is not None and path not in allowed_layer_names or path in disallowed_layer_names:
                continue
            for own in kinds.get(kind, ["weight"]):
                parameter = part._parameters.get(own)
                eligible = parameter is not None and parameter.requires_grad and parameter.ndim >= 2 and \
                    parameter.shape[0] % ROWS == 0 and parameter.shape[1] % COLUMNS == 0
                if eligible:
                    made.add(f"{path}.{own}" if path else own)
        cls._models[module] = made

    @classmethod
    def init_optimizer_for_pruning(cls, optimizer):
        """Masks gradients before each step, and weights and state after it."""
        for made in cls._current():
            held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
            if any(id(parameter) in held for parameter in made.module.parameters()) and optimizer not in made.optimizers:
                made.optimizers.append(optimizer)
                masks.hold(made.module, optimizer)

    @classmethod
    def already_init_asp_model(cls):
        """Was init_model_for_pruning called?"""
        return len(cls._models) > 0

    @classmethod
    def compute_sparse_masks(cls):
        """Permutes the channels, then masks the eligible layers."""
        for made in cls._current():
            made.compute()

    @classmethod
    def restore_pruned_weights(cls):
        """Takes the masks off; weights are what they were, where allow_recompute_mask kept them."""
        for made in cls._current():
            made.restore()

    @classmethod
    def is_sparsity_enabled(cls):
        """Are all layers half zero (True), or none (False)? What is pending counts as done."""
        if not cls._models:
            return False
        if any(made.pending for made in cls._current()):
            return True
        kept = [float(mask.float().mean()) for made in cls._current() for _, _, mask, _ in made.rows()]
        if not kept or all(share == 1 for share in kept):
            return False
        if all(abs(share - 0.5) < 1e-6 for share in kept):
            return True
        raise failure("ASP: some layers are masked and others are not")

    @classmethod
    def prune_trained_model(cls, model, optimizer, example_inputs=None):
        """The two-liner: masks now, or at the first forward pass where there are no example inputs."""
        cls.init_model_for_pruning(model, example_inputs=example_inputs)
        cls.init_optimizer_for_pruning(optimizer)
        cls._models[unwrapped(model)].compute()

    @classmethod
    def prune_calibrated(cls, model, loader, optimizer=None, samples=512, **keywords):
        """As prune_trained_model, with masks and weights fitted to inputs of the model: lacuna.torch.prune. The first batch of the
        loader is the example. A batch is a tensor, a dict of inputs, or the input followed by labels, which then judge the result where
        they are classes."""
        batch = next(iter(loader))
        example = batch if isinstance(batch, (torch.Tensor, dict)) else tuple(batch)[:1]
        return prune(model, example, optimizer=optimizer, calibration=map(_without_targets, loader), calibration_samples=samples, **keywords)

    @classmethod
    def set_permutation_saving_params(cls, allow_permutation=False, save_permutation_graph=False, permutation_output_dir="."):
        """Whether channels are permuted; the graph is drawn by lacuna.plot, not here."""
        del save_permutation_graph, permutation_output_dir
        cls._allow_permutation = allow_permutation

    @classmethod
    def forget(cls):
        """Ends the work on all models; masks stay in them as buffers."""
        for made in list(cls._models.values()):
            made.hook.remove()
        cls._models.clear()
        cls._allow_permutation = None


class Permutation:
    """The calls of apex's class of this name that scripts make."""

    @classmethod
    def set_identical_seed(cls, identical_seed=1):
        """Nothing to do: the search gives the same order for the same weights in every process."""
        del identical_seed

    @classmethod
    def set_tcpstore_port(cls, tcpstore_port=2341):
        """Nothing to do: orders go through torch.distributed."""
        del tcpstore_port

