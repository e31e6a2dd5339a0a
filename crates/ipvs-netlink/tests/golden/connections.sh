#!/bin/sh
# Makes connections through virtual servers on a real kernel and prints the kernel's table of them, for tests/golden:
#
#   cargo xtask vm run --kernel 6.12 --add crates/ipvs-netlink/tests/golden/connections.sh \
#       -- sh connections.sh >crates/ipvs-netlink/tests/golden/connections-6.12.txt
#
# TCP, UDP, SCTP, IPv4, IPv6, session affinity, the persistence engine sip, and a firewall mark.
set -e
exec 3>&1 >/tmp/said 2>&1
trap '[ $? = 0 ] || cat /tmp/said >&3' EXIT

modprobe -a sctp ip_vs_rr ip_vs_pe_sip
ip link add eth7 type dummy && ip link set eth7 up
ip addr add 192.0.2.1/24 dev eth7 && ip addr add 2001:db8::1/64 dev eth7 nodad
ip route add local 10.96.0.0/16 dev lo src 192.0.2.1
ip -6 route add local 2001:db8:1::/64 dev lo src 2001:db8::1
nft -f - <<'END'
table inet marks {
  chain out { type route hook output priority mangle; tcp dport 81 meta mark set 7; }
}
END

virtual() { # FLAG VIP REAL OPTIONS...
	flag=$1 vip=$2 real=$3
	shift 3
	ipvsadm -A "$flag" "$vip" -s rr "$@"
	ipvsadm -a "$flag" "$vip" -r "$real" -m
}

# The client waits for the end of a connection that the server holds open.
ask() { guest load --connections 1 --patience 30000 --target "$@" & }

for at in 192.0.2.1: '[2001:db8::1]:'; do
	guest serve --hold --name x --listen "${at}8080" &
	guest serve --hold --name x --listen "${at}81" &
	guest serve --sctp --hold --name x --listen "${at}1320" &
done
sleep 1

for pair in 10.96.0.,192.0.2.1 '[2001:db8:1::,[2001:db8::1]'; do
	net=${pair%,*} server=${pair#*,}
	case $net in *:*) close=] six=-6 ;; *) close= six= ;; esac
	virtual -t "${net}10$close:80" "$server:8080"
	virtual -t "${net}11$close:80" "$server:8080" -p 600
	virtual -u "${net}12$close:53" "$server:5353"
	virtual --sctp-service "${net}13$close:132" "$server:1320"
	ipvsadm -A -f 7 $six -s rr -p 600
	ipvsadm -a -f 7 $six -r "$server:0" -m
	ask "${net}10$close:80"
	ask "${net}11$close:80"
	ask "${net}12$close:53" --udp
	ask "${net}13$close:132" --sctp
	ask "${net}15$close:81"
done
virtual -u 10.96.0.14:5060 192.0.2.1:5060 -p 600 --pe sip
printf 'INVITE sip:bob@example.org SIP/2.0\r\nCall-ID: 7@example.org\r\n\r\n' >/tmp/invite
bash -c 'cat /tmp/invite >/dev/udp/10.96.0.14/5060'
sleep 2

echo "# Linux $(uname -r)" >&3
cat /proc/net/ip_vs_conn >&3
