# The chains of Cilium without its replacement of kube-proxy, chained behind another plugin (cilium/cilium,
# pkg/datapath/iptables; github.com/cilium/cilium/issues/31565 shows them). Its programs at the links are not part of them.
iptables-restore <<'END'
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:CILIUM_PRE_raw - [0:0]
:CILIUM_OUTPUT_raw - [0:0]
-A PREROUTING -j CILIUM_PRE_raw
-A OUTPUT -j CILIUM_OUTPUT_raw
-A CILIUM_PRE_raw -m mark --mark 0x200/0xf00 -j CT --notrack
-A CILIUM_OUTPUT_raw -o lxc+ -m mark --mark 0xa00/0xfffffeff -j CT --notrack
-A CILIUM_OUTPUT_raw -o cilium_host -m mark --mark 0xa00/0xfffffeff -j CT --notrack
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:CILIUM_PRE_mangle - [0:0]
:CILIUM_POST_mangle - [0:0]
-A PREROUTING -j CILIUM_PRE_mangle
-A POSTROUTING -j CILIUM_POST_mangle
-A CILIUM_PRE_mangle -m socket --transparent -m mark ! --mark 0xe00/0xf00 -m mark ! --mark 0x800/0xf00 -j MARK --set-xmark 0x200/0xffffffff
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:CILIUM_PRE_nat - [0:0]
:CILIUM_OUTPUT_nat - [0:0]
:CILIUM_POST_nat - [0:0]
-A PREROUTING -j CILIUM_PRE_nat
-A OUTPUT -j CILIUM_OUTPUT_nat
-A POSTROUTING -j CILIUM_POST_nat
-A CILIUM_POST_nat -s 10.0.0.0/24 ! -d 10.0.0.0/8 ! -o cilium_+ -j MASQUERADE
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:CILIUM_INPUT - [0:0]
:CILIUM_FORWARD - [0:0]
:CILIUM_OUTPUT - [0:0]
-A INPUT -j CILIUM_INPUT
-A FORWARD -j CILIUM_FORWARD
-A OUTPUT -j CILIUM_OUTPUT
-A CILIUM_INPUT -m mark --mark 0x200/0xf00 -j ACCEPT
-A CILIUM_FORWARD -o cilium_host -j ACCEPT
-A CILIUM_FORWARD -i cilium_host -j ACCEPT
-A CILIUM_FORWARD -i lxc+ -j ACCEPT
-A CILIUM_FORWARD -i cilium_net -j ACCEPT
-A CILIUM_OUTPUT -m mark --mark 0xa00/0xe00 -j ACCEPT
-A CILIUM_OUTPUT -m mark --mark 0x800/0xe00 -j ACCEPT
-A CILIUM_OUTPUT -m mark ! --mark 0xe00/0xf00 -m mark ! --mark 0xd00/0xf00 -m mark ! --mark 0xa00/0xe00 -m mark ! --mark 0x800/0xe00 -m mark ! --mark 0xf00/0xf00 -j MARK --set-xmark 0xc00/0xf00
COMMIT
END
