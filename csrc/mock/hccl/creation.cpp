#include "creation.h"

#include <algorithm>
#include <set>
#include <thread>

#include "proof.h"
#include "registry.h"
#include "secret.h"
#include "table.h"

namespace mock {
namespace {

constexpr const char *WORLD_NAME = "hccl_world_group";

// How many worlds this process has made for one rank of a job: a later one is not to be mistaken for an earlier one.
uint32_t next_generation(const std::string &job, uint32_t rank) {
    static std::mutex &mutex = *new std::mutex;
    static auto &generations = *new std::map<std::pair<std::string, uint32_t>, uint32_t>;
    std::lock_guard<std::mutex> lock(mutex);
    return generations[{job, rank}]++;
}

RankTable load_for(const char *path, uint32_t rank, bool config_call) {
    try {
        return load_table(path, rank);
    } catch (const LoadFault &failure) {
        if (config_call) {
            fault(HCCL_E_INTERNAL, "load rankTable error: %s", failure.what());
        }
        throw;
    }
}

std::shared_ptr<Comm> create_world(const RankTable &table, uint32_t rank, int device, Origin origin,
                                   Settings settings) {
    check_rejoin();
    if (origin == Origin::Table) {
        Registry::instance().check_table_world(device);
    }
    const int physical = physical_device(device);
    if (table.ranks[rank].device != physical) {
        fault(HCCL_E_UNAVAIL, "EI0014: ranktable config devId[%d],but local devId[%d]", table.ranks[rank].device,
              physical);
    }
    const char *job_name = environment("HCCL_MOCK_JOB");
    const std::string job = digest(job_name != nullptr ? std::string("job ") + job_name : "table " + table.content);
    CommPlan plan;
    plan.claim = std::make_unique<Claim>(job, rank);
    // The names of sockets come from it: without the secret, if there is one, others cannot take them.
    const Sum id = keyed_hash(job_secret(), format("ascend-mock world\n%s\n%s\n%u", job.c_str(),
                                                   digest(table.content).c_str(), next_generation(job, rank)));
    plan.id = digest(std::string(id.begin(), id.end()));
    plan.name = settings.name.empty() ? WORLD_NAME : settings.name;
    plan.rank = rank;
    plan.device = device;
    plan.origin = origin;
    for (const TableRank &entry : table.ranks) {
        plan.members.push_back({entry.rank, entry.device, entry.server});
    }
    plan.network = make_network(table, rank, job);
    plan.settings = std::move(settings);
    set_world_rank(device, rank, true);
    return std::make_shared<Comm>(std::move(plan));
}

} // namespace

void check_rejoin() {
    if (Comm::any_failed()) {
        refuse_if(Deviation::NoRejoin, HCCL_E_INTERNAL, "a world after one that has failed");
    }
}

int require_device() {
    const int device = current_device();
    if (device < 0) {
        fault(HCCL_E_RUNTIME, "EI9999: this thread has no device: call aclrtSetDevice first");
    }
    return device;
}

std::shared_ptr<Comm> create_from_table(const char *path, uint32_t rank, Origin origin, Settings settings,
                                        bool config_call) {
    const int device = require_device();
    return create_world(load_for(path, rank, config_call), rank, device, origin, std::move(settings));
}

std::shared_ptr<Comm> create_from_table_text(const std::string &content, uint32_t rank, Settings settings) {
    const int device = require_device();
    return create_world(read_table(content, rank), rank, device, Origin::Older, std::move(settings));
}

void run_jobs(const std::vector<Job> &jobs, const std::function<void(size_t, const std::string &)> &refused) {
    std::vector<std::string> troubles(jobs.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < jobs.size(); i++) {
        threads.emplace_back([&, i] {
            if (aclrtSetDevice(jobs[i].device) != ACL_SUCCESS) {
                troubles[i] = format("EI9999: device %d cannot be set", jobs[i].device);
                return;
            }
            try {
                jobs[i].run();
            } catch (const std::exception &error) {
                troubles[i] = error.what();
            }
            aclrtResetDevice(jobs[i].device);
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (size_t i = 0; i < jobs.size(); i++) {
        if (!troubles[i].empty()) {
            refused(i, troubles[i]);
        }
    }
}

void create_for_devices(const std::vector<int32_t> &devices, HcclComm *comms) {
    const auto refused = [](size_t rank, const std::string &why) {
        fault(HCCL_E_INTERNAL, "rank %zu: %s", rank, why.c_str());
    };
    HcclRootInfo info;
    run_jobs({{devices[0], [&] { make_root_info(&info); }}}, refused);
    std::vector<std::shared_ptr<Comm>> made(devices.size());
    std::vector<Job> jobs;
    for (size_t rank = 0; rank < devices.size(); rank++) {
        jobs.push_back({devices[rank], [&, rank] {
            made[rank] = create_from_root_info(info, static_cast<uint32_t>(devices.size()), static_cast<uint32_t>(rank),
                                               environment_settings());
        }});
    }
    run_jobs(jobs, refused);
    for (size_t rank = 0; rank < devices.size(); rank++) {
        comms[rank] = publish(std::move(made[rank]));
    }
}

namespace {

// Only worlds are split; on the 950 only while the world that was made last on the device lives.
void check_parent(const Comm &parent) {
    const bool is_950 = family() == Family::Ascend950;
    if (parent.plan().origin == Origin::Parent) {
        fault(is_950 ? HCCL_E_INTERNAL : HCCL_E_NOT_SUPPORT,
              "EI0003: %s is a sub-communicator, which cannot be split again", parent.self().c_str());
    }
    if (is_950 && !Registry::instance().last_world_lives(parent.device())) {
        fault(HCCL_E_PTR, "EI0003: %s cannot be split: the world that was made last on device %d was destroyed",
              parent.self().c_str(), parent.device());
    }
}

} // namespace

std::shared_ptr<Comm> create_sub_comm(Comm &parent, const std::vector<uint32_t> &ranks, uint64_t id, uint32_t rank,
                                      Settings settings) {
    check_parent(parent);
    CommPlan plan;
    std::set<uint32_t> seen;
    for (const uint32_t member : ranks) {
        if (member >= parent.size()) {
            fault(HCCL_E_PARA, "EI0003: rankIds holds %u, but %s has %u ranks", member, parent.plan().name.c_str(),
                  parent.size());
        }
        if (!seen.insert(member).second) {
            fault(HCCL_E_PARA, "EI0003: rankIds holds %u twice", member);
        }
        plan.members.push_back(parent.plan().members[member]);
    }
    if (family() == Family::Ascend950 && seen.count(parent.rank()) == 0) {
        fault(HCCL_E_NOT_FOUND, "EI0003: rankIds lacks rank %u of %s, which made the call", parent.rank(),
              parent.plan().name.c_str());
    }
    if (ranks[rank] != parent.rank()) {
        warn_once(format("subCommRankId %u belongs to rank %u of %s, but rank %u made the call", rank, ranks[rank],
                         parent.plan().name.c_str(), parent.rank()));
    }
    plan.name = settings.name;
    if (plan.name.empty()) {
        plan.name = format("%s_sub_%llu", parent.plan().name.c_str(), static_cast<unsigned long long>(id));
    }
    if (family() == Family::Ascend950 && plan.name == parent.plan().name) {
        fault(HCCL_E_INTERNAL, "EI0003: the sub-communicator has the name of its world, [%s]", plan.name.c_str());
    }
    // Communicators without a common member may have one name. Their smallest ranks tell them apart; the rest of the list
    // is no part of the id, so that members that disagree about it still meet, and learn of it.
    plan.id = digest(format("sub %s %s %u %u", parent.plan().id.c_str(), plan.name.c_str(), *seen.begin(),
                            parent.next_generation(plan.name)));
    plan.rank = rank;
    plan.device = parent.device(); // whoever made the call
    plan.origin = Origin::Parent;
    plan.network = parent.plan().network;
    plan.settings = std::move(settings);
    return std::make_shared<Comm>(std::move(plan));
}

} // namespace mock
