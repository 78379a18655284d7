# User namespaces that are there for the mappings alone; loaded by the scripts beside it.
use strict;
use warnings;

# An open file of a new user namespace with MAPPING (user_namespaces(7)) for both kinds of ids; undefined where there can be none.
sub user_namespace {
  my ($sys_unshare, $mapping) = @_;
  my $CLONE_NEWUSER = 0x10000000;
  pipe my $made_r, my $made_w or return;
  pipe my $hold_r, my $hold_w or return;
  my $holder = fork // return;
  if (!$holder) {
    close $hold_w;
    syswrite $made_w, syscall($sys_unshare, $CLONE_NEWUSER) == 0 ? 'y' : 'n';
    sysread $hold_r, my $bye, 1;
    exit 0;
  }
  close $made_w;
  my ($answer, $userns) = ('');
  sysread $made_r, $answer, 1;
  my $mapped = $answer eq 'y';
  for my $kind ('uid', 'gid') {
    open my $map, '>', "/proc/$holder/${kind}_map" or $mapped = 0;
    $mapped &&= syswrite $map, $mapping;
  }
  open $userns, '<', "/proc/$holder/ns/user" if $mapped;
  close $hold_w;
  waitpid $holder, 0;
  return $userns;
}

1;
