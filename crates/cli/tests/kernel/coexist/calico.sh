# The chains of Calico's Felix with its support for IPVS, which it turns on when it finds kube-ipvs0 (projectcalico/calico,
# felix/rules/static.go and dispatch.go), with the interface prefix `pod` and one policy: pod3 accepts port 8080 of TCP and
# 5353 of UDP.
ipset create -exist cali40this-host hash:ip
ipset add -exist cali40this-host 192.168.10.11
ipset add -exist cali40this-host 127.0.0.1
ipset add -exist cali40this-host 169.254.1.1
iptables-restore <<'END'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:cali-PREROUTING - [0:0]
:cali-OUTPUT - [0:0]
-A PREROUTING -j cali-PREROUTING
-A OUTPUT -j cali-OUTPUT
-A cali-PREROUTING -j MARK --set-xmark 0x0/0xf0000
-A cali-PREROUTING -i pod+ -j MARK --set-xmark 0x40000/0x40000
-A cali-PREROUTING -m mark --mark 0x10000/0x10000 -j ACCEPT
-A cali-OUTPUT -j MARK --set-xmark 0x0/0xf0000
-A cali-OUTPUT -m mark --mark 0x10000/0x10000 -j ACCEPT
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:cali-PREROUTING - [0:0]
:cali-POSTROUTING - [0:0]
-A PREROUTING -j cali-PREROUTING
-A POSTROUTING -j cali-POSTROUTING
-A cali-PREROUTING -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A cali-PREROUTING -m mark --mark 0x10000/0x10000 -j ACCEPT
-A cali-POSTROUTING -m mark --mark 0x10000/0x10000 -j RETURN
-A cali-POSTROUTING -j MARK --set-xmark 0x0/0xf0000
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:cali-INPUT - [0:0]
:cali-FORWARD - [0:0]
:cali-OUTPUT - [0:0]
:cali-forward-check - [0:0]
:cali-forward-endpoint-mark - [0:0]
:cali-from-endpoint-mark - [0:0]
:cali-set-endpoint-mark - [0:0]
:cali-sm-pod1 - [0:0]
:cali-sm-pod2 - [0:0]
:cali-sm-pod3 - [0:0]
:cali-from-wl-dispatch - [0:0]
:cali-to-wl-dispatch - [0:0]
:cali-fw-pod - [0:0]
:cali-tw-open - [0:0]
:cali-tw-pod3 - [0:0]
:cali-wl-to-host - [0:0]
-A INPUT -j cali-INPUT
-A FORWARD -j cali-FORWARD
-A FORWARD -m mark --mark 0x10000/0x10000 -j ACCEPT
-A OUTPUT -j cali-OUTPUT
-A cali-INPUT -j MARK --set-xmark 0x0/0xfff00000
-A cali-INPUT -j cali-forward-check
-A cali-INPUT -m mark ! --mark 0x0/0xfff00000 -j RETURN
-A cali-INPUT -i pod+ -g cali-wl-to-host
-A cali-INPUT -m mark --mark 0x10000/0x10000 -j ACCEPT
-A cali-forward-check -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN
-A cali-forward-check -p tcp -m multiport --dports 30000:32767 -m set --match-set cali40this-host dst -g cali-set-endpoint-mark
-A cali-forward-check -p udp -m multiport --dports 30000:32767 -m set --match-set cali40this-host dst -g cali-set-endpoint-mark
-A cali-forward-check -m set ! --match-set cali40this-host dst -j cali-set-endpoint-mark
-A cali-set-endpoint-mark -i pod1 -g cali-sm-pod1
-A cali-set-endpoint-mark -i pod2 -g cali-sm-pod2
-A cali-set-endpoint-mark -i pod3 -g cali-sm-pod3
-A cali-set-endpoint-mark -i pod+ -j DROP
-A cali-set-endpoint-mark -j MARK --set-xmark 0x100000/0xfff00000
-A cali-sm-pod1 -j MARK --set-xmark 0xa1b00000/0xfff00000
-A cali-sm-pod2 -j MARK --set-xmark 0xa2b00000/0xfff00000
-A cali-sm-pod3 -j MARK --set-xmark 0xa3b00000/0xfff00000
-A cali-wl-to-host -j cali-from-wl-dispatch
-A cali-wl-to-host -j ACCEPT
-A cali-OUTPUT -m mark --mark 0x10000/0x10000 -j ACCEPT
-A cali-OUTPUT -m mark ! --mark 0x0/0xfff00000 -g cali-forward-endpoint-mark
-A cali-OUTPUT -o pod+ -j RETURN
-A cali-forward-endpoint-mark -m mark ! --mark 0x100000/0xfff00000 -j cali-from-endpoint-mark
-A cali-forward-endpoint-mark -o pod+ -j cali-to-wl-dispatch
-A cali-forward-endpoint-mark -j MARK --set-xmark 0x0/0xfff00000
-A cali-forward-endpoint-mark -m mark --mark 0x10000/0x10000 -j ACCEPT
-A cali-from-endpoint-mark -m mark --mark 0xa1b00000/0xfff00000 -g cali-fw-pod
-A cali-from-endpoint-mark -m mark --mark 0xa2b00000/0xfff00000 -g cali-fw-pod
-A cali-from-endpoint-mark -m mark --mark 0xa3b00000/0xfff00000 -g cali-fw-pod
-A cali-from-endpoint-mark -j DROP
-A cali-FORWARD -j MARK --set-xmark 0x0/0xe0000
-A cali-FORWARD -i pod+ -j cali-from-wl-dispatch
-A cali-FORWARD -o pod+ -j cali-to-wl-dispatch
-A cali-from-wl-dispatch -i pod+ -g cali-fw-pod
-A cali-from-wl-dispatch -j DROP
-A cali-to-wl-dispatch -o pod3 -g cali-tw-pod3
-A cali-to-wl-dispatch -o pod+ -g cali-tw-open
-A cali-to-wl-dispatch -j DROP
-A cali-fw-pod -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A cali-fw-pod -m conntrack --ctstate INVALID -j DROP
-A cali-fw-pod -j MARK --set-xmark 0x10000/0x10000
-A cali-fw-pod -m mark --mark 0x10000/0x10000 -j RETURN
-A cali-tw-open -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A cali-tw-open -m conntrack --ctstate INVALID -j DROP
-A cali-tw-open -j MARK --set-xmark 0x10000/0x10000
-A cali-tw-pod3 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A cali-tw-pod3 -m conntrack --ctstate INVALID -j DROP
-A cali-tw-pod3 -j MARK --set-xmark 0x0/0x10000
-A cali-tw-pod3 -p tcp -m tcp --dport 8080 -j MARK --set-xmark 0x10000/0x10000
-A cali-tw-pod3 -p udp -m udp --dport 5353 -j MARK --set-xmark 0x10000/0x10000
-A cali-tw-pod3 -m mark --mark 0x10000/0x10000 -j RETURN
-A cali-tw-pod3 -j DROP
COMMIT
END
