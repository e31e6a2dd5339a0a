//! ipvs-netlink.
