# Tries whether SOURCE can be shown with the owners that a user namespace makes of those on disk, also below an overlay. Run in a mount
# namespace of its own: perl id-mounts.pl UNSHARE MOUNT SOURCE PLACE ends with status 0 if so, and 3 if not.
use strict;
use warnings;

require(__FILE__ =~ s{[^/]*$}{../owner/$_}r) for 'user-namespace.pl', 'mapped-mount.pl';

my ($sys_unshare, $sys_mount, $source, $place) = @ARGV;
my $nobody = 2_000_000_000;
my $userns = user_namespace($sys_unshare, "0 $nobody 65536\n") or exit 3;

my ($tmpfs, $little) = ('tmpfs', 'size=64k');
syscall($sys_mount, $tmpfs, $place, $tmpfs, 0, $little) == 0 or exit 3;
mkdir "$place/$_" for qw(upper work root);
my $target = "$place/lower";
if (-d $source) { mkdir $target } else { open my $file, '>', $target }
mount_mapped($source, $target, 0, fileno $userns) or exit 3;
my ($overlay, $layers) = ('overlay', "lowerdir=$target,upperdir=$place/upper,workdir=$place/work");
exit 0 if !-d $source;
my $root = "$place/root";
exit(syscall($sys_mount, $overlay, $root, $overlay, 0, $layers) == 0 ? 0 : 3);
