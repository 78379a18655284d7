# Ends the containers of one platform when its server renews the lease no more. A daemon knows nothing of leases, and the server may be
# gone or stand still; so this outlives it. One for all containers, of which the one that began last is at work.
#   perl lease-guard.pl LEASE_FILE PID_FILE GROUP_DIR
# Says `ready`. GROUP_DIR is the control group above those of all containers.
use strict;
use warnings;

require(__FILE__ =~ s{[^/]*$}{../owner/owner-parts.pl}r);

my ($lease, $pid_file, $group) = @ARGV;
$SIG{PIPE} = 'IGNORE';
$SIG{HUP} = 'IGNORE';

open my $mine, '>', "$pid_file.$$" or exit 1;
print $mine $$;
close $mine or exit 1;
rename "$pid_file.$$", $pid_file or exit 1;
sub superseded { open my $file, '<', $pid_file or return 1; return (<$file> // '') ne $$ }

sub members {
  my $dir = shift;
  my @pids;
  if (open my $listed, '<', "$dir/cgroup.procs") { chomp(@pids = <$listed>) }
  opendir my $below, $dir or return @pids;
  push @pids, members("$dir/$_") for grep { !/^\./ && -d "$dir/$_" } readdir $below;
  return @pids;
}

lapsed($lease);
syswrite STDOUT, "ready\n";
close STDOUT;

# A start that was under way ends within this time, in seconds; a server that comes back has a guard of its own.
my $linger = 60;
my $idle_since = uptime();
while (1) {
  select undef, undef, undef, lease_pause();
  exit 0 if superseded() || !-e $lease;
  if (!lapsed($lease)) { $idle_since = uptime(); next }
  my @pids = grep { $_ > 1 } members($group);
  if (@pids) { kill 'KILL', @pids; $idle_since = uptime() }
  exit 0 if uptime() - $idle_since > $linger;
}
