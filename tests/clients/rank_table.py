"""Writes a rank table of SERVERS servers with LOCALS devices each: rank_table.py SERVERS LOCALS FILE. For one machine that
plays them all: addresses are of the ranges kept for documentation."""

import json
import sys

servers, locals_ = int(sys.argv[1]), int(sys.argv[2])


def device(server, local):
    rank = server * locals_ + local
    return {"device_id": str(local), "device_ip": f"198.51.100.{rank + 1}", "rank_id": str(rank)}


table = {
    "version": "1.0",
    "server_count": str(servers),
    "server_list": [
        {"server_id": f"192.0.2.{server + 1}", "device": [device(server, local) for local in range(locals_)]}
        for server in range(servers)
    ],
    "status": "completed",
}
with open(sys.argv[3], "w", encoding="utf-8") as file:
    json.dump(table, file, indent=1)
