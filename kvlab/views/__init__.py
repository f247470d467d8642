"""The pictures of the workbook: pure functions from a state to SVG, and the small widgets around them.

The names below load on first use: ipywidgets is imported by the widgets only.
"""

from importlib import import_module

_MODULE_OF = {
    "AddressTranslation": "address_translation",
    "AllocatorStepper": "allocator",
    "BlockMap": "block_map",
    "BlockSizeTradeoff": "tradeoff",
    "CapacityCalculator": "capacity",
    "Chart": "charts",
    "FragmentationStepper": "fragmentation",
    "LayerGroups": "layer_groups",
    "OnlineSoftmax": "online_softmax",
    "PrefixCacheStepper": "prefix_stepper",
    "ProgramMap": "program_map",
    "SentinelAudit": "sentinel_audit",
    "SharingStepper": "sharing",
    "TimingExplorer": "timing_explorer",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str):
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'kvlab.views' has no attribute {name!r}")
    value = getattr(import_module(f"kvlab.views.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
