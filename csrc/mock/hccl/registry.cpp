#include "registry.h"

#include "calls.h"

namespace mock {
namespace {

bool in_use(const RetiredBlock &block) {
    for (const RetiredBlock::Watcher &watcher : block.watchers) {
        const Attachment attachment = watcher.slot->attachment.load();
        const bool expected = watcher.expected || attachment == Attachment::Attached;
        const bool alive = watcher.process == nullptr || watcher.process->alive();
        if (expected && attachment != Attachment::Detached && alive) {
            return true;
        }
    }
    return false;
}

struct Handles {
    std::mutex mutex;
    std::map<HcclComm, std::shared_ptr<Comm>> comms;
};

Handles &handles() {
    static Handles &object = *new Handles;
    return object;
}

} // namespace

Registry &Registry::instance() {
    static Registry &object = *new Registry;
    return object;
}

void Registry::add(const CommPlan &plan, const std::function<LocalMember()> &make) {
    const int device = plan.device;
    std::lock_guard<std::mutex> lock(mutex_);
    free_retired();
    if (names_.count({device, plan.name}) != 0) {
        fault(HCCL_E_PARA, "EI0003: The comm name[%s] already exists in Group2Comm map", plan.name.c_str());
    }
    if (members_.count({plan.id, plan.rank}) != 0) {
        fault(HCCL_E_PARA, "EI0003: communicator %s, rank %u: another thread of this process is that rank already",
              plan.name.c_str(), plan.rank);
    }
    members_[{plan.id, plan.rank}] = make();
    names_.insert({device, plan.name});
    if (plan.origin == Origin::Table) {
        table_worlds_[device] = plan.id;
    }
    if (plan.origin != Origin::Parent) {
        last_worlds_[device] = plan.id;
    }
}

void Registry::remove(const CommPlan &plan) {
    const int device = plan.device;
    const auto forget = [&](std::map<int, std::string> *worlds) {
        const auto found = worlds->find(device);
        if (found != worlds->end() && found->second == plan.id) {
            worlds->erase(found);
        }
    };
    std::lock_guard<std::mutex> lock(mutex_);
    members_.erase({plan.id, plan.rank});
    names_.erase({device, plan.name});
    forget(&table_worlds_);
    forget(&last_worlds_);
}

bool Registry::with_member(const std::string &id, uint32_t rank, const std::function<void(const LocalMember &)> &use) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = members_.find({id, rank});
    if (found == members_.end()) {
        return false;
    }
    use(found->second);
    return true;
}

void Registry::retire(RetiredBlock block) {
    std::lock_guard<std::mutex> lock(mutex_);
    retired_.push_back(std::move(block));
    free_retired();
}

void Registry::check_table_world(int device) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (family() != Family::Ascend950 && table_worlds_.count(device) != 0) {
        fault(HCCL_E_UNAVAIL, "EI0003: device %d has a world from a rank table already, and takes one at a time",
              device);
    }
}

bool Registry::last_world_lives(int device) {
    std::lock_guard<std::mutex> lock(mutex_);
    return last_worlds_.count(device) != 0;
}

void Registry::free_retired() {
    for (auto block = retired_.begin(); block != retired_.end();) {
        if (in_use(*block)) {
            ++block;
        } else {
            control_free(block->device, block->offset);
            block = retired_.erase(block);
        }
    }
}

HcclComm publish(std::shared_ptr<Comm> comm) {
    if (comm->plan().network != nullptr) {
        answer_calls(comm);
    }
    Handles &all = handles();
    std::lock_guard<std::mutex> lock(all.mutex);
    HcclComm handle = comm.get();
    all.comms[handle] = std::move(comm);
    return handle;
}

std::shared_ptr<Comm> find_comm(HcclComm handle) {
    require(static_cast<char *>(handle), "comm");
    Handles &all = handles();
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.comms.find(handle);
    if (found == all.comms.end()) {
        fault(HCCL_E_PARA, "EI0003: the handle is not a live communicator");
    }
    return found->second;
}

HcclComm find_named(const char *name) {
    const int device = current_device();
    Handles &all = handles();
    std::lock_guard<std::mutex> lock(all.mutex);
    for (const auto &entry : all.comms) {
        if (entry.second->device() == device && entry.second->plan().name == name) {
            return entry.first;
        }
    }
    fault(HCCL_E_PARA, "EI0003: device %d has no communicator named [%s]", device, name);
}

void unpublish(HcclComm handle) {
    std::shared_ptr<Comm> last; // ends outside the lock
    Handles &all = handles();
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.comms.find(handle);
    if (found != all.comms.end()) {
        last = std::move(found->second);
        all.comms.erase(found);
    }
}

} // namespace mock
