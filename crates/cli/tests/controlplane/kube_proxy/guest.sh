# Runs in a guest: starts kube-proxy in ipvs mode, and prints the IPVS table of each new generation.
# Usage: guest.sh PROGRAM LAST. The port of the Service "sentinel" is the generation.
program=$1
last=$2
modprobe virtio_net
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
ip link add node0 type dummy
ip link set node0 up
ip address add 192.168.7.1/24 dev node0
ip address add fd00:7::1/64 dev node0 nodad
"$program" kube-proxy --hostname-override=n0 --proxy-mode=ipvs --conntrack-max-per-core=0 \
    --nodeport-addresses=192.168.7.0/24,fd00:7::/64 --kubeconfig=/root/kubeconfig >/tmp/log 2>&1 &
proxy=$!

# The generation in lines such as `-A -t 10.96.255.254:1003 -s rr`. All four are there when both families have read the
# Service and its slices. Deletions come last: while an old generation is there, a sync runs.
generation() {
    sed -n -e 's/^-[Aa] -t 10.96.255.254:\([0-9]*\) .*/\1/p' -e 's/^-[Aa] -t \[fd00:10:96::fffe\]:\([0-9]*\) .*/\1/p' \
        /tmp/table | uniq -c | sed -n 's/^ *4 //p'
}

# Fails if the table changes within some seconds: on a slow machine a sync can pause between two of its changes.
is_steady() {
    for _ in 1 2 3; do
        sleep 1
        ipvsadm -Sn | sort >/tmp/again
        cmp -s /tmp/table /tmp/again || return 1
    done
}

seen=0
idle=0
while [ "$idle" -lt 300 ] && kill -0 "$proxy"; do
    ipvsadm -Sn | sort >/tmp/table
    now=$(generation)
    if [ -n "$now" ] && [ "$now" != "$seen" ]; then
        if is_steady; then
            echo "table $now"
            cat /tmp/table
            echo "end $now"
            [ "$now" = "$last" ] && exit 0
            seen=$now
            idle=0
        fi
    else
        sleep 0.3
        idle=$((idle + 1))
    fi
done
echo "kube-proxy shows no new generation; its log and the table:"
tail -n 30 /tmp/log
cat /tmp/table
exit 1
