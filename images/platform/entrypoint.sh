#!/bin/sh
# The first process of the container. Docker mounts the control groups read-only for containers without --privileged. Control groups with
# processes in them pass on no controllers (cgroup v2), so what runs here moves into a group of its own before the platform makes those of its sandboxes.
set -e
awk '$5 ~ "^/sys/fs/cgroup" { print $5 }' /proc/self/mountinfo | while read -r place; do mount -o remount,bind,rw "$place"; done
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  mkdir -p /sys/fs/cgroup/init
  while read -r pid; do echo "$pid" > /sys/fs/cgroup/init/cgroup.procs || true; done < /sys/fs/cgroup/cgroup.procs
fi
[ -e /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229
exec tini -- node scripts/bootstrap.mjs platform --host 0.0.0.0 "$@"
