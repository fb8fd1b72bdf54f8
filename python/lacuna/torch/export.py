# SPDX-License-Identifier: Apache-2.0
"""A torch.nn.Module as a network of the library, whose stored tensors have the names of the module's parameters and buffers.

Exporters merge tensors that are equal and fold constants, so that names are lost. Therefore a copy of the module in float32 with
distinct random values is exported without folding, and the true values are written in by name. Nothing may be missing.
"""
import contextlib
import copy
import functools
import io
import warnings

import torch

from ..errors import failure
from ..model import Model
from .masks import is_ours

WRAPPERS = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel, torch.optim.swa_utils.AveragedModel)


def unwrapped(module):
    """The module inside torch.compile, DistributedDataParallel, DataParallel and AveragedModel."""
    while True:
        inner = getattr(module, "_orig_mod", None)
        if inner is None and isinstance(module, WRAPPERS):
            inner = module.module
        if inner is None:
            return module
        module = inner


def as_arguments(example_inputs):
    """(arguments, keywords) of a tensor, a tuple or a dict."""
    if isinstance(example_inputs, dict):
        return (), dict(example_inputs)
    if isinstance(example_inputs, (tuple, list)):
        return tuple(example_inputs), {}
    return (example_inputs,), {}


def to_cpu(value):
    """The tensors of nested tuples, lists and dicts on the CPU, floats as float32."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return value.float() if value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: to_cpu(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(to_cpu(item) for item in value)
    return value


def tensors_of(module):
    """{name: tensor} of all parameters and buffers of floats but masks' own, each tensor under its first name."""
    found, seen = {}, set()
    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        if value.is_floating_point() and value.data_ptr() not in seen and not is_ours(name):
            seen.add(value.data_ptr())
            found[name] = value
    return found


def _distinct(module):
    """Distinct random values everywhere; those that must be positive, such as a variance, are."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in tensors_of(module).values():
            value.copy_(torch.rand(value.shape, generator=generator) * 0.5 + 0.5)


def _without_hooks(module):
    for part in module.modules():
        for hooks in (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks):
            hooks.clear()


def tensors_in(value):
    """The tensors in what a module returns: of tuples, lists and dicts. What else there is, such as transformers' cache of keys and
    values, is no answer."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for item in value for tensor in tensors_in(item)] if isinstance(value, (tuple, list)) else []


def _return_tensors(module):
    """Its forward pass returns a tuple of tensors from now on: exporters refuse outputs of other classes."""
    forward = module.forward

    @functools.wraps(forward)
    def returning_tensors(*arguments, **keywords):
        return tuple(tensors_in(forward(*arguments, **keywords)))
    module.forward = returning_tensors


@contextlib.contextmanager
def _quiet():
    """No warnings, and not the whole graph printed where the first exporter fails, since the second one may do it. PyTorch 2.15
    switches that log on whatever `verbose` says."""
    switch = getattr(torch._C, "_jit_set_onnx_log_enabled", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if switch:
                torch._C._jit_set_onnx_log_enabled = lambda _enabled: None
            yield
        finally:
            if switch:
                torch._C._jit_set_onnx_log_enabled = switch


def _export(module, arguments, keywords, dynamo):
    """The bytes of an ONNX file."""
    how = {"kwargs": keywords or None, "dynamo": dynamo}
    with _quiet():
        if dynamo:
            program = torch.onnx.export(module, arguments, optimize=False, verbose=False, **how)
            return program.model_proto.SerializeToString()
        file = io.BytesIO()
        torch.onnx.export(module, arguments, file, do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE,
                          opset_version=18, verbose=False, **how)
        return file.getvalue()


class Exported:
    """A module's network. `names` are the tensors that it shares with the module, in the module's words."""

    def __init__(self, module, example_inputs, allow_unused=False):
        arguments, keywords = as_arguments(to_cpu(example_inputs))
        detached = copy.deepcopy(module).cpu().float().eval()
        _without_hooks(detached)
        _return_tensors(detached)
        _distinct(detached)
        wanted, failures = set(tensors_of(module)), []
        for dynamo in (False, True):
            try:
                self.bytes = _export(detached, arguments, keywords, dynamo)
                self.names = wanted & set(Model(self.bytes).tensors)
            except Exception as error:  # pylint: disable=broad-exception-caught # exporters raise anything
                failures.append(f"{type(error).__name__}: {error}".splitlines()[0])
                continue
            self.missing = sorted(wanted - self.names - _without_effect(module))
            if not self.missing or allow_unused:
                return
            failures.append(f"{len(self.missing)} tensors are not in the exported network, the first is {self.missing[0]}")
        raise failure(f"{type(module).__name__}: no export has all of its tensors: {'; '.join(failures)}", "UNSUPPORTED",
                      cure="allow_unused=True leaves tensors alone that the forward pass does not read")

    def model(self, values):
        """The network with the module's values, or with others of the same names."""
        made = Model(self.bytes)
        for name in self.names & set(values):
            made.tensors[name] = values[name].detach().cpu().float().numpy()
        return made


def _without_effect(module):
    """Statistics that no forward pass in eval reads and no order touches."""
    return {name for name, _ in module.named_buffers() if name.endswith("num_batches_tracked")}
