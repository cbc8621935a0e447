#include "table.h"

#include <fstream>
#include <sstream>
#include <thread>

#include <climits>
#include <sys/stat.h>

#include "table_rules.h"

namespace mock {
namespace {

constexpr size_t LONGEST_PATH = 4096;
constexpr size_t LARGEST_FILE = 64 << 20;

std::string read_file(const char *path) {
    char real[PATH_MAX];
    if (path[0] == '\0' || std::strlen(path) >= LONGEST_PATH || realpath(path, real) == nullptr) {
        throw LoadFault(HCCL_E_PARA, format("EI0004: The ranktable path [%.200s] is not a valid real path", path));
    }
    struct stat status {};
    if (stat(real, &status) != 0 || !S_ISREG(status.st_mode) || static_cast<uint64_t>(status.st_size) > LARGEST_FILE) {
        throw LoadFault(HCCL_E_PARA, format("EI0004: The ranktable [%s] is not a file of at most 64 MB", real));
    }
    std::ifstream file(real, std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    if (!file) {
        throw LoadFault(HCCL_E_OPEN_FILE_FAILURE, format("EI0004: The ranktable [%s] cannot be read", real));
    }
    return content.str();
}

Json parse(const std::string &content, const char *path) {
    Json root;
    std::string error;
    if (!parse_json(content, &root, &error) || root.kind != Json::Kind::Object) {
        throw LoadFault(HCCL_E_INTERNAL, format("EI0004: Invalid ranktable format. %s: %s", path,
                                                error.empty() ? "it is not an object" : error.c_str()));
    }
    return root;
}

// Seconds that a table may stay unfinished. The vendor's library waits for half an hour.
long long patience() {
    long long seconds = 1800;
    const char *text = environment("HCCL_MOCK_TABLE_TIMEOUT");
    if (text != nullptr && !parse_number(text, 0, 86400, &seconds)) {
        fault(HCCL_E_PARA, "EI0001: environment variable HCCL_MOCK_TABLE_TIMEOUT [%s] is not a number from 0 to 86400",
              text);
    }
    return seconds;
}

void check(const Json &root, uint32_t rank, RankTable *table) {
    (family() == Family::Ascend950 ? check_rank_list : check_table)(root, rank, table);
}

// The table once its status is "completed"; those of the Ascend 950 have none.
Json read_completed(const char *path, std::string *content) {
    const auto limit = Clock::now() + std::chrono::seconds(patience());
    for (;;) {
        *content = read_file(path);
        Json root = parse(*content, path);
        if (family() == Family::Ascend950) {
            return root;
        }
        const std::string &status = text_member(root, "status", "");
        if (status == "completed") {
            return root;
        }
        if (Clock::now() >= limit) {
            throw LoadFault(HCCL_E_TIMEOUT, format("EI0004: The ranktable [%s] has status [%s]; it did not become "
                                                   "completed in time",
                                                   path, status.c_str()));
        }
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
}

} // namespace

RankTable load_table(const char *path, uint32_t rank) {
    require(path, "clusterInfo");
    RankTable table;
    const Json root = read_completed(path, &table.content);
    check(root, rank, &table);
    return table;
}

RankTable read_table(const std::string &content, uint32_t rank) {
    RankTable table;
    table.content = content;
    const Json root = parse(content, "of this call");
    if (family() != Family::Ascend950 && text_member(root, "status", "") != "completed") {
        fault(HCCL_E_PARA, "EI0004: The ranktable has status [%s], not [completed]",
              text_member(root, "status", "").c_str());
    }
    check(root, rank, &table);
    return table;
}

} // namespace mock
