# Runs a command on a pseudo-terminal of its own. Standard input and output carry the terminal's bytes; each line `COLUMNS ROWS`
# on descriptor 3 resizes it, and the kernel tells the command. Ends with the command's exit status.
#   perl exec-tty.pl COLUMNS ROWS COMMAND...
use strict;
use warnings;

# The same on every architecture but alpha, mips, powerpc and sparc, which this platform does not offer.
my ($TIOCSPTLCK, $TIOCGPTN, $TIOCSWINSZ) = (0x40045431, 0x80045430, 0x5414);
my ($columns, $rows, @command) = @ARGV;
$SIG{PIPE} = 'IGNORE';

sub size { my ($fd, $c, $r) = @_; my $packed = pack 'S4', $r, $c, 0, 0; ioctl $fd, $TIOCSWINSZ, $packed }

open my $master, '+<', '/dev/ptmx' or die "ptmx: $!\n";
my $zero = pack 'i', 0;
ioctl $master, $TIOCSPTLCK, $zero or die "unlock: $!\n";
my $number = pack 'i', 0;
ioctl $master, $TIOCGPTN, $number or die "number: $!\n";
my $name = '/dev/pts/' . unpack 'i', $number;
size($master, $columns, $rows);
open my $control, '<&=', 3 or die "control: $!\n";

my $pid = fork // die "fork: $!\n";
if (!$pid) {
  close $control;
  close $master;
  open STDIN, '+<', $name or die "$name: $!\n";
  open STDOUT, '>&', \*STDIN;
  open STDERR, '>&', \*STDIN;
  # A session whose controlling terminal is this one, so that a resize reaches the command as SIGWINCH.
  exec 'setsid', '--ctty', '--wait', @command or exit 127;
}

my ($in, $out, $ctl) = (fileno STDIN, fileno $master, fileno $control);
my $want = '';
vec($want, $_, 1) = 1 for $in, $out, $ctl;
my $pending = '';
while (1) {
  my $ready = $want;
  next if select($ready, undef, undef, undef) < 0;
  if (vec $ready, $out, 1) {
    # The terminal ends with an error once its last user has gone.
    last unless sysread $master, my $bytes, 65536;
    for (my $at = 0; $at < length $bytes; ) { $at += syswrite(STDOUT, $bytes, 65536, $at) // last }
  }
  # The size before what is typed: a command may ask for it at once.
  if (vec $ready, $ctl, 1) {
    if (sysread $control, my $bytes, 4096) {
      $pending .= $bytes;
      size($master, $1, $2) while $pending =~ s/^(\d+) (\d+)\n//;
    } else {
      vec($want, $ctl, 1) = 0;
    }
  }
  if (vec $ready, $in, 1) {
    if (sysread STDIN, my $bytes, 4096) {
      for (my $at = 0; $at < length $bytes; ) { $at += syswrite($master, $bytes, 4096, $at) // last }
    } else {
      # The end of input is typed, as at a terminal.
      syswrite $master, "\x04";
      vec($want, $in, 1) = 0;
    }
  }
}
waitpid $pid, 0;
exit($? & 127 ? 128 + ($? & 127) : $? >> 8);
