// The live streams of a process: by handle, device and context.

#include <algorithm>
#include <map>

#include "device.h"
#include "registry.h"
#include "stream.h"

namespace mock {
namespace {

struct Streams {
    Registry<Stream> registry;
    std::mutex mutex;
    std::map<const Context *, std::shared_ptr<Stream>> standard; // the stream that NULL means
    std::atomic<int> count{0};
};

Streams &streams() {
    static Streams &object = *new Streams;
    return object;
}

std::shared_ptr<Stream> default_stream(Context &context) {
    Streams &all = streams();
    std::lock_guard<std::mutex> lock(all.mutex);
    std::shared_ptr<Stream> &stream = all.standard[&context];
    if (stream == nullptr) {
        stream = std::make_shared<Stream>(context, all.count++);
        all.registry.add(stream);
    }
    return stream;
}

template <class Wanted>
std::vector<std::shared_ptr<Stream>> streams_with(Wanted wanted) {
    std::vector<std::shared_ptr<Stream>> found = streams().registry.all();
    found.erase(std::remove_if(found.begin(), found.end(), [&](const auto &stream) { return !wanted(*stream); }),
                found.end());
    return found;
}

} // namespace

std::shared_ptr<Stream> find_stream(aclrtStream handle) {
    if (handle == nullptr) {
        return default_stream(require_context());
    }
    std::shared_ptr<Stream> stream = streams().registry.find(handle);
    if (stream == nullptr) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not a live stream");
    }
    return stream;
}

std::shared_ptr<Stream> usable_stream(aclrtStream handle) {
    std::shared_ptr<Stream> stream = find_stream(handle);
    const Context &context = require_context();
    if (&stream->context() != &context) {
        fail(ACL_ERROR_RT_STREAM_CONTEXT,
             "stream %d belongs to another context (of device %d) than this thread's (of device %d)", stream->number(),
             stream->device(), context.device());
    }
    return stream;
}

namespace {

size_t most_streams() {
    switch (family()) {
    case Family::Ascend910A: return 2048;
    case Family::Ascend310P: return 1024;
    default: return 1984;
    }
}

// Every context has its default stream from the start, used or not.
size_t streams_taken(int device) {
    const auto made = streams_of(device);
    std::lock_guard<std::mutex> lock(streams().mutex);
    const auto standard = std::count_if(made.begin(), made.end(), [](const auto &stream) {
        const auto found = streams().standard.find(&stream->context());
        return found != streams().standard.end() && found->second == stream;
    });
    return made.size() - static_cast<size_t>(standard) + contexts_of(device).size();
}

} // namespace

aclrtStream make_stream(uint32_t priority, uint32_t flags) {
    Context &context = require_context();
    const size_t taken = streams_taken(context.device());
    if (taken >= most_streams()) {
        fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, "device %d has %zu streams, default streams included: that is the most",
             context.device(), taken);
    }
    return streams().registry.add(std::make_shared<Stream>(context, streams().count++, priority, flags));
}

std::shared_ptr<Stream> take_stream(aclrtStream handle) {
    usable_stream(handle)->close();
    std::shared_ptr<Stream> stream = streams().registry.remove(handle);
    if (stream == nullptr) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "another thread destroys the stream");
    }
    return stream;
}

std::vector<std::shared_ptr<Stream>> streams_of(int device) {
    return streams_with([&](const Stream &stream) { return stream.device() == device; });
}

std::vector<std::shared_ptr<Stream>> streams_of(const Context &context) {
    return streams_with([&](const Stream &stream) { return &stream.context() == &context; });
}

void end_streams(const Context &context) {
    {
        std::lock_guard<std::mutex> lock(streams().mutex);
        streams().standard.erase(&context);
    }
    for (const auto &stream : streams_of(context)) {
        stream->close();
        streams().registry.remove(stream.get());
        if (context.failed()) {
            stream->abort();
        }
        stream->finish();
    }
}

bool stream_is_usable(aclrtStream handle) {
    const std::shared_ptr<Stream> stream = streams().registry.find(handle);
    return stream != nullptr && &stream->context() == current_context();
}

aclError enqueue(aclrtStream handle, std::string name, Work work, Attempt attempt, Place *place) {
    try {
        const std::shared_ptr<Stream> stream = usable_stream(handle);
        const uint64_t position = stream->push({std::move(name), std::move(work), {}, std::move(attempt)});
        if (place != nullptr) {
            *place = {stream->number(), position};
        }
        return ACL_SUCCESS;
    } catch (const Failure &failure) {
        set_recent_message(failure.what());
        return failure.code();
    } catch (const std::exception &error) {
        set_recent_message(error.what());
        return ACL_ERROR_INTERNAL_ERROR;
    }
}

} // namespace mock
