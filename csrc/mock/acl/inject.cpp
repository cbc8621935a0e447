// Faults on demand: HCCL_MOCK_FAULT=rank:op:index:kind, several separated by commas.

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include <signal.h>

#include "failure.h"

namespace mock {
namespace {

using Kind = Injection::Kind;

constexpr const char *VARIABLE = "HCCL_MOCK_FAULT";
constexpr const char *FORM = "rank:op:index:kind with op a function of HCCL, kernel or *, and kind die, stall, "
                             "error=CODE, corrupt, slow=FACTOR or, but for kernel, hold=SECONDS";

struct Rule {
    long long rank = 0;
    std::string op;
    long long index = 0; // EVERY: all of them
    Injection injection;
    long long calls = 0; // that matched so far
};
constexpr long long EVERY = -1;

std::vector<std::string> split(const std::string &text, char separator) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == separator) {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

bool parse_kind(const std::string &text, Injection *injection) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (name == "error") {
        long long code = 0;
        injection->kind = Kind::Error;
        const bool good = parse_number(value.c_str(), 1, 999999, &code);
        injection->code = static_cast<int>(code);
        return good;
    }
    if (name == "slow" || name == "hold") {
        char *end = nullptr;
        injection->kind = name == "slow" ? Kind::Slow : Kind::Hold;
        injection->factor = std::strtod(value.c_str(), &end);
        return !value.empty() && *end == '\0' && injection->factor >= (name == "slow" ? 1 : 0) &&
               injection->factor <= 1e6;
    }
    injection->kind = name == "die" ? Kind::Die : name == "stall" ? Kind::Stall : Kind::Corrupt;
    return equals == std::string::npos && (name == "die" || name == "stall" || name == "corrupt");
}

bool parse_rule(const std::string &text, Rule *rule) {
    constexpr long long MOST = 1LL << 40;
    const std::vector<std::string> parts = split(text, ':');
    if (parts.size() != 4 || !parse_number(parts[0].c_str(), 0, UINT32_MAX, &rule->rank)) {
        return false;
    }
    rule->op = parts[1];
    if (parts[2] == "*") {
        rule->index = EVERY;
    } else if (!parse_number(parts[2].c_str(), 0, MOST, &rule->index)) {
        return false;
    }
    const bool function = rule->op.rfind("Hccl", 0) == 0 || rule->op.rfind("Hcom", 0) == 0;
    if ((!function && rule->op != "kernel" && rule->op != "*") || !parse_kind(parts[3], &rule->injection)) {
        return false;
    }
    return rule->op != "kernel" || rule->injection.kind != Kind::Hold; // calls are held, a launch is none
}

struct Faults {
    Faults() {
        const char *text = environment(VARIABLE);
        for (const std::string &part : text != nullptr ? split(text, ',') : std::vector<std::string>()) {
            Rule rule;
            if (!parse_rule(part, &rule)) {
                error =
                    format("EI0001: environment variable %s [%s]: [%s] is not %s", VARIABLE, text, part.c_str(), FORM);
                break;
            }
            rules.push_back(std::move(rule));
        }
        long long rank = 0;
        if (parse_number(environment("RANK_ID"), 0, UINT32_MAX, &rank)) {
            process_rank = rank;
        }
    }
    std::mutex mutex;
    std::list<Rule> rules;
    std::string error;
    std::map<int, uint32_t> ranks; // world rank by device
    long long process_rank = -1;   // as the launcher said it: for calls before a world is made
};

Faults &faults() {
    static Faults &object = *new Faults;
    return object;
}

void pause(std::chrono::nanoseconds time, const Cancelled &cancelled) {
    const auto end = Clock::now() + time;
    while (!cancelled && Clock::now() < end) {
        std::this_thread::sleep_for(
            std::min<std::chrono::nanoseconds>(end - Clock::now(), std::chrono::milliseconds(50)));
    }
}

} // namespace

void set_world_rank(int device, uint32_t rank, bool overrule) {
    Faults &all = faults();
    std::lock_guard<std::mutex> lock(all.mutex);
    if (overrule) {
        all.ranks[device] = rank;
    } else {
        all.ranks.emplace(device, rank);
    }
}

bool next_injection(int device, const char *op, Injection *injection, std::string *error) {
    Faults &all = faults();
    if (!all.error.empty()) {
        *error = all.error;
        return false;
    }
    if (all.rules.empty()) {
        return true;
    }
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto known = all.ranks.find(device);
    const long long rank = known != all.ranks.end() ? static_cast<long long>(known->second) : all.process_rank;
    for (Rule &rule : all.rules) {
        if (rule.rank != rank || (rule.op != "*" && rule.op != op)) {
            continue;
        }
        const bool now = rule.index == EVERY || rule.calls == rule.index;
        rule.calls++;
        if (now && !*injection) {
            *injection = rule.injection;
        }
    }
    return true;
}

std::vector<std::string> injected_functions() {
    std::vector<std::string> names;
    for (const Rule &rule : faults().rules) {
        if (rule.op != "kernel" && rule.op != "*") {
            names.push_back(rule.op);
        }
    }
    return names;
}

Outcome strike(const Injection &injection, const std::string &what, const Cancelled &cancelled,
               const std::atomic<bool> *closed) {
    switch (injection.kind) {
    case Kind::Die:
        std::fprintf(stderr, "mock: %s kills this process at %s\n", VARIABLE, what.c_str());
        kill(getpid(), SIGKILL);
        break;
    case Kind::Stall:
        while (!cancelled && (closed == nullptr || !*closed)) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        return {ACL_ERROR_RT_STREAM_ABORT, format("EI9999: %s, which %s stalled, was aborted", what.c_str(), VARIABLE)};
    case Kind::Error:
        return {injection.code,
                format("EI9999: %s fails with %d because %s says so", what.c_str(), injection.code, VARIABLE)};
    default: break;
    }
    return {};
}

void hold(const Injection &injection) {
    if (injection.kind == Injection::Kind::Hold) {
        std::this_thread::sleep_for(std::chrono::duration<double>(injection.factor));
    }
}

void slow_down(const Injection &injection, Clock::time_point start, const Cancelled &cancelled) {
    if (injection.kind == Kind::Slow) {
        const std::chrono::duration<double> extra = (Clock::now() - start) * (injection.factor - 1);
        pause(std::chrono::duration_cast<std::chrono::nanoseconds>(extra), cancelled);
    }
}

} // namespace mock
