// Rank tables as HCCL reads them: versions 1.0 and 1.2, the oldest form, and 2.0 on the Ascend 950.

#ifndef ASCEND_MOCK_HCCL_TABLE_H
#define ASCEND_MOCK_HCCL_TABLE_H

#include <string>
#include <vector>

#include "failure.h"

namespace mock {

struct TableRank {
    uint32_t rank = 0;
    int device = 0;
    uint32_t server = 0; // place of its server in the list
};

struct RankTable {
    std::string content; // of the file
    std::vector<std::string> server_ids;
    std::vector<std::string> addresses; // of the servers: host_ip, or a server_id that is one; empty without
    std::vector<TableRank> ranks;       // sorted: entry i is rank i
};

// The file could not be taken as a rank table at all, which one of the two ways of creation reports by a code of its own.
class LoadFault : public Fault {
public:
    using Fault::Fault;
};

// Reads the file and checks it for this rank. A table whose status is not "completed" is read again every second.
RankTable load_table(const char *path, uint32_t rank);
// The same from the content of a file, which must be completed.
RankTable read_table(const std::string &content, uint32_t rank);

} // namespace mock

#endif
