// Sockets by which processes of one machine meet: names in the abstract namespace, so that no file is left behind, and
// the user id of the other end checked. And what sockets of every kind have in common: waits with a limit.

#ifndef ASCEND_MOCK_HCCL_SOCKET_H
#define ASCEND_MOCK_HCCL_SOCKET_H

#include <string>

#include <sys/types.h>

#include "failure.h"

namespace mock {

enum class Connect { Done, NobodyListens, OtherUser, Busy };

// A listening socket of that name; an empty descriptor if the name is in use.
Descriptor listen_on(const std::string &name);
// Connects without waiting. `holder`, if given, gets the process id of the listener.
Connect connect_to(const std::string &name, Descriptor *socket, pid_t *holder);
// The next connection of a process of the same user; empty if there is none now.
Descriptor accept_from(const Descriptor &listener, pid_t *peer);
// One whole message; with a copy of `file` unless it is -1. False if the other end is gone.
bool send_message(const Descriptor &socket, const void *data, size_t bytes, int file = -1);
// One whole message of at most `bytes` bytes. Returns its length, 0 if the other end is gone, -1 if none is there yet.
ssize_t receive_message(const Descriptor &socket, void *data, size_t bytes, Descriptor *file = nullptr);

// For a poll; 0 if the time is over.
int milliseconds_until(Clock::time_point limit);
// Waits for events of a socket of any kind, whatever signals come; false if the time is over.
bool await(const Descriptor &socket, short events, Clock::time_point limit);
// Sends or receives it all, through a socket of any kind; false if the other end is gone or the time is over. What is
// sent in one call is to be received in one: a socket of the machine keeps messages apart.
bool send_whole(const Descriptor &socket, const void *data, size_t bytes, Clock::time_point limit);
bool receive_whole(const Descriptor &socket, void *data, size_t bytes, Clock::time_point limit);

} // namespace mock

#endif
