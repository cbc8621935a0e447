// Rank tables of version 1.0 (servers), 1.2 (servers in superpods) and of the oldest form (groups of instances).

#include "table_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <arpa/inet.h>

namespace mock {
namespace {

constexpr size_t LONGEST_SERVER_ID = 64;

int family_of_ip(const std::string &ip) {
    in6_addr address;
    if (inet_pton(AF_INET, ip.c_str(), &address) == 1) {
        return AF_INET;
    }
    return inet_pton(AF_INET6, ip.c_str(), &address) == 1 ? AF_INET6 : 0;
}

// Collects the table's entries and checks what has to hold between them.
class Checker {
public:
    Checker(const Json &root, RankTable *table) : root_(root), table_(table) {}

    void run(uint32_t rank) {
        read_version();
        if (version_ == Version::Oldest) {
            read_groups();
        } else {
            read_servers();
        }
        check_ranks(rank);
        if (family() == Family::Ascend910A) {
            check_910a();
        }
    }

private:
    enum class Version { Oldest, Servers, Superpods };

    void read_version() {
        const Json *version = root_.find("version");
        if (version == nullptr) {
            version_ = Version::Oldest;
            return;
        }
        const std::string &text = text_of(*version, "version", "");
        if (text != "1.0" && text != "1.2") {
            fault(HCCL_E_NOT_SUPPORT,
                  "EI0014: version[%s] is not supported; this library reads versions 1.0 and 1.2, "
                  "and tables without a version",
                  text.c_str());
        }
        version_ = text == "1.0" ? Version::Servers : Version::Superpods;
    }

    void read_servers() {
        const std::vector<Json> &servers = list_member(root_, "server_list", "");
        check_server_count(servers.size());
        const bool pods = version_ == Version::Superpods && root_.find("super_pod_list") != nullptr;
        // Devices of one superpod reach each other without an address.
        several_ = pods ? list_member(root_, "super_pod_list", "").size() > 1 : servers.size() > 1;
        in_superpods_ = pods;
        for (size_t i = 0; i < servers.size(); i++) {
            read_server(servers[i], static_cast<uint32_t>(i));
        }
        if (pods) {
            read_superpods();
        }
    }

    // Every server is in one superpod, and the servers of a superpod follow each other.
    void read_superpods() {
        const std::vector<Json> &pods = list_member(root_, "super_pod_list", "");
        std::set<std::string> names;
        std::map<std::string, size_t> pod_of;
        for (size_t i = 0; i < pods.size(); i++) {
            const FieldPlace place = format("super_pod_list[%zu].", i);
            const std::string &name = text_member(pods[i], "super_pod_id", place);
            if (name.empty() || !names.insert(name).second) {
                fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %ssuper_pod_id [%s] is empty or there twice",
                      place.c_str(), name.c_str());
            }
            const std::vector<Json> &servers = list_member(pods[i], "server_list", place);
            for (size_t j = 0; j < servers.size(); j++) {
                const FieldPlace entry = place + format("server_list[%zu].", j);
                const std::string &id = text_member(servers[j], "server_id", entry);
                const auto &known = table_->server_ids;
                if (std::find(known.begin(), known.end(), id) == known.end()) {
                    fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %sserver_id [%s] is not in server_list",
                          entry.c_str(), id.c_str());
                }
                if (!pod_of.emplace(id, i).second) {
                    fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %sserver_id [%s] is in a superpod already",
                          entry.c_str(), id.c_str());
                }
            }
        }
        check_pod_blocks(pod_of);
        check_super_devices(pod_of);
    }

    // A superpod knows its devices by number.
    void check_super_devices(const std::map<std::string, size_t> &pod_of) const {
        std::set<std::pair<size_t, uint32_t>> seen;
        for (size_t i = 0; i < table_->ranks.size(); i++) {
            const size_t pod = pod_of.at(table_->server_ids[table_->ranks[i].server]);
            if (!seen.emplace(pod, super_devices_[i]).second) {
                fault(HCCL_E_PARA,
                      "EI0014: The ranktable is invalid: superDeviceId[%u] of rank_id %u in super_pod_list[%zu] is "
                      "already exist",
                      super_devices_[i], table_->ranks[i].rank, pod);
            }
        }
    }

    void check_pod_blocks(const std::map<std::string, size_t> &pod_of) const {
        std::set<size_t> seen;
        size_t last = pod_of.size();
        for (const std::string &id : table_->server_ids) {
            const auto pod = pod_of.find(id);
            if (pod == pod_of.end()) {
                fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: server [%s] is in no superpod", id.c_str());
            }
            if (pod->second != last && !seen.insert(pod->second).second) {
                fault(HCCL_E_PARA,
                      "EI0014: The ranktable is invalid: the servers of super_pod_list[%zu] are not one "
                      "block: [%s] is apart from the others",
                      pod->second, id.c_str());
            }
            last = pod->second;
        }
    }

    // Ranks count in the order of the table. Instances (pods) of one server may stand side by side.
    void read_groups() {
        const std::vector<Json> &groups = list_member(root_, "group_list", "");
        check_total(root_, "group_count", "", groups.size());
        several_ = servers_of(groups) > 1;
        std::map<std::string, std::set<int>> devices_of;
        for (size_t i = 0; i < groups.size(); i++) {
            const FieldPlace place = format("group_list[%zu].", i);
            const std::vector<Json> &instances = list_member(groups[i], "instance_list", place);
            check_total(groups[i], "instance_count", place, instances.size());
            const size_t before = table_->ranks.size();
            for (size_t j = 0; j < instances.size(); j++) {
                read_instance(instances[j], place + format("instance_list[%zu].", j), &devices_of);
            }
            check_total(groups[i], "device_count", place, table_->ranks.size() - before);
        }
    }

    static size_t servers_of(const std::vector<Json> &groups) {
        std::set<std::string> ids;
        for (size_t i = 0; i < groups.size(); i++) {
            const FieldPlace place = format("group_list[%zu].", i);
            const std::vector<Json> &instances = list_member(groups[i], "instance_list", place);
            for (size_t j = 0; j < instances.size(); j++) {
                ids.insert(text_member(instances[j], "server_id", place + format("instance_list[%zu].", j)));
            }
        }
        return ids.size();
    }

    // A total that the table states, if it does.
    static void check_total(const Json &object, const char *name, const FieldPlace &place, size_t count) {
        if (object.find(name) != nullptr && number_member(object, name, place, UINT32_MAX, "EI0014") != count) {
            fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %s%s is not %zu, the number of entries",
                  place.c_str(), name, count);
        }
    }

    void read_instance(const Json &instance, const FieldPlace &place,
                       std::map<std::string, std::set<int>> *devices_of) {
        const std::string &id = text_member(instance, "server_id", place);
        check_server_id(id, place);
        auto known = std::find(table_->server_ids.begin(), table_->server_ids.end(), id);
        if (known == table_->server_ids.end()) {
            known = table_->server_ids.insert(known, id);
            table_->addresses.push_back(address_of(instance, id));
        }
        const auto server = static_cast<uint32_t>(known - table_->server_ids.begin());
        const std::vector<Json> &devices = list_member(instance, "devices", place);
        for (size_t i = 0; i < devices.size(); i++) {
            read_device(devices[i], server, place + format("devices[%zu].", i), &(*devices_of)[id]);
        }
    }

    static void check_server_id(const std::string &id, const FieldPlace &place) {
        if (id.empty() || id.size() > LONGEST_SERVER_ID) {
            fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %sserver_id [%.80s] must have 1 to %zu characters",
                  place.c_str(), id.c_str(), LONGEST_SERVER_ID);
        }
    }

    void check_server_count(size_t servers) {
        if (root_.find("server_count") == nullptr) {
            warn_once("the ranktable has no server_count");
            return;
        }
        const uint32_t count = number_member(root_, "server_count", "", UINT32_MAX, "EI0014");
        if (count != servers || count == 0) {
            fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: server_count is %u, server_list has %zu entries",
                  count, servers);
        }
    }

    void read_server(const Json &server, uint32_t index) {
        const FieldPlace place = format("server_list[%u].", index);
        const std::string &id = text_member(server, "server_id", place);
        check_server_id(id, place);
        const auto known = std::find(table_->server_ids.begin(), table_->server_ids.end(), id);
        if (known != table_->server_ids.end()) {
            fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %sserver_id [%s] is already exist (server_list[%zu])",
                  place.c_str(), id.c_str(), static_cast<size_t>(known - table_->server_ids.begin()));
        }
        table_->server_ids.push_back(id);
        table_->addresses.push_back(address_of(server, id));
        const std::vector<Json> &devices = list_member(server, "device", place);
        std::set<int> ids;
        for (size_t i = 0; i < devices.size(); i++) {
            read_device(devices[i], index, place + format("device[%zu].", i), &ids);
        }
    }

    static std::string address_of(const Json &server, const std::string &id) {
        const Json *host = server.find("host_ip");
        if (host != nullptr && host->kind == Json::Kind::String && family_of_ip(host->text) != 0) {
            return host->text;
        }
        return family_of_ip(id) != 0 ? id : "";
    }

    void read_device(const Json &device, uint32_t server, const FieldPlace &place, std::set<int> *ids) {
        TableRank entry;
        entry.server = server;
        const uint32_t most = family() == Family::Ascend910A ? 7 : std::max(15, last_physical_device());
        entry.device = static_cast<int>(number_member(device, "device_id", place, most, "EI0004"));
        if (!ids->insert(entry.device).second) {
            fault(HCCL_E_PARA, "EI0014: device id repeat for one server: %sdevice_id is %d", place.c_str(),
                  entry.device);
        }
        read_ip(device, place);
        check_port(device, "device_port", place);
        if (version_ == Version::Superpods) {
            read_superpod_fields(device, place);
        }
        if (version_ == Version::Oldest) {
            entry.rank = static_cast<uint32_t>(table_->ranks.size());
        } else {
            entry.rank = number_member(device, "rank_id", place, UINT32_MAX - 1, "EI0014");
        }
        table_->ranks.push_back(entry);
    }

    static void check_port(const Json &device, const char *name, const FieldPlace &place) {
        if (device.find(name) != nullptr && number_member(device, name, place, 65535, "EI0004") == 0) {
            fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: %s%s is 0", place.c_str(), name);
        }
    }

    // Of the rank that is read next.
    void read_superpod_fields(const Json &device, const FieldPlace &place) {
        const Json *id = device.find("super_device_id");
        if (id == nullptr && in_superpods_) {
            fault(HCCL_E_NOT_FOUND, "EI0004: The ranktable is invalid: %ssuper_device_id is missing", place.c_str());
        }
        if (id != nullptr && text_of(*id, "super_device_id", place).empty()) {
            fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: super_device_id[] is invalid (%s)", place.c_str());
        }
        super_devices_.push_back(
            id != nullptr ? number_member(device, "super_device_id", place, UINT32_MAX - 1, "EI0014") : 0);
        check_port(device, "backup_device_port", place);
        check_port(device, "host_port", place);
        const Json *backup = device.find("backup_device_ip");
        if (backup != nullptr && family_of_ip(text_of(*backup, "backup_device_ip", place)) == 0) {
            fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: %sbackup_device_ip [%s] is not an IP address",
                  place.c_str(), backup->text.c_str());
        }
    }

    void read_ip(const Json &device, const FieldPlace &place) {
        const bool due = several_ || family() == Family::Ascend910A;
        if (!due && device.find("device_ip") == nullptr) {
            return;
        }
        const std::string addresses = text_member(device, "device_ip", place);
        if (!due && addresses.empty()) {
            return;
        }
        std::stringstream list(addresses);
        std::string ip;
        size_t count = 0;
        while (std::getline(list, ip, ',')) {
            const int kind = family_of_ip(ip);
            if (kind == 0) {
                break;
            }
            if (ip_family_ != 0 && kind != ip_family_) {
                fault(HCCL_E_PARA,
                      "EI0001: The ranktable is invalid: device ip family of %sdevice_ip [%s] is not that "
                      "of the others",
                      place.c_str(), ip.c_str());
            }
            ip_family_ = kind;
            if (!ips_.insert(ip).second) {
                fault(HCCL_E_PARA, "EI0014: The IP is used repeatedly. %sdevice_ip [%s]", place.c_str(), ip.c_str());
            }
            ip.clear();
            count++;
        }
        if (count == 0 || !ip.empty()) {
            fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: %sdevice_ip [%s] is not an IP address", place.c_str(),
                  addresses.c_str());
        }
    }

    void check_ranks(uint32_t rank) {
        std::vector<TableRank> &ranks = table_->ranks;
        if (rank >= ranks.size()) {
            fault(HCCL_E_PARA, "EI0004: rank %u is not in the ranktable, which has %zu ranks", rank, ranks.size());
        }
        std::stable_sort(ranks.begin(), ranks.end(),
                         [](const TableRank &a, const TableRank &b) { return a.rank < b.rank; });
        if (ranks[rank].rank != rank) {
            fault(HCCL_E_UNAVAIL,
                  "EI0014: The ranktable is invalid: rank %u is not at its place: rank_id %u is there, "
                  "so a rank_id is missing or there twice",
                  rank, ranks[rank].rank);
        }
        for (size_t i = 0; i < ranks.size(); i++) {
            if (ranks[i].rank != i) {
                fault(HCCL_E_PARA,
                      "EI0014: The ranktable is invalid: rank_id %u is less than the communication size "
                      "%zu and must be unique.",
                      ranks[i].rank, ranks.size());
            }
        }
    }

    void check_910a() const {
        std::vector<std::vector<int>> devices(table_->server_ids.size());
        for (const TableRank &rank : table_->ranks) {
            devices[rank.server].push_back(rank.device);
        }
        for (size_t i = 0; i < devices.size(); i++) {
            const size_t count = devices[i].size();
            if (count != devices[0].size() || (count != 1 && count != 2 && count != 4 && count != 8 && count != 16)) {
                fault(HCCL_E_PARA,
                      "EI0004: The ranktable is invalid: server_list[%zu] has %zu devices: every server "
                      "needs the same number out of 1, 2, 4, 8, 16",
                      i, count);
            }
            const bool low = std::any_of(devices[i].begin(), devices[i].end(), [](int id) { return id < 4; });
            const bool high = std::any_of(devices[i].begin(), devices[i].end(), [](int id) { return id >= 4; });
            if ((count == 2 || count == 4) && low && high) {
                fault(HCCL_E_PARA,
                      "EI0004: The ranktable is invalid: the %zu devices of server_list[%zu] lie on both "
                      "sides of 0-3 and 4-7",
                      count, i);
            }
        }
    }

    const Json &root_;
    RankTable *table_;
    Version version_ = Version::Servers;
    bool several_ = false; // servers, or superpods, that reach each other by address
    bool in_superpods_ = false;
    std::vector<uint32_t> super_devices_; // in the order of the table's ranks, as long as they are read
    int ip_family_ = 0;
    std::set<std::string> ips_;
};

} // namespace

void check_table(const Json &root, uint32_t rank, RankTable *table) { Checker(root, table).run(rank); }

} // namespace mock
