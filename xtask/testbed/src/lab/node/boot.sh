#!/bin/sh
# Process 1 of a lab node until its root file system is mounted.
export PATH=/usr/bin

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
modprobe -a virtio_pci virtio_blk virtio_net
until [ -b /dev/vda ]; do sleep 0.1; done
mount -t ext4 -o noatime /dev/vda /root || exec poweroff -f
umount /dev /sys /proc
exec switch_root /root /usr/sbin/init
