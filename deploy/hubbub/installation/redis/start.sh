#!/bin/sh
# Starts Redis, after a look at what the last run left: one that was killed while it wrote may
# otherwise bring back half a transaction (docs/decisions/0222-commits-and-tags.md).
set -eu
configuration=${1:-/etc/redis/redis.conf}
data=$(sed -n 's/^dir //p' "$configuration" | tr -d '"')
for log in "${data:-.}/appendonlydir/appendonly.aof.manifest" "${data:-.}/appendonly.aof"; do
  if [ -f "$log" ]; then
    echo y | redis-check-aof --fix "$log"
  fi
done
exec redis-server "$configuration"
