# SPDX-License-Identifier: Apache-2.0
"""Orders and masks of the library, put into a torch.nn.Module in place.

The library's permutation file moves everything: the module's tensors, an optimizer's state and a moving average are each written
into the exported network, which replays the file. So a tensor moves here by the same code as in a network.
"""
import os
import tempfile

import torch

from .. import _verbs
from ..errors import failure
from . import masks
from .export import Exported, as_arguments, tensors_in, tensors_of, unwrapped

CLOSE = 1e-4  # of the outputs' scale, in float32; a network in double is compared far below
SEARCHED = ("permute", "no_calibration", "apply", "invert", "output", "plot", "save_permutation", "curve", "json", "force", "quantize",
            "quantize_range", "quantize_activations", "fold", "lenient")


def answers(module, example_inputs):
    """What a module returns in eval, as a list of tensors; its mode stays."""
    arguments, keywords = as_arguments(example_inputs)
    modes = {part: part.training for part in module.modules()}
    try:
        with torch.no_grad():
            return [tensor.detach().double().cpu() for tensor in tensors_in(module.eval()(*arguments, **keywords))
                    if tensor.is_floating_point()]
    finally:
        for part, mode in modes.items():
            part.training = mode


def difference(before, after):
    """The largest difference of answers, as a share of their scale."""
    worst = 0.0
    for old, new in zip(before, after):
        if old.numel():
            worst = max(worst, float((old - new).abs().max() / old.abs().max().clamp(min=1e-30)))
    return worst


class Order:
    """An order of a module's channels, which moves tensors of any kind that are named like the module's."""

    def __init__(self, exported, text):
        self.exported, self.text = exported, text

    def moved(self, values):
        """{name: tensor} in the new order, of the same types and devices."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "order.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.text)
            model = _verbs.permute(self.exported.model(values), apply=path, verify=False, fold=False).model
        made = {}
        for name, value in values.items():
            if name in self.exported.names:
                made[name] = torch.from_numpy(model.tensors[name]).to(value.device, value.dtype)
        return made


def order_of(report, exported):
    """The order that a report of the library found."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "order.json")
        report.save_permutation(path)
        with open(path, encoding="utf-8") as file:
            return Order(exported, file.read())


def shared(text):
    """The text of process 0, where torch.distributed runs several: all move by one order."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()) or torch.distributed.get_world_size() == 1:
        return text
    box = [text]
    torch.distributed.broadcast_object_list(box, src=0)
    return box[0]


def put(values, into):
    """Writes values into tensors, which keep their identity."""
    with torch.no_grad():
        for name, value in values.items():
            into[name].copy_(value)


def move(module, order, example_inputs, optimizers=(), others=()):
    """Moves a module's tensors, optimizers' states and modules of the same structure; how far answers then differ. Where that
    is too far, all is as it was, and an error says so."""
    held = tensors_of(module)
    for other in others:
        missing = sorted(set(order.exported.names) - set(tensors_of(unwrapped(other))))
        if missing:
            raise failure(f"{type(other).__name__}: it has no {missing[0]}, and is to move with {type(module).__name__}; nothing was changed")
    before, kept = answers(module, example_inputs), {name: value.detach().clone() for name, value in held.items()}
    put(order.moved(held), held)
    worst = difference(before, answers(module, example_inputs))
    if not worst <= CLOSE:
        put(kept, held)
        raise failure(f"{type(module).__name__}: its answers differ by {worst:.3g} of their scale after the permutation, "
                      f"at most {CLOSE:g} is wanted; nothing was changed", "PROOF_FAILED", cure="permute=False")
    gradients = {name: value.grad for name, value in held.items() if value.grad is not None and name in order.exported.names}
    put(order.moved(gradients), gradients)
    for other in others:
        values = {name: value for name, value in tensors_of(unwrapped(other)).items() if name in order.exported.names}
        put(order.moved(values), values)
    for optimizer in optimizers:
        _move_states(module, order, optimizer)
    return worst


def _move_states(module, order, optimizer):
    """An optimizer's state goes with its parameters: momentum, averages of squares and whatever else is as large as they."""
    rows = {name: masks.states_of(optimizer, value) for name, value in module.named_parameters()}
    for key in sorted({key for states in rows.values() for key in states}):
        values = {name: states[key] for name, states in rows.items() if key in states and name in order.exported.names}
        put(order.moved(values), values)


def prune(module, example_inputs, *, optimizer=None, ema=(), calibration=None, permute=True, hold=True, allow_unused=False,
          progress=None, **keywords):
    """Permutes and prunes a torch.nn.Module in place.

    Parameters keep their identity; an optimizer's state and moving averages move along. The module is run before and after the
    permutation, in eval: where its answers differ, nothing is changed and an Error is raised. Masks are buffers next to the
    parameters, by apex's names: `__weight_mma_mask`.

        report = lacuna.torch.prune(model, images, optimizer=optimizer)
        report = lacuna.torch.prune(model, images, calibration=loader, calibration_samples=256)

    module: a torch.nn.Module, also one in torch.compile or DistributedDataParallel; all processes of a group call this
    example_inputs: what its forward pass takes: a tensor, a tuple or a dict
    optimizer: one whose state moves along; with `hold` the zeros then stay while it steps
    ema: modules of the same structure that move along, such as a moving average; they get the masks as buffers, but keep all weights:
        lacuna.torch.apply_masks(average) masks them
    calibration: data as lacuna.prune takes them, such as a list of batches, or "synthetic"; masks and weights are then fitted.
        None: masks by magnitude
    permute: False: masks only
    hold: False: nothing is done at the optimizer's steps
    allow_unused: leave tensors alone that the forward pass does not read, in the place of refusing the module
    keywords: those of lacuna.prune

    Returns lacuna.Report; `difference` is how far answers differed after the permutation, `masks` has the masks by name.
    """
    for name in SEARCHED:
        if name in keywords:
            raise TypeError(f"lacuna.torch.prune() takes no {name}")
    module = unwrapped(module)
    exported = Exported(module, example_inputs, allow_unused)
    held = tensors_of(module)
    report = _verbs.prune(exported.model(held), calibration=calibration, no_calibration=calibration is None, permute=permute,
                          fold=False, progress=progress, **keywords)
    report.difference = 0.0
    if permute:
        order = Order(exported, shared(order_of(report, exported).text))
        report.difference = move(module, order, example_inputs, [optimizer] if optimizer else (), ema)
    pruned = {layer.weight for layer in report.layers if layer.pruned and layer.weight in exported.names}
    report.masks = {name: torch.from_numpy(report.mask_of(name)) for name in sorted(pruned)}
    if calibration is not None:
        put({name: torch.from_numpy(report.model.tensors[name]) for name in exported.names}, held)
    for name, mask in report.masks.items():
        masks.set_mask(module, name, mask)
        for other in ema:  # whose buffers are then those of the module, as averages expect
            masks.add_mask(unwrapped(other), name, mask)
    if optimizer is not None:
        mask_states(module, optimizer)
        if hold:
            masks.hold(module, optimizer)
    return report


def mask_states(module, optimizer):
    """Sets an optimizer's state to zero where the masks do."""
    with torch.no_grad():
        for _, parameter, mask in masks.masks_of(module):
            for value in masks.states_of(optimizer, parameter).values():
                value.mul_(mask.to(value.dtype))
