#include "group.h"

#include <map>
#include <set>

namespace mock {
namespace {

struct Queue {
    std::shared_ptr<Comm> comm;
    aclrtStream stream;
    std::vector<Transfer> transfers;
};

struct Group {
    uint32_t depth = 0;
    std::vector<Queue> queues; // one per communicator and stream, in the order of their first use
};

Group &group() {
    thread_local Group object;
    return object;
}

// A batch takes one send and one receive per peer: the n-th of either goes to the n-th batch, on both sides alike.
std::vector<std::vector<Transfer>> rounds_of(const std::vector<Transfer> &transfers) {
    std::map<std::pair<bool, uint32_t>, size_t> used;
    std::vector<std::vector<Transfer>> rounds;
    for (const Transfer &transfer : transfers) {
        const size_t round = used[{transfer.send, transfer.peer}]++;
        if (rounds.size() <= round) {
            rounds.resize(round + 1);
        }
        rounds[round].push_back(transfer);
    }
    return rounds;
}

void submit(const Queue &queue) {
    for (std::vector<Transfer> &round : rounds_of(queue.transfers)) {
        Operation operation;
        operation.signature.op = Op::Batch;
        operation.signature.dtype = round[0].dtype;
        std::set<uint32_t> peers;
        for (const Transfer &transfer : round) {
            operation.signature.bytes += transfer.bytes;
            peers.insert(transfer.peer);
        }
        operation.transfers = std::move(round);
        queue.comm->submit(std::move(operation), {peers.begin(), peers.end()}, queue.stream);
    }
}

void refuse_without_groups() {
    if (family() == Family::Ascend910A) {
        fault(HCCL_E_NOT_SUPPORT, "EI0003: groups are not supported by this processor");
    }
}

} // namespace

bool in_group() { return group().depth > 0; }

void add_to_group(const std::shared_ptr<Comm> &comm, aclrtStream stream, const Transfer &transfer) {
    for (Queue &queue : group().queues) {
        if (queue.comm == comm && queue.stream == stream) {
            queue.transfers.push_back(transfer);
            return;
        }
    }
    group().queues.push_back({comm, stream, {transfer}});
}

} // namespace mock

using namespace mock;

HcclResult HcclGroupStart(void) {
    return guarded("HcclGroupStart", [] {
        refuse_without_groups();
        group().depth++;
    });
}

HcclResult HcclGroupEnd(void) {
    return guarded("HcclGroupEnd", [] {
        refuse_without_groups();
        if (group().depth == 0) {
            fault(HCCL_E_PARA, "EI0003: HcclGroupEnd without HcclGroupStart");
        }
        if (--group().depth > 0) {
            return;
        }
        const std::vector<Queue> queues = std::move(group().queues);
        group().queues.clear();
        for (const Queue &queue : queues) {
            submit(queue);
        }
    });
}

HcclResult HcclGroupStatusGet(bool *inGroup) {
    return guarded("HcclGroupStatusGet", [&] {
        require(inGroup, "inGroup");
        *inGroup = in_group();
    });
}
