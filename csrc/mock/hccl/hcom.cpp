// The older layer: a world per device and groups by name, on top of the communicators of the newer one.

#include "hccl/hcom.h"

#include <algorithm>
#include <map>

#include "creation.h"

using namespace mock;

namespace {

constexpr size_t LONGEST_NAME = 127;

struct Planned {
    std::string name;
    std::vector<uint32_t> ranks;
};

// Ranks may be threads here, with a device each: a world per device, where the vendor has one per process.
struct Hcom {
    std::map<std::string, HcclComm> groups; // the world among them
    std::vector<Planned> planned;           // made before there was a world
};

struct All {
    std::mutex mutex;
    std::map<int, Hcom> by_device;
};

All &all() {
    static All &object = *new All;
    return object;
}

HcclComm world_of(const Hcom &hcom) {
    const auto world = hcom.groups.find(HCCL_WORLD_GROUP);
    return world == hcom.groups.end() ? nullptr : world->second;
}

std::string check_name(const char *group) {
    require(group, "group");
    const size_t length = strnlen(group, LONGEST_NAME + 1);
    if (length == 0 || length > LONGEST_NAME) {
        fault(HCCL_E_PARA, "EI0003: the name of a group must have 1 to %zu characters", LONGEST_NAME);
    }
    return group;
}

// The name of a group that can be made or destroyed.
std::string check_own_name(const char *group) {
    const std::string name = check_name(group);
    if (name == HCCL_WORLD_GROUP) {
        fault(HCCL_E_PARA, "EI0003: the group %s cannot be made or destroyed", HCCL_WORLD_GROUP);
    }
    return name;
}

// Processors other than the A2 and A3 take 1, 2, 4 or 8 ranks of each server.
void check_servers(const Comm &world, const Planned &group) {
    if (family() == Family::Ascend910B || family() == Family::Ascend910C) {
        return;
    }
    std::map<uint32_t, uint32_t> counts;
    for (const uint32_t rank : group.ranks) {
        counts[rank < world.size() ? world.plan().members[rank].server : 0]++;
    }
    for (const auto &server : counts) {
        const uint32_t count = server.second;
        if (count != counts.begin()->second || (count != 1 && count != 2 && count != 4 && count != 8)) {
            fault(HCCL_E_PARA, "EI0003: group %s: each server must have 1, 2, 4 or 8 ranks of it, and all the same",
                  group.name.c_str());
        }
    }
}

bool is_member(const Comm &world, const Planned &group) {
    return std::find(group.ranks.begin(), group.ranks.end(), world.rank()) != group.ranks.end();
}

void make_group(Hcom &hcom, const Planned &group) {
    const std::shared_ptr<Comm> world = find_comm(world_of(hcom));
    check_servers(*world, group);
    const auto own = std::find(group.ranks.begin(), group.ranks.end(), world->rank()) - group.ranks.begin();
    Settings settings = environment_settings();
    settings.name = group.name;
    hcom.groups[group.name] =
        publish(create_sub_comm(*world, group.ranks, 0, static_cast<uint32_t>(own), std::move(settings)));
}

void initialise(const std::function<std::shared_ptr<Comm>()> &create) {
    const int device = require_device();
    std::lock_guard<std::mutex> lock(all().mutex);
    Hcom &hcom = all().by_device[device];
    if (world_of(hcom) != nullptr) {
        fault(HCCL_E_PARA, "EI0003: there is a world on device %d already: HcomDestroy comes first", device);
    }
    hcom.groups[HCCL_WORLD_GROUP] = publish(create());
    const std::shared_ptr<Comm> world = find_comm(world_of(hcom));
    for (const Planned &group : std::exchange(hcom.planned, {})) {
        if (is_member(*world, group)) {
            make_group(hcom, group);
        }
    }
}

// Runs `work` with the communicator of the group.
void with_group(const char *group, const std::function<void(Comm &)> &work) {
    const std::string name = check_name(group);
    const int device = require_device();
    std::lock_guard<std::mutex> lock(all().mutex);
    Hcom &hcom = all().by_device[device];
    const auto found = hcom.groups.find(name);
    if (found == hcom.groups.end()) {
        fault(HCCL_E_NOT_FOUND, "EI0003: there is no group %s on device %d", name.c_str(), device);
    }
    work(*find_comm(found->second));
}

void destroy_group(Hcom &hcom, const std::string &name) {
    const HcclComm comm = hcom.groups.at(name);
    find_comm(comm)->destroy();
    unpublish(comm);
    hcom.groups.erase(name);
}

// The members of the group on the caller's server, as ranks of the group.
std::vector<uint32_t> neighbours(const Comm &comm) {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < comm.size(); rank++) {
        if (comm.plan().members[rank].server == comm.plan().members[comm.rank()].server) {
            ranks.push_back(rank);
        }
    }
    return ranks;
}

} // namespace

HcclResult HcomInitByFile(const char *rankTablePath, const char *identify) {
    return guarded("HcomInitByFile", [&] {
        require(rankTablePath, "rankTablePath");
        require(identify, "identify");
        long long rank = 0;
        if (!parse_number(identify, 0, UINT32_MAX, &rank)) {
            fault(HCCL_E_PARA, "EI0003: identify [%.64s] is not the number of a rank", identify);
        }
        initialise([&] {
            return create_from_table(rankTablePath, static_cast<uint32_t>(rank), Origin::Older, environment_settings(),
                                     false);
        });
    });
}

HcclResult HcomInitByRankTable(const char *rankTable, uint32_t rankId) {
    return guarded("HcomInitByRankTable", [&] {
        require(rankTable, "rankTable");
        initialise([&] { return create_from_table_text(rankTable, rankId, environment_settings()); });
    });
}

// Groups go before the world.
HcclResult HcomDestroy(void) {
    return guarded("HcomDestroy", [&] {
        const int device = require_device();
        std::lock_guard<std::mutex> lock(all().mutex);
        Hcom &hcom = all().by_device[device];
        hcom.planned.clear();
        while (hcom.groups.size() > (world_of(hcom) != nullptr ? 1 : 0)) {
            const auto first = hcom.groups.begin();
            destroy_group(hcom, first->first == HCCL_WORLD_GROUP ? std::next(first)->first : first->first);
        }
        if (world_of(hcom) != nullptr) {
            destroy_group(hcom, HCCL_WORLD_GROUP);
        }
    });
}

HcclResult HcomCreateGroup(const char *group, uint32_t rankNum, uint32_t *rankIds) {
    return guarded("HcomCreateGroup", [&] {
        Planned planned;
        planned.name = check_own_name(group);
        if (rankNum == 0) {
            fault(HCCL_E_PARA, "EI0003: group %s: rankNum is 0", planned.name.c_str());
        }
        require(rankIds, "rankIds");
        planned.ranks.assign(rankIds, rankIds + rankNum);
        const int device = require_device();
        std::lock_guard<std::mutex> lock(all().mutex);
        Hcom &hcom = all().by_device[device];
        const bool noted = std::any_of(hcom.planned.begin(), hcom.planned.end(),
                                       [&](const Planned &other) { return other.name == planned.name; });
        if (noted || hcom.groups.count(planned.name) != 0) {
            fault(HCCL_E_PARA, "EI0003: there is a group %s already", planned.name.c_str());
        }
        if (world_of(hcom) == nullptr) {
            hcom.planned.push_back(std::move(planned));
            return;
        }
        if (!is_member(*find_comm(world_of(hcom)), planned)) {
            fault(HCCL_E_NOT_FOUND, "EI0003: the caller is no member of group %s", planned.name.c_str());
        }
        make_group(hcom, planned);
    });
}

HcclResult HcomDestroyGroup(const char *group) {
    return guarded("HcomDestroyGroup", [&] {
        const std::string name = check_own_name(group);
        const int device = require_device();
        std::lock_guard<std::mutex> lock(all().mutex);
        Hcom &hcom = all().by_device[device];
        if (hcom.groups.count(name) == 0) {
            fault(HCCL_E_PARA, "EI0003: there is no group %s on device %d", name.c_str(), device);
        }
        destroy_group(hcom, name);
    });
}

HcclResult HcomGetRankSize(const char *group, uint32_t *rankSize) {
    return guarded("HcomGetRankSize", [&] {
        require(rankSize, "rankSize");
        with_group(group, [&](const Comm &comm) { *rankSize = comm.size(); });
    });
}

HcclResult HcomGetRankId(const char *group, uint32_t *rankId) {
    return guarded("HcomGetRankId", [&] {
        require(rankId, "rankId");
        with_group(group, [&](const Comm &comm) { *rankId = comm.rank(); });
    });
}

HcclResult HcomGetLocalRankSize(const char *group, uint32_t *localRankSize) {
    return guarded("HcomGetLocalRankSize", [&] {
        require(localRankSize, "localRankSize");
        with_group(group, [&](const Comm &comm) { *localRankSize = static_cast<uint32_t>(neighbours(comm).size()); });
    });
}

HcclResult HcomGetLocalRankId(const char *group, uint32_t *localRankId) {
    return guarded("HcomGetLocalRankId", [&] {
        require(localRankId, "localRankId");
        with_group(group, [&](const Comm &comm) {
            const std::vector<uint32_t> ranks = neighbours(comm);
            *localRankId = static_cast<uint32_t>(std::find(ranks.begin(), ranks.end(), comm.rank()) - ranks.begin());
        });
    });
}

HcclResult HcomGetWorldRankFromGroupRank(const char *group, uint32_t groupRank, uint32_t *worldRank) {
    return guarded("HcomGetWorldRankFromGroupRank", [&] {
        require(worldRank, "worldRank");
        with_group(group, [&](const Comm &comm) {
            if (groupRank >= comm.size()) {
                fault(HCCL_E_PARA, "EI0003: groupRank %u: the group has %u ranks", groupRank, comm.size());
            }
            *worldRank = comm.plan().members[groupRank].world_rank;
        });
    });
}

HcclResult HcomGetGroupRankFromWorldRank(uint32_t worldRank, const char *group, uint32_t *groupRank) {
    return guarded("HcomGetGroupRankFromWorldRank", [&] {
        require(groupRank, "groupRank");
        with_group(group, [&](const Comm &comm) {
            for (uint32_t rank = 0; rank < comm.size(); rank++) {
                if (comm.plan().members[rank].world_rank == worldRank) {
                    *groupRank = rank;
                    return;
                }
            }
            fault(HCCL_E_PARA, "EI0003: worldRank %u is no member of the group", worldRank);
        });
    });
}

HcclResult HcomGetCommHandleByGroup(const char *group, HcclComm *commHandle) {
    return guarded("HcomGetCommHandleByGroup", [&] {
        require(commHandle, "commHandle");
        with_group(group, [&](Comm &comm) { *commHandle = &comm; });
    });
}
