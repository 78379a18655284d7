/**
 * What `docker run` gives the container of `npm run image`, so that the platform can make sandboxes in it, and no more. Not --privileged: that asks for
 * every capability that the kernel knows, and Docker then starts no container where the machine withholds one of them, as virtual machines
 * without SYS_RESOURCE do.
 */
export const PRIVILEGES = [
  // Mounts and namespaces; networks of sandboxes; processes of sandboxes, which have other ids.
  ...['SYS_ADMIN', 'NET_ADMIN', 'SYS_PTRACE'].map((name) => `--cap-add=${name}`),
  // The filters of Docker and of the distribution refuse those calls, and hide the parts of /proc that a sandbox's own needs.
  ...['seccomp', 'apparmor', 'systempaths'].map((name) => `--security-opt=${name}=unconfined`),
  // What runc allows each sandbox (/dev/net/tun), and FUSE.
  ...['c 10:200 rwm', 'c 10:229 rwm'].map((rule) => `--device-cgroup-rule=${rule}`),
];
