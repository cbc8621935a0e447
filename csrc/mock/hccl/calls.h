// How two members of a communicator on different servers come to a connection: one listens, the other calls, and each
// proves that it belongs to the job before anything else is said.

#ifndef ASCEND_MOCK_HCCL_CALLS_H
#define ASCEND_MOCK_HCCL_CALLS_H

#include <functional>
#include <memory>
#include <string>

#include "common.h"

namespace mock {

class Comm;
struct Network;

class Listener {
public:
    virtual ~Listener() = default;
    virtual uint16_t port() const = 0;
};

// The listener of this process at that address, made if there is none; callers of this job are answered from now on.
// Port 0 is one that is free. Fails with EI0019 if the port is in use.
std::shared_ptr<Listener> listen_at(const std::string &host, uint16_t port, const std::shared_ptr<Network> &job);

// Communicators that can be called. The end of a communicator is one of `hide_from_calls`.
void answer_calls(const std::shared_ptr<Comm> &comm);
void hide_from_calls(const Comm &comm);

// Calls a peer and attaches the connection. False, with the reason, if it does not answer yet; throws if it refuses.
bool call_peer(Comm &comm, uint32_t peer, std::string *why);

// Callers that name this and have proved themselves are handed over, on the network thread, until `stop_receiving`.
void receive_callers(const std::string &name, std::function<void(Descriptor)> take);
void stop_receiving(const std::string &name);
// Makes such a call. False, with the reason, if nobody answers now; throws if the name is not, or no longer, received.
bool call_by_name(const std::string &key, const std::string &host, uint16_t port, const std::string &name,
                  Descriptor *socket, std::string *why);

} // namespace mock

#endif
