# SPDX-License-Identifier: Apache-2.0
"""Prune a torch.nn.Module in place, and a class that takes the place of apex's ASP.

    import lacuna.torch

    lacuna.torch.prune(model, example_inputs, optimizer=optimizer)

    from lacuna.torch import ASP
    ASP.prune_trained_model(model, optimizer)
"""
from .asp import ASP, Permutation
from .masks import apply as apply_masks
from .masks import drop as drop_masks
from .masks import hold
from .orders import prune

__all__ = ["ASP", "Permutation", "apply_masks", "drop_masks", "hold", "prune"]
