"""Does everything public of ringmain.torch say what it is?"""

import enum
import inspect

import ringmain.torch
from ringmain.torch import backends, callback, gpu_trace


def public_classes():
    for module in (ringmain.torch, backends, callback, gpu_trace):
        for name, found in vars(module).items():
            if inspect.isclass(found) and not name.startswith("_") and found.__module__.startswith("ringmain.torch"):
                yield found


def test_each_public_class_says_what_it_is():
    told = {found for found in public_classes()
            if not issubclass(found, (BaseException, enum.Enum)) and not getattr(found, "_is_protocol", False)}
    assert len(told) > 5
    assert [found.__name__ for found in told if found.__repr__ is object.__repr__] == []


def test_what_is_shown_is_what_one_asks_for(bus):
    registry = gpu_trace.CallbackRegistry("mine")
    assert repr(registry) == "<callbacks of 'mine': 0>"

    def seen(*_):
        """Nothing."""

    handle = registry.add_callback(seen)
    assert repr(registry) == "<callbacks of 'mine': 1>"
    assert repr(handle) == "<callback test_what_is_shown_is_what_one_asks_for.<locals>.seen>"
    handle.remove()
    assert repr(handle).endswith("seen, ended>")
    handler = callback.CompilationCallbackHandler([seen])
    assert repr(handler) == "<compile callbacks: 1 at starts, 0 at ends>"
    with ringmain.torch.attach(bus) as attachment:
        live = sum(surface.live for surface in attachment.report().surfaces)
        assert repr(attachment) == f"<PyTorch's events on {bus!r}: {live} of {len(attachment.report().surfaces)} surfaces live>"
    assert repr(attachment) == f"<PyTorch's events on {bus!r}: detached>"
