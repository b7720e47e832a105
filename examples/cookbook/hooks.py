# How do I call a function before each collective operation, and refuse one?
from ringmain import comms

comm = comms.new_comm("loopback", name="main")
seen = []


def before(args):
    seen.append(args.name)
    print(args.name, args.op_id)


handle = comm.register_pre_hook(before)
comm.all_reduce([1.0, 2.0], comms.ReduceOp.SUM, async_op=False)
handle.remove()
comm.all_reduce([3.0], comms.ReduceOp.SUM, async_op=False)
comm.finalize()
assert len(seen) == 1
