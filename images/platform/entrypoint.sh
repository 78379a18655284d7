#!/bin/sh
# The first process of the container. Control groups with processes in them pass on no controllers (cgroup v2), so what runs here
# moves into a group of its own before the platform makes those of its sandboxes.
set -e
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  mkdir -p /sys/fs/cgroup/init
  while read -r pid; do echo "$pid" > /sys/fs/cgroup/init/cgroup.procs || true; done < /sys/fs/cgroup/cgroup.procs
fi
exec tini -- node scripts/bootstrap.mjs platform --host 0.0.0.0 "$@"
