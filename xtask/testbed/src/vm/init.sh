#!/bin/sh
# Process 1 of a guest. The job (/job) writes to the host through the second serial port; kernel
# messages and unexpected output go to the first. The last line is a record that the host waits
# for: a guest that powers off without it has failed.
export PATH=/usr/bin HOME=/root TERM=linux

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /run /tmp /root /var/lib
mount -t devpts devpts /dev/pts
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null

for word in $(cat /proc/cmdline); do
	case $word in
	guest.name=*) hostname "${word#guest.name=}" ;;
	guest.columns=*) columns=${word#guest.columns=} ;;
	guest.rows=*) rows=${word#guest.rows=} ;;
	esac
done

ip link set lo up
modprobe -a ip_vs ip_vs_wrr nf_conntrack nf_tables dummy veth 2>/dev/ttyS0

# Kept open: the kernel resets the terminal size of a closed port.
exec 3<>/dev/ttyS1
if [ -e /interactive ]; then
	stty -F /dev/ttyS1 sane cols "${columns:-80}" rows "${rows:-24}"
	setsid -c sh /job </dev/ttyS1 >/dev/ttyS1 2>&1 3>&-
else
	stty -F /dev/ttyS1 raw -echo
	sh /job </dev/null >/dev/ttyS1 2>&1 3>&-
fi
status=$?
printf '\n\036{"event":"exit","status":%d}\n' "$status" >/dev/ttyS1
# Drain the serial port before power-off.
stty -F /dev/ttyS1 raw -echo
sleep 0.1
poweroff -f
