# The table of firewalld's nftables backend (firewalld/firewalld, src/firewall/core/nftables.py, release 1.3) without its empty
# chains, for a node whose pods are sources of the zone `trusted`, and whose zone `public` has ssh, node ports and the ports
# of load balancers:
#   firewall-cmd --zone=trusted --add-source=10.244.0.0/16 --add-source=fd00:10:244::/48
#   firewall-cmd --zone=public --add-service=ssh --add-port=30000-32767/tcp --add-port=30000-32767/udp \
#     --add-port=80/tcp --add-port=53/udp
nft -f - <<'END'
add table inet firewalld
delete table inet firewalld
table inet firewalld {
  chain filter_PREROUTING {
    type filter hook prerouting priority filter + 10; policy accept;
    icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept
    meta nfproto ipv6 fib saddr . mark . iif oif missing drop
  }
  chain filter_INPUT {
    type filter hook input priority filter + 10; policy accept;
    ct state { established, related } accept
    ct status dnat accept
    iifname "lo" accept
    ct state invalid drop
    jump filter_INPUT_ZONES
    reject with icmpx admin-prohibited
  }
  chain filter_FORWARD {
    type filter hook forward priority filter + 10; policy accept;
    ct state { established, related } accept
    ct status dnat accept
    iifname "lo" accept
    ct state invalid drop
    jump filter_FORWARD_ZONES
    reject with icmpx admin-prohibited
  }
  chain filter_OUTPUT {
    type filter hook output priority filter + 10; policy accept;
    ct state { established, related } accept
    oifname "lo" accept
  }
  chain nat_POSTROUTING {
    type nat hook postrouting priority srcnat + 10; policy accept;
  }
  chain nat_PREROUTING {
    type nat hook prerouting priority dstnat + 10; policy accept;
  }
  chain filter_INPUT_ZONES {
    ip saddr 10.244.0.0/16 goto filter_IN_trusted
    ip6 saddr fd00:10:244::/48 goto filter_IN_trusted
    iifname "eth0" goto filter_IN_public
    goto filter_IN_public
  }
  chain filter_FORWARD_ZONES {
    ip saddr 10.244.0.0/16 goto filter_FWD_trusted
    ip6 saddr fd00:10:244::/48 goto filter_FWD_trusted
    iifname "eth0" goto filter_FWD_public
    goto filter_FWD_public
  }
  chain filter_IN_trusted {
    accept
  }
  chain filter_FWD_trusted {
    accept
  }
  chain filter_IN_public {
    jump filter_IN_public_allow
    meta l4proto { icmp, ipv6-icmp } accept
    reject with icmpx admin-prohibited
  }
  chain filter_IN_public_allow {
    tcp dport 22 accept
    ip6 daddr fe80::/64 udp dport 546 accept
    tcp dport 30000-32767 accept
    udp dport 30000-32767 accept
    tcp dport 80 accept
    udp dport 53 accept
  }
  chain filter_FWD_public {
    reject with icmpx admin-prohibited
  }
}
END
