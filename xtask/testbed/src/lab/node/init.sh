#!/usr/bin/busybox sh
# Process 1 of a lab node: starts containerd and kubelet.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin HOME=/root

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
mount --make-rshared /

# The node's own processes share the processor with its pods as one group, as they do under systemd. In the root group
# each of their threads weighs more than all pods. 40 is about the weight that the kubelet gives to pods.
mkdir /sys/fs/cgroup/system
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
echo 40 >/sys/fs/cgroup/system/cpu.weight
echo $$ >/sys/fs/cgroup/system/cgroup.procs

for word in $(cat /proc/cmdline); do
	case $word in
	lab.node=*) number=${word#lab.node=} ;;
	lab.address=*) address=${word#lab.address=} ;;
	esac
done
node=n$number
hostname "$node"
printf '%032d\n' "$number" >/etc/machine-id
printf '127.0.0.1 localhost\n%s %s\n' "$address" "$node" >/etc/hosts

modprobe -a overlay bridge br_netfilter veth dummy nf_tables nf_conntrack ip_vs ip_vs_wrr
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
ip link set lo up
ip address add "$address/24" dev eth0
ip link set eth0 up
ip route add default via 192.0.2.1

# The second disk: keys, and the files of containerd.
mkdir -p /run/lab
mount -t ext4 -o noatime /dev/vdb /run/lab

telnetd -b "$address" -l /bin/sh
nc -ll -p 24 -e /bin/sh &
containerd --config /etc/containerd.toml >/var/log/containerd.log 2>&1 &
until [ -S /run/containerd/containerd.sock ]; do sleep 0.1; done

echo "lab: starting the kubelet of $node"
while true; do
	# Container metrics are not used, and cost a fifth of an emulated processor.
	kubelet --housekeeping-interval=60s --config=/etc/kubelet.yaml --kubeconfig="/run/lab/keys/node-$node.kubeconfig" \
		--node-ip="$address" --hostname-override="$node" \
		--node-labels="topology.kubernetes.io/zone=z$number" >>/var/log/kubelet.log 2>&1
	echo "lab: the kubelet ended ($?)"
	tail -n 5 /var/log/kubelet.log
	sleep 2
done
