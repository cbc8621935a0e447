#include "order.h"

#include <mutex>
#include <set>

#include "stream.h"

namespace mock {
namespace {

struct Orders {
    std::mutex mutex;
    std::map<int, Before> waited; // per stream: what its next task comes after, apart from its own queue
    Before seen;                  // by the host: by any of its threads, as they may tell each other
    std::set<int> ended;          // streams that were drained and destroyed
};

Orders &orders() {
    static Orders &object = *new Orders;
    return object;
}

void join(Before *known, const Before &more, const std::set<int> &ended) {
    for (const auto &entry : more) {
        if (ended.count(entry.first) == 0) {
            uint64_t &position = (*known)[entry.first];
            position = position > entry.second ? position : entry.second;
        }
    }
}

bool covers(const Before &known, const Place &place) {
    const auto found = known.find(place.stream);
    return found != known.end() && found->second >= place.position;
}

} // namespace

Before order_through(int stream, uint64_t position) {
    Orders &all = orders();
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.waited.find(stream);
    Before before = found != all.waited.end() ? found->second : Before{};
    before[stream] = position;
    return before;
}

void order_wait(int stream, const Before &before) {
    Orders &all = orders();
    std::lock_guard<std::mutex> lock(all.mutex);
    join(&all.waited[stream], before, all.ended);
}

void order_seen(const Before &before) {
    Orders &all = orders();
    std::lock_guard<std::mutex> lock(all.mutex);
    join(&all.seen, before, all.ended);
}

void order_end(int stream) {
    Orders &all = orders();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.ended.insert(stream);
    all.waited.erase(stream);
    all.seen.erase(stream);
    for (auto &entry : all.waited) {
        entry.second.erase(stream);
    }
}

bool ordered_after(aclrtStream handle, const Place &earlier) {
    int stream = 0;
    try {
        stream = find_stream(handle)->number();
    } catch (const std::exception &) {
        return true; // no stream: whoever queues there learns it
    }
    Orders &all = orders();
    std::lock_guard<std::mutex> lock(all.mutex);
    if (earlier.stream < 0 || earlier.stream == stream || all.ended.count(earlier.stream) != 0 ||
        covers(all.seen, earlier)) {
        return true;
    }
    const auto waited = all.waited.find(stream);
    return waited != all.waited.end() && covers(waited->second, earlier);
}

} // namespace mock
