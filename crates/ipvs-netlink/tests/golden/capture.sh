#!/bin/sh
# Runs ipvsadm on a real kernel and prints the IPVS messages that both exchange, for tests/golden/main.rs:
#
#   cargo xtask vm run --bare --kernel 6.12 --add crates/ipvs-netlink/tests/golden/capture.sh \
#       -- sh capture.sh >crates/ipvs-netlink/tests/golden/6.12.txt
#
# `$` is a command, `>` a message to the kernel, `<` one from it, with their netlink headers; `!` is a failure.
# Left out: the lookup of the family, acknowledgements, ends of dumps, and ipvsadm's first question (IPVS_CMD_GET_INFO)
# after the first command.

# strace prints every buffer as a hexadecimal dump; this joins the lines of one and takes it apart into messages.
digest='
function number(text,   i, n) {
	n = 0
	for (i = 1; i <= length(text); i++) n = n * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
	return n
}
function length_at(at) { return number(substr(hex, at + 2, 2) substr(hex, at, 2)) }
function wanted(message,   type, command) {
	type = substr(message, 9, 4)
	command = substr(message, 33, 2)
	if (type == "1000" || type == "0300") return 0
	if (type == "0200") return substr(message, 33, 8) != "00000000" && substr(message, 49, 4) != "1000"
	if (!info && (command == "0f" || command == "0e")) return 0
	return 1
}
function flush(   at, size) {
	for (at = 1; keep && at + 32 <= length(hex) + 1; at += size) {
		size = 2 * int((length_at(at) + 3) / 4) * 4
		if (wanted(substr(hex, at, size))) print sign " " substr(hex, at, size)
	}
	hex = ""
}
/^sendmsg\(/ { flush(); sign = ">"; keep = 1; next }
/^recvmsg\(/ { flush(); sign = "<"; keep = !/MSG_PEEK/; next }
/^ \* / { flush(); next }
/^ \| / {
	line = substr($0, 11, 49)
	gsub(/ /, "", line)
	hex = hex line
}
END { flush() }
'

run() {
	echo "\$ $*"
	strace -e trace=sendmsg,recvmsg -e read=3 -e write=3 -o /tmp/trace "$@" >/dev/null 2>&1 || echo "! exit $?"
	awk -v info="$info" "$digest" /tmp/trace
	info=
}

# What the commands below need: schedulers, addresses, a server with a connection or two.
modprobe -a ip_vs_rr ip_vs_sh ip_vs_mh ip_vs_pe_sip
ip link add eth7 type dummy && ip link set eth7 up && ip addr add 192.0.2.1/24 dev eth7
ip addr add 2001:db8::1/64 dev eth7 nodad
ip route add local 10.96.0.0/16 dev lo
mkdir -p /tmp/www && echo hello >/tmp/www/index.html && busybox httpd -p 192.0.2.1:8080 -h /tmp/www

info=yes
echo "# Linux $(uname -r), $(ipvsadm --version 2>&1 | head -n 1)"
run ipvsadm -A -t 10.96.0.10:80 -s wrr
run ipvsadm -A -u 10.96.0.10:53 -s rr -o
run ipvsadm -A --sctp-service 10.96.0.10:9 -s rr
run ipvsadm -A -t 10.96.0.11:443 -s sh -b sh-fallback,sh-port
run ipvsadm -A -t 10.96.0.12:443 -s mh -b flag-1,flag-2,flag-3 -p 360 -M 255.255.255.0
run ipvsadm -A -u 10.96.0.13:5060 -s rr -p 30 --pe sip
run ipvsadm -A -f 7 -s wrr
run ipvsadm -A -f 8 -6 -s wrr -p 60 -M 64
run ipvsadm -A -t '[2001:db8::a]:443' -s wrr
run ipvsadm -A -t 10.96.0.10:80 -s wrr
run ipvsadm -A -t 10.96.0.99:80 -s nonsense
run ipvsadm -a -t 10.96.0.10:80 -r 192.0.2.1:8080 -m -w 96
run ipvsadm -a -t 10.96.0.10:80 -r 192.0.2.1:8080 -m
run ipvsadm -a -t 10.96.0.77:80 -r 192.0.2.1:8080 -m
run ipvsadm -a -u 10.96.0.10:53 -r 192.0.2.3:53 -m -w 0 -x 1000 -y 800
run ipvsadm -a -t 10.96.0.11:443 -r 192.0.2.4:443 -g -w 65535
run ipvsadm -a -t 10.96.0.11:443 -r 192.0.2.5:443 -i
run ipvsadm -a -t 10.96.0.11:443 -r 192.0.2.6:443 -i --tun-type gue --tun-port 6080
run ipvsadm -a -t 10.96.0.11:443 -r 192.0.2.7:443 -i --tun-type gue --tun-port 6081 --tun-csum
run ipvsadm -a -t 10.96.0.11:443 -r 192.0.2.8:443 -i --tun-type gue --tun-port 6082 --tun-remcsum
run ipvsadm -a -t 10.96.0.11:443 -r 192.0.2.9:443 -i --tun-type gre --tun-csum
run ipvsadm -a -t 10.96.0.11:443 -r '[2001:db8::4]:443' -i
run ipvsadm -a -t '[2001:db8::a]:443' -r '[2001:db8::2]:8443' -m -w 10
run ipvsadm -a -t '[2001:db8::a]:443' -r 192.0.2.10:443 -i
run ipvsadm -a -f 7 -r 192.0.2.11:0 -g -w 5
for _ in 1 2 3; do curl -so /dev/null http://10.96.0.10/; done
run ipvsadm -E -t 10.96.0.10:80 -s rr -p 600
run ipvsadm -e -t 10.96.0.10:80 -r 192.0.2.1:8080 -m -w 24 -x 50 -y 40
run ipvsadm --set 900 120 300
run ipvsadm -L --timeout
run ipvsadm -Z -t 10.96.0.11:443
run ipvsadm -Ln --stats
run ipvsadm -d -t 10.96.0.11:443 -r '[2001:db8::4]:443'
run ipvsadm -d -t '[2001:db8::a]:443' -r 192.0.2.10:443
run ipvsadm --start-daemon master --mcast-interface eth7 --syncid 7
run ipvsadm --start-daemon backup --mcast-interface eth7 --syncid 8 --sync-maxlen 1400 \
	--mcast-group ff02::81 --mcast-port 9999 --mcast-ttl 3
run ipvsadm -L --daemon
run ipvsadm --stop-daemon backup
run ipvsadm --stop-daemon master
run ipvsadm --stop-daemon master
run ipvsadm -Z
run ipvsadm -D -t 10.96.0.10:80
run ipvsadm -C
