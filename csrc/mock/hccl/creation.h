// The ways in which a communicator comes to be.

#ifndef ASCEND_MOCK_HCCL_CREATION_H
#define ASCEND_MOCK_HCCL_CREATION_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm.h"

namespace mock {

// From a rank table: every rank for itself, without waiting for the others. `config_call` is set for the call with a
// configuration, which reports a table that cannot be loaded by another code. The origin is Table or Older.
std::shared_ptr<Comm> create_from_table(const char *path, uint32_t rank, Origin origin, Settings settings,
                                        bool config_call);

// The same from the content of a rank table, for the older layer.
std::shared_ptr<Comm> create_from_table_text(const std::string &content, uint32_t rank, Settings settings);

// From root info: waits until all ranks have come.
void make_root_info(HcclRootInfo *info);
std::shared_ptr<Comm> create_from_root_info(const HcclRootInfo &info, uint32_t size, uint32_t rank, Settings settings);

// Work on a device.
struct Job {
    int device;
    std::function<void()> run;
};
// Each on a thread of its own, as the caller's device must stay as it is. When all have ended, `refused` hears of each failure: the
// number of the job, and why.
void run_jobs(const std::vector<Job> &jobs, const std::function<void(size_t, const std::string &)> &refused);

// One communicator per device of this process; a thread for each. Entry i of `comms` is rank i's.
void create_for_devices(const std::vector<int32_t> &devices, HcclComm *comms);

// Part of a world. `ranks` are its ranks in the parent.
std::shared_ptr<Comm> create_sub_comm(Comm &parent, const std::vector<uint32_t> &ranks, uint64_t id, uint32_t rank,
                                      Settings settings);

// Device of the calling thread, or a failure.
int require_device();
// For ASCEND_MOCK_DEVIATE: refuses a world in a process that has had a failed one.
void check_rejoin();

} // namespace mock

#endif
