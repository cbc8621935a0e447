// Collectives by direct exchange: every rank reads what it needs straight out of the others' memory. All ranks post
// first, so that each sees whether all run the same operation; acknowledgements end a phase, but where what a rank gives is
// small: it waits in the stage, and none is needed. Sums are always taken in the order of the ranks.

#include <algorithm>
#include <optional>

#include "execution.h"
#include "reduce.h"

namespace mock {
namespace {

// Where each rank's data lies.
using Offsets = std::optional<std::vector<uint64_t>>;

// The start of every collective: all posts of all ranks, compared. Nothing if it has to go on later.
Offsets meet(Execution &run, uint64_t offset) {
    const Signature &signature = run.operation().signature;
    Execution::Progress &at = run.progress;
    if (!at.posted) {
        for (const uint32_t peer : run.others()) {
            run.post(peer, signature, offset);
        }
        at.offset = offset;
        at.posted = true;
    }
    if (!run.await_posts(run.others())) {
        return std::nullopt;
    }
    std::vector<uint64_t> offsets(run.size(), at.offset);
    for (const uint32_t peer : run.others()) {
        offsets[peer] = run.take(peer, signature).offset;
    }
    return offsets;
}

// The same with what this rank gives in the stage.
Offsets meet_staged(Execution &run, const char *data) {
    const Execution::Progress &at = run.progress;
    return meet(run, at.posted ? at.offset : run.stage(data, run.operation().signature.bytes));
}

// A phase of these ranks ends: everybody is done with everybody's data.
void settle(Execution &run, const std::vector<uint32_t> &peers) {
    run.finish();
    for (const uint32_t peer : peers) {
        run.acknowledge(peer);
    }
    run.await_acknowledgements(peers);
}

void settle(Execution &run) { settle(run, run.others()); }

// The same where what this rank gave waits in the stage: only peers that must ask for it are not done with it.
void settle_staged(Execution &run) {
    std::vector<uint32_t> asking;
    for (const uint32_t peer : run.others()) {
        if (!run.is_mapped(peer)) {
            asking.push_back(peer);
        }
    }
    settle(run, asking);
}

// Part `index` when `count` elements are cut into `parts` of nearly equal length.
struct Part {
    uint64_t begin;
    uint64_t count;
};

Part part_of(uint64_t count, uint32_t parts, uint32_t index) {
    constexpr uint64_t GRAIN = 16;
    const uint64_t least = (count + parts - 1) / parts;
    const uint64_t length = (least + GRAIN - 1) / GRAIN * GRAIN;
    const uint64_t begin = std::min(count, length * index);
    return {begin, std::min(length, count - begin)};
}

// The same range of all ranks' data, in the order of the ranks.
std::vector<const char *> everybody(Execution &run, const std::vector<uint64_t> &offsets, uint64_t skip,
                                    uint64_t bytes) {
    std::vector<const char *> sources(run.size());
    for (uint32_t rank = 0; rank < run.size(); rank++) {
        sources[rank] = rank == run.rank() ? run.operation().send + skip : run.read(rank, offsets[rank] + skip, bytes);
    }
    run.finish();
    return sources;
}

// Every rank reduces everything itself.
bool small_all_reduce(Execution &run) {
    const Operation &op = run.operation();
    const Offsets offsets = meet_staged(run, op.send);
    if (!offsets) {
        return false;
    }
    reduce(op.signature.dtype, op.signature.reduce, op.recv, everybody(run, *offsets, 0, op.signature.bytes), op.count);
    settle_staged(run);
    return true;
}

// Each rank reduces one part and then collects the others' parts. This works in place: while parts are reduced, part j
// of any rank's data is read by rank j only, which may write over its own.
void all_reduce(Execution &run) {
    const Operation &op = run.operation();
    const uint64_t width = type_bytes(op.signature.dtype);
    const std::vector<uint64_t> offsets = meet(run, op.send_offset).value();
    const Part own = part_of(op.count, run.size(), run.rank());
    const uint64_t skip = own.begin * width;
    reduce(op.signature.dtype, op.signature.reduce, op.recv + skip, everybody(run, offsets, skip, own.count * width),
           own.count);
    for (const uint32_t peer : run.others()) {
        run.post(peer, op.signature, op.recv_offset);
    }
    run.await_posts(run.others());
    for (uint32_t step = 1; step < run.size(); step++) { // not all from the same rank at once
        const uint32_t peer = (run.rank() + step) % run.size();
        const uint64_t offset = run.take(peer, op.signature).offset;
        const Part part = part_of(op.count, run.size(), peer);
        run.fetch(peer, offset + part.begin * width, op.recv + part.begin * width, part.count * width);
    }
    settle(run);
}

// Each rank's share from where it says, but for the own one.
void gather_from(Execution &run, const std::vector<uint64_t> &offsets) {
    const Operation &op = run.operation();
    const uint64_t bytes = op.signature.bytes;
    for (uint32_t step = 1; step < run.size(); step++) {
        const uint32_t peer = (run.rank() + step) % run.size();
        run.fetch(peer, offsets[peer], op.recv + peer * bytes, bytes);
    }
}

void put_own_share(const Execution &run) {
    const Operation &op = run.operation();
    std::memmove(op.recv + run.rank() * op.signature.bytes, op.send, op.signature.bytes);
}

bool small_all_gather(Execution &run) {
    const Offsets offsets = meet_staged(run, run.operation().send);
    if (!offsets) {
        return false;
    }
    put_own_share(run);
    gather_from(run, *offsets);
    settle_staged(run);
    return true;
}

// The own share is put in its place first and read from there by the others: right for any place of the send buffer.
void all_gather(Execution &run) {
    put_own_share(run);
    gather_from(run, meet(run, run.operation().recv_offset + run.rank() * run.operation().signature.bytes).value());
    settle(run);
}

void reduce_scatter(Execution &run) {
    const Operation &op = run.operation();
    const uint64_t bytes = op.signature.bytes;
    const std::vector<uint64_t> offsets = meet(run, op.send_offset).value();
    const std::vector<const char *> sources = everybody(run, offsets, run.rank() * bytes, bytes);
    const bool apart = op.recv + bytes <= op.send || op.recv >= op.send + bytes * run.size();
    if (apart || op.recv == sources[run.rank()]) {
        reduce(op.signature.dtype, op.signature.reduce, op.recv, sources, op.count);
        settle(run);
        return;
    }
    std::vector<char> result(bytes); // the result lies over data that other ranks still read
    reduce(op.signature.dtype, op.signature.reduce, result.data(), sources, op.count);
    settle(run);
    std::memcpy(op.recv, result.data(), bytes);
}

void broadcast(Execution &run) {
    const Operation &op = run.operation();
    const uint32_t root = op.signature.root;
    const std::vector<uint64_t> offsets = meet(run, op.send_offset).value();
    if (run.rank() == root) {
        run.await_acknowledgements(run.others());
        return;
    }
    run.fetch(root, offsets[root], op.recv, op.signature.bytes);
    run.finish();
    run.acknowledge(root);
}

void reduce_to_root(Execution &run) {
    const Operation &op = run.operation();
    const uint32_t root = op.signature.root;
    const std::vector<uint64_t> offsets = meet(run, op.send_offset).value();
    if (run.rank() != root) {
        run.await_acknowledgements({root});
        return;
    }
    reduce(op.signature.dtype, op.signature.reduce, op.recv, everybody(run, offsets, 0, op.signature.bytes), op.count);
    for (const uint32_t peer : run.others()) {
        run.acknowledge(peer);
    }
}

} // namespace

bool run_collective(Execution &run) {
    const Signature &signature = run.operation().signature;
    if (is_staged(signature)) {
        return signature.op == Op::AllReduce ? small_all_reduce(run) : small_all_gather(run);
    }
    switch (signature.op) {
    case Op::AllReduce: all_reduce(run); return true;
    case Op::AllGather: all_gather(run); return true;
    case Op::ReduceScatter: reduce_scatter(run); return true;
    case Op::Broadcast: broadcast(run); return true;
    case Op::Reduce: reduce_to_root(run); return true;
    case Op::Barrier:
    case Op::AlltoAllVCounts: return meet(run, 0).has_value();
    default: fault(HCCL_E_INTERNAL, "EI9999: %s is no collective", op_name(signature.op));
    }
}

} // namespace mock
