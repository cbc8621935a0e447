// A client's HcclCommConfig, of any size and version.

#ifndef ASCEND_MOCK_HCCL_CONFIG_H
#define ASCEND_MOCK_HCCL_CONFIG_H

#include "settings.h"

namespace mock {

// What a configuration is for.
enum class For { Table, RootInfo, Part };

// The settings of the environment, overruled by the client's structure. Processors before the 950 read as many bytes as it
// has, and the fields of its version.
Settings config_settings(const HcclCommConfig *config, For use);
// What the 950 leaves in the configuration of a part of a world.
void write_back(HcclCommConfig *config);

} // namespace mock

#endif
