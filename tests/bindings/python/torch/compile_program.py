"""A program that compiles in all the ways that TorchDynamo knows, with ringmain attached: its events go to a file.

usage: compile_program.py EVENTS.json. With TORCH_TRACE=FOLDER in the environment PyTorch writes its own log of the same
run. CPU only; everything but the first and the last part uses cheap backends.
"""

import json
import logging
import sys
import threading

import ringmain
import ringmain.torch
import torch
import torch._dynamo.callback
from torch._dynamo.backends.common import aot_autograd

logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)
torch.set_num_threads(1)
torch.manual_seed(0)

bus = ringmain.Bus()
heard = []
bus.subscribe("compile.*", lambda batch: heard.extend((batch.channel, event._asdict()) for event in batch))
attachment = ringmain.torch.attach(bus)
pairs = []  # what PyTorch's own handler says, by a callback of this program's; a reset takes them away


def listen_to_pytorch():
    torch._dynamo.callback.on_compile_start(lambda a: pairs.append(("start", a.callback_trigger.name, a.compile_id)))
    torch._dynamo.callback.on_compile_end(lambda a: pairs.append(("end", a.callback_trigger.name, a.compile_id)))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(8, 16)
        self.down = torch.nn.Linear(16, 8)

    def forward(self, x):
        h = self.up(x)
        torch._dynamo.graph_break()
        return self.down(h.relu())


def train_step(model):
    model(torch.ones(4, 8)).sum().backward()


def module_with_a_break(block):
    train_step(torch.compile(block))  # inductor, forward and lazy backward


def shapes():
    def poly(x):
        return x * x + 3 * x

    compiled = torch.compile(poly, backend="aot_eager")
    for n in (3, 3, 5, 7):  # static; hit; recompiled with a symbol; hit
        compiled(torch.ones(n))

    def scaled(x):
        return x.cos() * x.shape[0]

    marked = torch.ones(6, 2)
    torch._dynamo.mark_dynamic(marked, 0)
    compiled = torch.compile(scaled, backend="aot_eager")
    compiled(marked)
    compiled(torch.ones(9, 2))


def failing_backend():
    def refuse(graph, inputs):
        raise RuntimeError("backend refuses on purpose")

    def doomed(x):
        return x.tan()

    for _ in range(2):
        try:
            torch.compile(doomed, backend=refuse)(torch.ones(3))
        except torch._dynamo.exc.BackendCompilerFailed:
            pass


def break_under_fullgraph():
    def printer(x):
        print("side effect", file=sys.stderr)
        return x + 1

    try:
        torch.compile(printer, backend="eager", fullgraph=True)(torch.ones(2))
    except torch._dynamo.exc.Unsupported:
        pass


def recompile_limit():
    def powered(x, k):
        return x ** k

    with torch._dynamo.config.patch(recompile_limit=3, automatic_dynamic_shapes=False):
        compiled = torch.compile(powered, backend="eager")
        for k in range(2, 8):
            compiled(torch.ones(2), k)


def backward_overlaps_a_forward():
    """The backward of one thread is being compiled while this one compiles a forward from begin to end."""
    in_backward, forward_done = threading.Event(), threading.Event()

    def as_it_is(graph, inputs):
        return graph.forward

    def held_up(graph, inputs):
        in_backward.set()
        forward_done.wait()
        return graph.forward

    def sine(x):
        return x.sin()

    def cosine(x):
        return x.cos()

    backend = aot_autograd(fw_compiler=as_it_is, bw_compiler=held_up)
    loss = torch.compile(sine, backend=backend)(torch.ones(3, requires_grad=True)).sum()
    backward = threading.Thread(target=loss.backward)
    backward.start()
    in_backward.wait()
    torch.compile(cosine, backend="eager")(torch.ones(3))
    forward_done.set()
    backward.join()


def nested_by_hand():
    trigger = torch._dynamo.callback.CallbackTrigger.CUDAGRAPH_RECORDING
    with torch._dynamo.callback_handler.install_callbacks(trigger, "77/0"):
        with torch._dynamo.callback_handler.install_callbacks(trigger, "77/1"):
            pass


listen_to_pytorch()
block = Block()
module_with_a_break(block)
shapes()
failing_backend()
break_under_fullgraph()
recompile_limit()
backward_overlaps_a_forward()
nested_by_hand()
torch._dynamo.reset()
listen_to_pytorch()
module_with_a_break(block)

counters = {name: dict(counter) for name, counter in torch._dynamo.utils.counters.items()}
bus.flush(30)
report = {s.name: s.live for s in attachment.report().surfaces}
errors = [s.last_error for s in attachment.report().surfaces if s.errors]
attachment.detach()
bus.close()
with open(sys.argv[1], "w", encoding="utf-8") as out:
    json.dump({"events": heard, "counters": counters, "pairs": pairs, "report": report, "errors": errors}, out)
