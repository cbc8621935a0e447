#include "group.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "checks.h"
#include "creation.h"

namespace mock {
namespace {

struct Collective {
    aclrtStream stream;
    uint64_t bytes;
    bool varying;
    Injection injection;
    std::function<void()> run;
};

// What belongs to one communicator. Its sends and receives all go to the stream of the first of them.
struct Planned {
    HcclComm comm;
    aclrtStream stream;
    std::vector<HcclSendRecvItem> items;
    Injection injection;
    std::vector<Collective> collectives;
};

struct Group {
    uint32_t depth = 0;
    std::vector<Planned> planned; // in the order of their first use
    std::vector<Job> jobs;
};

Group &group() {
    thread_local Group object;
    return object;
}

Planned &planned_for(HcclComm comm) {
    for (Planned &planned : group().planned) {
        if (planned.comm == comm) {
            return planned;
        }
    }
    group().planned.push_back({comm, nullptr, {}, {}, {}});
    return group().planned.back();
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

// What a rank sends itself and what it receives from itself pair up in their order.
void check_own_part(const Comm &comm, const std::vector<Transfer> &transfers) {
    std::vector<const Transfer *> sends;
    std::vector<const Transfer *> receives;
    for (const Transfer &transfer : transfers) {
        if (transfer.peer == comm.rank()) {
            (transfer.send ? sends : receives).push_back(&transfer);
        }
    }
    bool equal = sends.size() == receives.size();
    for (size_t i = 0; equal && i < sends.size(); i++) {
        equal = sends[i]->bytes == receives[i]->bytes && sends[i]->dtype == receives[i]->dtype;
    }
    if (!equal) {
        fault(HCCL_E_PARA, "EI0003: %s: what the rank sends itself in a group is not what it receives from itself",
              comm.self().c_str());
    }
}

void launch_transfers(const Planned &planned) {
    const std::shared_ptr<Comm> comm = find_ready(planned.comm);
    check_place(*comm, planned.stream);
    std::vector<Transfer> transfers;
    for (uint32_t i = 0; i < planned.items.size(); i++) {
        transfers.push_back(checked_item(*comm, planned.items[i], i));
    }
    check_own_part(*comm, transfers);
    Injection injection = planned.injection;
    for (std::vector<Transfer> &round : rounds_of(transfers)) {
        Operation operation;
        operation.signature.op = Op::Group;
        operation.signature.dtype = round[0].dtype;
        std::set<uint32_t> peers;
        for (const Transfer &transfer : round) {
            operation.signature.bytes += transfer.bytes;
            if (transfer.peer != comm->rank()) {
                peers.insert(transfer.peer);
            }
        }
        operation.transfers = std::move(round);
        Injected::give(std::exchange(injection, {}));
        comm->submit(std::move(operation), {peers.begin(), peers.end()}, planned.stream);
    }
}

// The largest first; those whose size varies from rank to rank come last, in their order.
void sort(std::vector<Collective> *collectives) {
    const auto varying = std::stable_partition(collectives->begin(), collectives->end(),
                                               [](const Collective &collective) { return !collective.varying; });
    std::stable_sort(collectives->begin(), varying,
                     [](const Collective &a, const Collective &b) { return a.bytes > b.bytes; });
}

void launch(Planned *planned) {
    if (!planned->items.empty()) {
        launch_transfers(*planned);
    }
    sort(&planned->collectives);
    for (const Collective &collective : planned->collectives) {
        Injected::give(collective.injection);
        collective.run();
    }
}

// On the 950 a failure is that of the call. Elsewhere the vendor's library drops it and says success: what was refused never
// runs, and the peers wait in vain.
void end_group() {
    std::vector<Planned> planned = std::exchange(group().planned, {});
    const std::vector<Job> jobs = std::exchange(group().jobs, {});
    const auto refused = [](const std::string &why) {
        if (family() == Family::Ascend950) {
            fault(HCCL_E_INTERNAL, "%s", why.c_str());
        }
        warn_once("HcclGroupEnd returns success, as the vendor's does, but a part of the group was refused: " + why);
    };
    run_jobs(jobs, [&](size_t, const std::string &why) { refused(why); });
    std::set<aclrtStream> streams;
    for (Planned &part : planned) {
        try {
            launch(&part);
        } catch (const Fault &failure) {
            if (family() == Family::Ascend950) {
                throw;
            }
            refused(failure.what());
        }
        for (const Collective &collective : part.collectives) {
            streams.insert(collective.stream);
        }
    }
    for (const aclrtStream stream : streams) { // the host waits for collectives, but for no send or receive
        const aclError code = aclrtSynchronizeStream(stream);
        if (code != ACL_SUCCESS) {
            refused(format("a collective of the group failed with %d", code));
        }
    }
}

void refuse_without_groups() {
    constexpr int FIRST_VERSION = 900;
    if (cann_version() < FIRST_VERSION) {
        fault(HCCL_E_NOT_SUPPORT,
              "EI0003: groups came with CANN 9.0; the library of this version has no such function");
    }
    if (family() == Family::Ascend910A || family() == Family::Ascend310P) {
        fault(HCCL_E_NOT_SUPPORT, "EI0003: groups are not supported by this processor");
    }
}

} // namespace

bool in_group() { return group().depth > 0; }

void add_to_group(HcclComm comm, aclrtStream stream, const HcclSendRecvItem &item) {
    Planned &planned = planned_for(comm);
    if (planned.stream == nullptr) {
        planned.stream = stream;
    }
    planned.items.push_back(item);
    const Injection injection = Injected::take();
    if (injection) {
        planned.injection = injection;
    }
}

bool defer_collective(HcclComm comm, aclrtStream stream, uint64_t bytes, bool varying, std::function<void()> run) {
    if (!in_group()) {
        return false;
    }
    if (family() == Family::Ascend950) {
        fault(HCCL_E_NOT_SUPPORT, "EI0003: groups of this processor take no collectives");
    }
    planned_for(comm).collectives.push_back({stream, bytes, varying, Injected::take(), std::move(run)});
    return true;
}

bool defer_job(std::function<void()> run) {
    if (!in_group()) {
        return false;
    }
    group().jobs.push_back({require_device(), std::move(run)});
    return true;
}

void refuse_in_group(const char *function) {
    if (in_group()) {
        fault(HCCL_E_NOT_SUPPORT, "EI0003: %s has no place in a group", function);
    }
}

} // namespace mock

using namespace mock;

HcclResult HcclGroupStart(void) {
    return guarded("HcclGroupStart", [] {
        refuse_without_groups();
        group().depth++;
    });
}

// The last end of nested groups counts.
HcclResult HcclGroupEnd(void) {
    return guarded("HcclGroupEnd", [] {
        refuse_without_groups();
        if (group().depth == 0) {
            fault(HCCL_E_NOT_SUPPORT, "EI0003: HcclGroupEnd without HcclGroupStart");
        }
        if (--group().depth == 0) {
            end_group();
        }
    });
}

HcclResult HcclGroupStatusGet(bool *inGroup) {
    return guarded("HcclGroupStatusGet", [&] {
        require(inGroup, "inGroup");
        *inGroup = in_group();
    });
}
