#include "settings.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>

namespace mock {
namespace {

std::atomic<int> determinism{0}; // by HcclSetConfig

long long environment_number(const char *name, long long standard, long long low, long long high) {
    const char *text = environment(name);
    long long value = standard;
    if (text != nullptr && !parse_number(text, low, high, &value)) {
        fault(HCCL_E_PARA, "EI0001: environment variable %s [%s] is not a number from %lld to %lld", name, text, low,
              high);
    }
    return value;
}

// Of the forms 17 and 0.25; a negative number for anything else.
double decimal(const std::string &text) {
    const size_t point = std::min(text.find('.'), text.size());
    const std::string whole = text.substr(0, point);
    const std::string part = point < text.size() ? text.substr(point + 1) : "0";
    const auto digits = [](const std::string &number) {
        return !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
    };
    constexpr size_t LONGEST = 10;
    const bool valid = digits(whole) && digits(part) && part.size() <= 2 && whole.size() <= LONGEST;
    return valid ? std::strtod(text.c_str(), nullptr) : -1;
}

bool has_long_limits() { return family() != Family::Ascend910A && family() != Family::Ascend310P; }

std::chrono::seconds environment_execution() {
    const char *text = environment("HCCL_EXEC_TIMEOUT");
    if (text == nullptr) {
        return Settings().execution_timeout;
    }
    const std::chrono::seconds seconds = execution_limit(decimal(text));
    if (seconds.count() < 0) {
        fault(HCCL_E_PARA,
              "EI0001: environment variable HCCL_EXEC_TIMEOUT [%s] is not a number %s, with at most two decimal "
              "places",
              text, has_long_limits() ? "from 0 to 2147483647" : "above 0 and up to 17340");
    }
    return seconds;
}

} // namespace

int process_determinism() {
    if (family() == Family::Ascend950) {
        return 1;
    }
    const char *deterministic = environment("HCCL_DETERMINISTIC");
    if (deterministic == nullptr) {
        return determinism;
    }
    std::string text = deterministic;
    for (char &letter : text) {
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    if (text != "strict" && text != "true" && text != "false") {
        fault(HCCL_E_PARA, "EI0001: environment variable HCCL_DETERMINISTIC [%s] is not false, true or strict",
              deterministic);
    }
    if (text == "strict" && !has_long_limits()) {
        fault(HCCL_E_NOT_SUPPORT,
              "EI0001: environment variable HCCL_DETERMINISTIC [strict] is not supported by this processor");
    }
    return text == "strict" ? 2 : text == "true" ? 1 : 0;
}

// Source: hcomm, src/legacy/ascend910: platform/common/externalinput.cc:1689, framework/communicator/impl/
// hccl_communicator_host.cc:4173, 7529 and 9868; runtime, src/runtime/core/src/stream/stream.cc:4303.
bool runs_on_ai_cpus(bool in_group) {
    if (family() != Family::Ascend910B && family() != Family::Ascend910C) {
        return false;
    }
    const char *text = environment("HCCL_OP_EXPANSION_MODE");
    const std::string mode = text != nullptr ? text : "";
    const bool asked = mode == "AI_CPU" || mode == "AICPU_CacheDisable";
    if (!asked && !mode.empty() && mode != "AIV" && mode != "HOST" && mode != "HOST_TS") {
        fault(HCCL_E_PARA, "EI0001: environment variable HCCL_OP_EXPANSION_MODE [%s] is none of AI_CPU, AIV and HOST",
              text);
    }
    const bool standard = family() == Family::Ascend910C && mode != "HOST";
    return standard || in_group || asked;
}

std::chrono::seconds execution_limit(double seconds) {
    constexpr double LONGEST = 2147483647;
    constexpr double LONGEST_OLD = 17340;
    constexpr int64_t STEP = 68;
    const std::chrono::seconds invalid(-1);
    if (has_long_limits()) {
        return seconds < 0 || seconds > LONGEST ? invalid
                                                : std::chrono::seconds(static_cast<int64_t>(std::ceil(seconds)));
    }
    if (seconds <= 0 || seconds > LONGEST_OLD) {
        return invalid;
    }
    return std::chrono::seconds(std::max<int64_t>(static_cast<int64_t>(seconds) / STEP, 1) * STEP);
}

void set_process_determinism(int32_t value) {
    if (family() == Family::Ascend950) {
        warn_once("HcclSetConfig has no effect: this processor computes deterministically");
        return;
    }
    if (environment("HCCL_DETERMINISTIC") != nullptr) {
        warn_once("HCCL_DETERMINISTIC is set in the environment, so HcclSetConfig has no effect");
        return;
    }
    if (value < 0 || value > 2) {
        fault(HCCL_E_PARA, "EI0003: HCCL_DETERMINISTIC is %d: it must be 0, 1 or 2", value);
    }
    if (value == 2 && family() != Family::Ascend910B) {
        fault(HCCL_E_NOT_SUPPORT, "EI0003: HCCL_DETERMINISTIC 2 (strict) is set by this call on the A2 only");
    }
    determinism = value;
}

Settings environment_settings() {
    Settings settings;
    const long long connect = environment_number("HCCL_CONNECT_TIMEOUT", 120, 1, 7200);
    settings.connect_timeout = std::chrono::seconds(connect);
    settings.execution_timeout = environment_execution();
    if (settings.execution_timeout.count() != 0 && settings.connect_timeout >= settings.execution_timeout) {
        warn_once("HCCL_CONNECT_TIMEOUT should be smaller than HCCL_EXEC_TIMEOUT");
    }
    settings.buffer_mb = static_cast<uint32_t>(environment_number("HCCL_BUFFSIZE", 200, 1, 1 << 20));
    process_determinism();  // refuses a wrong HCCL_DETERMINISTIC
    runs_on_ai_cpus(false); // and a wrong HCCL_OP_EXPANSION_MODE
    return settings;
}

} // namespace mock
