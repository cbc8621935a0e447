"""The options of worlds and reducers. Made from src/reduce/options/table.rs by a test: do not edit."""

from typing import Literal, Optional, Sequence, TypedDict, Union


class OptionValues(TypedDict, total=False):
    """Keywords of worlds, reducers and `adasum.Options`. None leaves the default."""

    profile: Optional[Literal["paper", "mindspore"]]
    """options that go together; mindspore checks the world as MindSpore's cells do, with their words, and overrides radix,
    placement, exchange and barrier.

    paper or mindspore; default paper"""

    reduction: Optional[Literal["adasum", "mean", "sum"]]
    """how servers are combined: AdaSum of the servers' means, or the mean or sum over all ranks.

    adasum, mean or sum; default adasum"""

    in_server: Optional[Literal["mean", "sum", "reduced", "shards"]]
    """how the ranks of a server are combined before that; reduced: they hold the same gradients, bit for bit; shards: different
    parts of the same tensors, all of one size. Delta reducers take only mean.

    mean, sum, reduced or shards; default mean"""

    devices_per_server: Optional[Union[int, Literal["auto"]]]
    """ranks of a server, in worlds made with these options; auto: what the rank table or the hosts say; 1 makes each rank a
    server.

    auto or a whole number above 0; default auto"""

    radix: Optional[Union[int, Literal["auto"]]]
    """the most subtrees that a round merges; auto: the fastest by the cost model. Part of the result's last bits.

    auto or 2 to 8; default 2"""

    placement: Optional[Literal["hierarchical", "columns"]]
    """where vectors lie while servers are merged: one chunk on each rank of a server, or, as MindSpore does, the whole on each.

    hierarchical or columns; default hierarchical"""

    exchange: Optional[Literal["auto", "alltoall", "batch", "group", "pairwise", "shared"]]
    """how exchanges are made: HcclAlltoAllV in servers, HcclBatchSendRecv, a group of sends and receives (CANN 9.0; A2, A3, 950),
    one after the other, or shared: ranks of one machine or A3 supernode read each other's memory (A2, A3, 950; not over PCIe).
    Results do not depend on it.

    auto, alltoall, batch, group, pairwise or shared; default auto"""

    scalars: Optional[Literal["auto", "gathered", "owned"]]
    """how the scalars of a round are summed: by every rank, or by an owner of each tensor. Results do not depend on it.

    auto, gathered or owned; default auto"""

    machine: Optional[Literal["auto", "910A", "910B", "A3", "mock"]]
    """what the cost model assumes; auto: by the name of the chip.

    auto, 910A, 910B, A3 or mock; default auto"""

    wire: Optional[Literal["native", "f32"]]
    """element type between ranks: that of the tensor, but fp32 for fewer than 64 elements, or always fp32, rounded once at the
    end.

    native or f32; default native"""

    scale: Optional[float]
    """what this rank's gradients are multiplied by, in fp32, before anything else. May differ between ranks.

    a finite number; default 1"""

    result_scale: Optional[float]
    """what results are multiplied by, in fp32, on their way back to the tensors.

    a finite number; default 1"""

    zero_tol: Optional[float]
    """relative squared norm up to which a vector counts as zero.

    a number of at least 0 and below 1; default 0"""

    overflow: Optional[Literal["report", "vote"]]
    """what becomes of NaN and infinity; vote: the ranks can also vote before they reduce, and all skip the step.

    report or vote; default report"""

    bucket_bytes: Optional[int]
    """bytes of tensors that share a fused buffer; a larger tensor has one of its own.

    a whole number above 0; default 26214400"""

    pipeline_depth: Optional[int]
    """fused buffers under way at a time: device memory grows with it, results do not depend on it.

    1 to 64; default 4"""

    subset_plans: Optional[int]
    """plans of subsets that are kept; one more takes the place of the one that was used longest ago.

    a whole number above 0; default 256"""

    padded: Optional[bool]
    """whether what lies between a tensor's end and the next multiple of 64 bytes from its start may be overwritten, so that such
    tensors are reduced in place. May differ between ranks.

    0 or 1; default 0"""

    gradient_buffers: Optional[bool]
    """whether the reducer keeps a buffer for each bucket, in which callers may put gradients, so that they are reduced in place;
    with exchange shared there is no other way.

    0 or 1; default 0"""

    scattered: Optional[bool]
    """whether each result stays on the rank that computed it, for sharded optimizers.

    0 or 1; default 0"""

    barrier: Optional[bool]
    """whether a reduction ends with a barrier of all ranks.

    0 or 1; default 0"""

    checksum: Optional[bool]
    """whether synchronising compares messages and results between ranks; the host then waits for each message.

    0 or 1; default 0"""

    allow_plain_mean: Optional[bool]
    """whether a single server of several ranks may give a plain mean.

    0 or 1; default 0"""

    create_timeout_ms: Optional[int]
    """limit of joining a world and of the warm-up of a reducer. May differ between ranks.

    whole milliseconds above 0; default 300000"""

    stall_timeout_ms: Optional[int]
    """time without movement after which a reduction has failed, and the error says what this rank waits for. May differ between
    ranks.

    whole milliseconds above 0; default 1800000"""

    delta_form: Optional[Literal["server_mean", "local"]]
    """what the optimizer steps on in a delta reducer: the mean of its server's gradients, or the rank's own as in Horovod.

    server_mean or local; default server_mean"""

    degree: Optional[Union[int, Literal["auto"]]]
    """what a mean reducer divides sums by; auto: the number of ranks. Numbers below 1 are refused by the reducer, with
    MindSpore's words.

    auto or a whole number; default auto"""

    fusion: Optional[Union[Sequence[int], Literal["all", "none"]]]
    """which gradients of a mean reducer travel together: positions cut their list behind them. Results do not depend on it.

    all, none or ascending positions as 3,7; default all"""

    group: Optional[Union[Sequence[int], Literal["all"]]]
    """the ranks that a mean or sparse reducer goes over, the caller's among them; only they create and use it.

    all or ascending ranks as 0,4; default all"""

    mindspore_context: Optional[str]
    """what the checks of the profile mindspore and of boost see; auto: what follows from the world.

    auto, or mode, enable_parallel_optimizer, pipeline_stages and device_num as data_parallel,0,1,16; default auto"""
