#include "algorithms.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <vector>

#include "failure.h"

namespace mock {
namespace {

constexpr size_t MOST_LEVELS = 4;
constexpr size_t MOST_RETRY_LEVELS = 3;

void drop_spaces(std::string *text) { text->erase(std::remove(text->begin(), text->end(), ' '), text->end()); }

// Its parts between separators; none is empty.
bool split(const std::string &text, char separator, std::vector<std::string> *parts) {
    for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(separator, begin), text.size());
        if (end == begin) {
            return false;
        }
        parts->push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return true;
}

// "level0:NA;level1:ring"
bool valid_levels(const std::string &text) {
    static const std::set<std::string> LEVELS = {"level0", "level1", "level2", "level3"};
    static const std::set<std::string> ALGORITHMS = {"null", "ring",   "pipeline", "fullmesh",  "H-D_R", "pairwise",
                                                     "NHR",  "NHR_V1", "AHC",      "AHC_BROKE", "NB",    "NA"};
    std::vector<std::string> entries;
    std::set<std::string> seen;
    if (!split(text, ';', &entries) || entries.size() > MOST_LEVELS) {
        return false;
    }
    return std::all_of(entries.begin(), entries.end(), [&](const std::string &entry) {
        const size_t colon = entry.find(':');
        return colon != std::string::npos && LEVELS.count(entry.substr(0, colon)) != 0 &&
               ALGORITHMS.count(entry.substr(colon + 1)) != 0 && seen.insert(entry.substr(0, colon)).second;
    });
}

bool valid_algorithms(const std::string &text) {
    static const std::set<std::string> OPERATIONS = {"broadcast", "allreduce", "reduce",        "send",
                                                     "receive",   "allgather", "reducescatter", "alltoall",
                                                     "gather",    "scatter",   "sendrecv",      "others"};
    std::vector<std::string> entries;
    if (!split(text, '/', &entries)) {
        return false;
    }
    if (text.find('=') == std::string::npos) {
        return entries.size() == 1 && valid_levels(text);
    }
    return std::all_of(entries.begin(), entries.end(), [](const std::string &entry) {
        const size_t sign = entry.find('=');
        if (sign == std::string::npos || sign == 0 || sign + 1 == entry.size()) {
            return false;
        }
        const std::string operation = entry.substr(0, sign);
        if (OPERATIONS.count(operation) == 0) {
            warn_once("hcclAlgo names the operation " + operation + ", which has no effect");
            return true;
        }
        return valid_levels(entry.substr(sign + 1));
    });
}

} // namespace

void check_algorithms(std::string text, const char *name) {
    drop_spaces(&text);
    if (!text.empty() && !valid_algorithms(text)) {
        fault(HCCL_E_PARA,
              "EI0003: %s [%.64s] is not of the form level0:NA;level1:<algorithm> or "
              "<operation>=level0:NA;level1:<algorithm>/...",
              name, text.c_str());
    }
}

void check_retry_levels(std::string text) {
    drop_spaces(&text);
    std::vector<std::string> levels;
    if (!text.empty() && (!split(text, ',', &levels) || levels.size() > MOST_RETRY_LEVELS)) {
        fault(HCCL_E_PARA, "EI0003: hcclRetryEnable [%s] is not of the form L1:0, L2:0", text.c_str());
    }
}

void check_retry_params(const std::string &text) {
    constexpr unsigned LONGEST_MS = 60000;
    unsigned count = 0;
    unsigned hold = 0;
    unsigned interval = 0;
    const int found = std::sscanf(text.c_str(), "MaxCnt:%u, HoldTime:%u, IntervalTime:%u", &count, &hold, &interval);
    if (found != 3 || count < 1 || count > 10 || hold > LONGEST_MS || interval > LONGEST_MS) {
        fault(HCCL_E_PARA,
              "EI0003: hcclRetryParams [%s] is not of the form MaxCnt:1-10, HoldTime:0-60000, "
              "IntervalTime:0-60000",
              text.c_str());
    }
}

} // namespace mock
