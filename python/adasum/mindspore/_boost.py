"""boost's switch."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from mindspore import nn

import adasum
from adasum.mindspore._cells import AdaSumByDeltaWeightWrapCell
from adasum.mindspore._world import world as environment_world
from adasum.world import check_world


def boost(
    optimizer: nn.Optimizer, boost_config_dict: Union[Mapping[str, Any], str, os.PathLike[str], None] = None, level: str = "O2", *,
    world: Optional[adasum.World] = None,
) -> Any:
    """The optimizer that boost would train with: what `Model(boost_level=level, boost_config_dict=...)` says, without them.

        model = Model(net, loss_fn=loss, optimizer=boost(optimizer, {"boost": {"mode": "manual", "less_bn": False, ...}}))

    With AdaSum on that is an `AdaSumByDeltaWeightWrapCell`, with servers of common.device_number ranks (8 without); with all switches off
    the optimizer itself. The dictionary may be the path of a JSON file.

    Raises TypeError if the dictionary is neither; ValueError (an adasum.Error) for what is wrong in it, or a world that boost's AdaSum is not
    for; adasum.Error naming the switch if another algorithm of boost is on, as with level O2 and no dictionary: MindSpore would then
    train without AdaSum."""
    if not isinstance(optimizer, nn.Optimizer):
        raise TypeError(f"The type of 'optimizer' should be 'Optimizer', but got type '{type(optimizer).__name__}'.")
    if world is not None:
        check_world(world)
    if isinstance(boost_config_dict, (str, os.PathLike)):
        text = Path(boost_config_dict).read_text()
    elif boost_config_dict is None or isinstance(boost_config_dict, Mapping):
        text = json.dumps(dict(boost_config_dict or {}))
    else:
        raise TypeError(f"boost_config_dict is a {type(boost_config_dict).__name__}: it must be a dictionary or the path of a JSON file")
    options = _read(text, level)
    config = json.loads(text)
    switches = config.get("boost", {})
    # What the library has let pass has no other algorithm on.
    if level not in ("O1", "O2") or switches.get("mode") != "manual" or not switches.get("adasum", level == "O2"):
        return optimizer
    local = config.get("common", {}).get("device_number", 8)
    if world is not None and world.devices_per_server != local:
        raise ValueError(f"common.device_number is {local}, but the world has {world.devices_per_server} ranks in a server")
    return AdaSumByDeltaWeightWrapCell(optimizer, world=world or environment_world(options, devices_per_server=local), options=options)


def _read(text: str, level: str) -> adasum.Options:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "boost_config_dict"
        path.write_text(text)
        try:
            return adasum.Options.from_boost(path, level)
        except adasum.Error as error:
            # The name of a file that the caller has not made says nothing.
            raise type(error)(str(error).replace(f"{path}: ", ""), error.status, error.vendor_code) from None
