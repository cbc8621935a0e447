// The live objects behind handles of one kind. A handle that is not in it is refused instead of followed.

#ifndef ASCEND_MOCK_ACL_REGISTRY_H
#define ASCEND_MOCK_ACL_REGISTRY_H

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace mock {

template <class Object>
class Registry {
public:
    void *add(std::shared_ptr<Object> object) {
        std::lock_guard<std::mutex> lock(mutex_);
        void *handle = object.get();
        objects_.emplace(handle, std::move(object));
        return handle;
    }
    std::shared_ptr<Object> find(const void *handle) const {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto found = objects_.find(handle);
        return found == objects_.end() ? nullptr : found->second;
    }
    std::shared_ptr<Object> remove(const void *handle) {
        std::lock_guard<std::mutex> lock(mutex_);
        const auto found = objects_.find(handle);
        if (found == objects_.end()) {
            return nullptr;
        }
        std::shared_ptr<Object> object = std::move(found->second);
        objects_.erase(found);
        return object;
    }
    std::vector<std::shared_ptr<Object>> all() const {
        std::lock_guard<std::mutex> lock(mutex_);
        std::vector<std::shared_ptr<Object>> objects;
        objects.reserve(objects_.size());
        for (const auto &entry : objects_) {
            objects.push_back(entry.second);
        }
        return objects;
    }

private:
    mutable std::mutex mutex_;
    std::unordered_map<const void *, std::shared_ptr<Object>> objects_;
};

} // namespace mock

#endif
