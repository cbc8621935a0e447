"""adasum.mindspore.world in two msrun of one worker each, as on two machines without --node_rank: both workers are told to be rank 0.

    msrun --worker_num 2 --local_worker_num 1 --master_port PORT --log_dir FOLDER mindspore_msrun.py      # twice, MindSpore's CPU target"""

import os

import mindspore as ms

import adasum.mindspore

ms.set_device("CPU")
if os.environ["MS_ROLE"] == "MS_WORKER":
    try:
        adasum.mindspore.world()
    except RuntimeError as error:
        assert "mindspore.communication.init" in str(error), error
    else:
        raise AssertionError("a worker that does not know its rank has made a world")
ms.communication.init()
world = adasum.mindspore.world()
assert (world.rank, world.size) == (ms.communication.get_rank(), 2), (world.rank, world.size)
adasum.mindspore.close()
print(f"rank {ms.communication.get_rank()} of two msrun", flush=True)
