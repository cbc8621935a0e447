"""Choices of worlds and reducers."""

from __future__ import annotations

import ctypes
import operator
import os
from ctypes import byref
from typing import TYPE_CHECKING, Any, Iterable, Literal, Optional, TypedDict, Union, cast

from adasum import _abi
from adasum._arguments import is_number, path as file_path, scalar, text
from adasum._library import Handle, call
from adasum._options import OptionValues

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from adasum.world import World


class WorldOptionValues(TypedDict, total=False):
    """Keywords of worlds, as `OptionValues` describes them; reducers take them, too, and the others."""

    devices_per_server: Optional[Union[int, Literal["auto"]]]
    create_timeout_ms: Optional[int]


class Options(Handle):
    """Choices of worlds and reducers, the same on all ranks: one keyword for each option of `OptionValues`, which describes them. None
    leaves the default.

        Options(devices_per_server=8, radix="auto", wire="f32", group=[0, 1], allow_plain_mean=True)

    Worlds and reducers take the same as keywords, worlds those of `WorldOptionValues`; an `Options` is for choices that come from the
    environment or a file, or that several of them share."""

    _destroy = "adasum_options_destroy"

    def __init__(self, **choices: Unpack[OptionValues]):
        pointer = ctypes.POINTER(_abi.adasum_options)()
        call("adasum_options_create", byref(pointer))
        super().__init__(pointer)
        self._set(choices)

    def _set(self, choices: Any) -> None:
        for name, value in choices.items():
            if name not in OptionValues.__annotations__:
                raise TypeError(f"{name!r} is no option: there are {', '.join(OptionValues.__annotations__)}")
            if value is not None:
                call("adasum_options_set", self, name.encode(), text(name, _option(value)))

    @classmethod
    def from_environment(cls, **choices: Unpack[OptionValues]) -> Options:
        """What the ADASUM_... variables say (docs/environment.md lists them); `choices` win."""
        options = cls()
        call("adasum_options_load_environment", options)
        options._set(choices)
        return options

    @classmethod
    def from_boost(cls, path: Union[str, os.PathLike[str]], level: str = "O2", **choices: Unpack[OptionValues]) -> Options:
        """What MindSpore's boost configuration in the JSON file `path` says; `choices` win."""
        options = cls()
        call("adasum_options_load_boost", options, file_path("path", path), text("level", level))
        options._set(choices)
        return options


def _option(value: Any) -> str:
    """The value of an option as the library reads it, which says what is wrong with it."""
    value = scalar(value)
    if isinstance(value, str):
        return value
    # Before numbers: an array can be one, too.
    if isinstance(value, Iterable):
        return ",".join(map(_option, value))
    if hasattr(type(value), "__index__"):
        # A bool becomes 0 or 1.
        return str(int(operator.index(value)))
    return str(float(value) if is_number(value) else value)


def check_choices(choices: Any, world: Optional[World]) -> None:
    """Refuses choices that do not fit what steps on whole results on every rank, in a world that was given, or in one of its own."""
    if choices.get("scattered"):
        raise ValueError("scattered leaves each result on one rank, and every rank needs all of them here: use adasum.GradientReducer")
    if world is not None:
        check_servers(choices, world)


def check_servers(choices: Any, world: World) -> None:
    """Refuses a number of ranks a server that is not the world's, which was made with its own."""
    asked = choices.get("devices_per_server")
    if asked is not None and _option(asked) not in ("auto", str(world.devices_per_server)):
        raise ValueError(
            f"devices_per_server is {asked}, but the world that was given has {world.devices_per_server} ranks in a server: it is an option of worlds"
        )


def chosen(options: Optional[Options], choices: Any) -> Optional[Options]:
    """The options that a call was given: as such, or as keywords."""
    if options is not None and not isinstance(options, Options):
        raise TypeError(f"options is a {type(options).__name__}: it must be adasum.Options, or give options as keywords")
    if options is not None and choices:
        raise TypeError(f"options and {', '.join(choices)} are both given: make them one, as Options.from_environment(radix=2)")
    return Options(**choices) if choices else options


def of_world(choices: Any) -> WorldOptionValues:
    """Those of a reducer's choices that count when its world is made."""
    return cast(WorldOptionValues, {name: value for name, value in choices.items() if name in WorldOptionValues.__annotations__})


def check_world_choices(choices: Any) -> None:
    """Refuses what only reducers take: it would have no effect."""
    for name in choices:
        if name not in WorldOptionValues.__annotations__:
            what = "an option of reducers" if name in OptionValues.__annotations__ else "no option"
            raise TypeError(f"{name} is {what}: a world takes {' and '.join(WorldOptionValues.__annotations__)}")
