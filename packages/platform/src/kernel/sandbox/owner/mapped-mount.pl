# A copy of a mount whose files show other owners: those that the mappings of a user namespace make of the ones on disk. Loaded by owner.pl, and
# run by itself: perl mapped-mount.pl SOURCE TARGET FILE_OF_USERNS ends with status 3 where there can be no such copy.
use strict;
use warnings;

# Mounts such a copy of SOURCE on TARGET, with ATTRIBUTES (MOUNT_ATTR_*) and by the namespace open as USERNS. False where the kernel (before
# Linux 5.12) or the file system cannot; nothing has changed then.
sub mount_mapped {
  my ($source, $target, $attributes, $userns) = @_;
  # Numbers of system calls as young as these are the same on every architecture.
  my ($OPEN_TREE, $MOVE_MOUNT, $MOUNT_SETATTR) = (428, 429, 442);
  my ($AT_FDCWD, $AT_EMPTY_PATH, $CLONE, $CLOEXEC, $IDMAP, $FROM_EMPTY_PATH) = (-100, 0x1000, 1, 0x80000, 0x100000, 4);
  my $itself = '';
  my $copy = syscall($OPEN_TREE, $AT_FDCWD, $source, $CLONE | $CLOEXEC);
  return 0 if $copy < 0;
  # struct mount_attr: attributes to set and to clear, propagation, namespace.
  my $change = pack 'Q4', $attributes | $IDMAP, 0, 0, $userns;
  my $mounted = syscall($MOUNT_SETATTR, $copy, $itself, $AT_EMPTY_PATH, $change, length $change) == 0
    && syscall($MOVE_MOUNT, $copy, $itself, $AT_FDCWD, $target, $FROM_EMPTY_PATH) == 0;
  open my $closed_with_this, '<&=', $copy;
  return $mounted;
}

if (!caller) {
  my ($source, $target, $file) = @ARGV;
  open my $userns, '<', $file or die "$file: $!\n";
  exit(mount_mapped($source, $target, 0, fileno $userns) ? 0 : 3);
}
1;
