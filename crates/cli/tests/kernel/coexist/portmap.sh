# The rules of the CNI plugin portmap for a pod 10.244.1.4 with hostPort 80 and without hostIP
# (containernetworking/plugins, plugins/meta/portmap). $RESTORE and $RESTORE6 are iptables-restore of either backend.
rules() {
    cat <<END
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:CNI-DN-4 - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A CNI-HOSTPORT-DNAT -p tcp -m tcp --dport 80 -j CNI-DN-4
-A CNI-DN-4 -p tcp -m tcp --dport 80 -j DNAT --to-destination $1
COMMIT
END
}
rules 10.244.1.4:8080 | ${RESTORE:-iptables-restore}
rules '[fd00:10:244:1::4]:8080' | ${RESTORE6:-ip6tables-restore}
