// Point to point: rendezvous. The sender says where its data lies and waits; the receiver copies it straight out of the
// sender's memory and acknowledges. A batch posts all its sends before it serves its receives, so it is full duplex.

#include <algorithm>

#include "execution.h"
#include "reduce.h"

namespace mock {
namespace {

// From this size on a receive is served as soon as it can be; below, one sleep for all receives costs less.
constexpr uint64_t LARGE_BYTES = 1 << 20;

// What both sides of one transfer have to say alike. A receive expects what the sender of `op` posts. HcclAlltoAllV moves
// bytes: a rank may name other types for what it sends and what it receives.
Signature signature_of(const Execution &run, Op op, const Transfer &transfer) {
    Signature signature = run.operation().signature;
    signature.op = op;
    signature.dtype = op == Op::AlltoAllV ? static_cast<uint32_t>(HCCL_DATA_TYPE_UINT8) : transfer.dtype;
    signature.bytes = transfer.bytes;
    return signature;
}

// False if the data is still under way, so that the acknowledgement is due later.
bool serve(Execution &run, Op expected, const Transfer &receive) {
    const Post &post = run.take(receive.peer, signature_of(run, expected, receive));
    const bool here = receive.bytes == 0 || run.fetch(receive.peer, post.offset, receive.address, receive.bytes);
    if (here) {
        run.acknowledge(receive.peer);
    }
    return here;
}

void copy_to_self(const std::vector<Transfer> &transfers, uint32_t self) {
    const Transfer *send = nullptr;
    const Transfer *receive = nullptr;
    for (const Transfer &transfer : transfers) {
        if (transfer.peer == self) {
            (transfer.send ? send : receive) = &transfer;
        }
    }
    if (send != nullptr && receive != nullptr && receive->bytes > 0) { // without bytes there may be no address
        std::memmove(receive->address, send->address, receive->bytes);
    }
}

void begin_batch(Execution &run) {
    const Op op = run.operation().signature.op;
    Execution::Progress &at = run.progress;
    for (const Transfer &transfer : run.operation().transfers) {
        if (transfer.peer == run.rank()) {
            continue;
        }
        if (transfer.send) {
            run.post(transfer.peer, signature_of(run, op, transfer), transfer.offset);
            at.receivers.push_back(transfer.peer);
        } else {
            at.receives.push_back(&transfer);
        }
    }
    copy_to_self(run.operation().transfers, run.rank());
    at.posted = true;
}

bool run_batch(Execution &run) {
    const Op op = run.operation().signature.op;
    Execution::Progress &at = run.progress;
    if (!at.posted) {
        begin_batch(run);
    }
    while (!at.receives.empty()) {
        std::vector<uint32_t> senders;
        uint64_t largest = 0;
        for (const Transfer *receive : at.receives) {
            senders.push_back(receive->peer);
            largest = std::max(largest, receive->bytes);
        }
        if (!run.await_posts(senders, largest >= LARGE_BYTES)) {
            return false;
        }
        at.receives.erase(std::remove_if(at.receives.begin(), at.receives.end(),
                                         [&](const Transfer *receive) {
            if (!run.has_post(receive->peer)) {
                return false;
            }
            if (!serve(run, op, *receive)) {
                at.under_way.push_back(receive->peer);
            }
            return true;
        }),
                          at.receives.end());
    }
    run.finish();
    for (const uint32_t peer : at.under_way) {
        run.acknowledge(peer);
    }
    at.under_way.clear();
    return run.await_acknowledgements(at.receivers);
}

// The parts of all ranks in their order: they have arrived in the scratch memory, the own one lies where it was.
void reduce_parts(Execution &run) {
    const Operation &op = run.operation();
    std::vector<const char *> sources;
    for (const Transfer &transfer : op.transfers) {
        if (!transfer.send) {
            sources.push_back(transfer.address);
        }
    }
    if (op.count > 0) {
        reduce(op.signature.dtype, op.signature.reduce, op.recv, sources, op.count);
    }
}

} // namespace

bool run_transfers(Execution &run) {
    const Op op = run.operation().signature.op;
    if (op != Op::Send && op != Op::Recv) {
        if (!run_batch(run)) {
            return false;
        }
        if (op == Op::ReduceScatterV) {
            reduce_parts(run);
        }
        return true;
    }
    const Transfer &transfer = run.operation().transfers.front();
    if (op == Op::Send) {
        if (!run.progress.posted) {
            run.post(transfer.peer, signature_of(run, Op::Send, transfer), transfer.offset);
            run.progress.posted = true;
        }
        return run.await_acknowledgements({transfer.peer});
    }
    if (!run.await_posts({transfer.peer})) {
        return false;
    }
    if (!serve(run, Op::Send, transfer)) {
        run.finish();
        run.acknowledge(transfer.peer);
    }
    return true;
}

} // namespace mock
