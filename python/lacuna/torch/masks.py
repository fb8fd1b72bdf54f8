# SPDX-License-Identifier: Apache-2.0
"""Masks in a module, as buffers by apex's names, and zeros that stay while an optimizer steps."""
import weakref

import torch

BUFFER, KEPT = "__{}_mma_mask", "__{}_mma_pruned_p"


def owner_of(module, name):
    """(the part of a module that has a parameter, the parameter's own name)."""
    path, _, own = name.rpartition(".")
    return module.get_submodule(path), own


def is_ours(name):
    """Is this the name of a mask, or of what it left out?"""
    own = name.rpartition(".")[2]
    return own.startswith("__") and own.endswith(("_mma_mask", "_mma_pruned_p"))


def set_mask(module, name, mask):
    """Registers the mask of a parameter as a buffer next to it, and sets the parameter's other elements to zero."""
    parameter, mask = add_mask(module, name, mask)
    with torch.no_grad():
        parameter.mul_(mask)


def add_mask(module, name, mask):
    """Registers the mask of a parameter as a buffer next to it; (parameter, mask)."""
    part, own = owner_of(module, name)
    parameter = getattr(part, own)
    mask = mask.to(parameter.device).bool()
    buffer = BUFFER.format(own)
    if buffer in part._buffers:
        part._buffers[buffer].copy_(mask)
    else:
        part.register_buffer(buffer, mask)
    return parameter, mask


def masks_of(module):
    """[(name, parameter, mask)] of all that have a mask; read anew each time, so that a loaded checkpoint counts."""
    found = []
    for path, part in module.named_modules():
        for own, parameter in part.named_parameters(recurse=False):
            mask = part._buffers.get(BUFFER.format(own))
            if mask is not None:
                found.append((f"{path}.{own}" if path else own, parameter, mask))
    return found


def apply(module):
    """Sets what the masks do not keep to zero."""
    with torch.no_grad():
        for _, parameter, mask in masks_of(module):
            parameter.mul_(mask.to(parameter.dtype))


def drop(module):
    """Removes the masks' buffers, so that a checkpoint has the module's own names alone; weights stay as they are."""
    for part in module.modules():
        for name in [name for name in part._buffers if is_ours(name)]:
            delattr(part, name)


def states_of(optimizer, parameter):
    """{key: tensor} of an optimizer's state that is as large as the parameter."""
    state = optimizer.state.get(parameter, {})
    return {key: value for key, value in state.items()
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape and value.is_floating_point()}


def hold(module, optimizer):
    """Keeps zeros at every step of an optimizer: gradients are masked before it, weights and its state after it. Hooks of torch, or a
    method around `step` where there are none."""
    module = weakref.ref(module)

    def before(_optimizer, _arguments, _keywords):
        with torch.no_grad():
            for _, parameter, mask in masks_of(module()) if module() is not None else ():
                if parameter.grad is not None:
                    parameter.grad.mul_(mask.to(parameter.grad.dtype))

    def after(stepped, _arguments, _keywords):
        with torch.no_grad():
            for _, parameter, mask in masks_of(module()) if module() is not None else ():
                for value in (parameter, *states_of(stepped, parameter).values()):
                    value.mul_(mask.to(value.dtype))
    if hasattr(optimizer, "register_step_pre_hook"):
        return optimizer.register_step_pre_hook(before), optimizer.register_step_post_hook(after)
    step = optimizer.step  # an optimizer around another one, which is none of torch's

    def masked_step(*arguments, **keywords):
        before(optimizer, arguments, keywords)
        result = step(*arguments, **keywords)
        after(optimizer, arguments, keywords)
        return result
    optimizer.step = masked_step
    return None
